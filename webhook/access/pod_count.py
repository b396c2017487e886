"""How many pods a component and all below it make."""

from __future__ import annotations

from webhook.access.component import Replicas
from webhook.access.errors import AccessError
from webhook.access.gang import Summary, line_of, summarize
from webhook.access.object import Bound, BoundComponent
from webhook.documents.read_model import shown


def subtree_scale(bound: Bound, component: str, instance: str | None = None) -> int:
    """The pods of a component with all below it, or of one of its instances.

    Where no component states a scale, components with pods are counted. Raises AccessError.
    """
    if instance == "":
        raise AccessError("instance-empty", "the instance has no name")
    summary = summarize(bound.spec)
    found = bound.component(component)
    if any(summary.parents.get(line_of(each, summary.parents)[-1]) for each in summary.parents):
        raise AccessError("owner-cycle", "components belong to each other in a circle")
    if summary.scales:
        return scaled(bound, summary, found, instance)
    return counted(bound, summary, found, instance)


def scaled(bound: Bound, summary: Summary, component: BoundComponent, instance: str | None) -> int:
    """Its own number times that of what belongs to it; what states no number does not count."""
    own = own_scale(component, instance)
    below = sum(
        scaled(bound, summary, bound.component(name), None)
        for name in summary.children.get(component.name, ())
    )
    return own * below if own and below else own or below


def own_scale(component: BoundComponent, instance: str | None) -> int:
    """The number of one instance, or of all together."""
    scales = component.scales()
    if instance is None:
        return sum(map(wanted, (scales or {}).values()))
    known = component.instance_ids() if scales is None else scales
    if instance not in known:
        raise unknown(instance)
    return wanted(scales[instance]) if scales else 0


def wanted(scale: Replicas) -> int:
    """The number that must be there at once: the minimum where there is one."""
    return next((each for each in (scale.minimum, scale.replicas) if each and each > 0), 0)


def counted(bound: Bound, summary: Summary, component: BoundComponent, instance: str | None) -> int:
    """The number of components with pods, each with its instances."""
    if component.defines_pods:
        if not component.is_many:
            return 1
        ids = component.instance_ids()
        if instance is not None and instance not in ids:
            raise unknown(instance)
        return 1 if instance is not None else len(ids)
    return sum(
        counted(bound, summary, bound.component(name), None)
        for name in summary.children.get(component.name, ())
    )


def unknown(instance: str) -> AccessError:
    """No such instance."""
    text = f"there is no instance `{shown(instance)}`"
    return AccessError("instance-unknown", text, id=instance)
