"""Counts the pods of a component and its descendants."""

from __future__ import annotations

from webhook.access.component import Replicas
from webhook.access.errors import AccessError
from webhook.access.gang import Summary, line_of, summarize
from webhook.access.object import Bound, BoundComponent
from webhook.documents.read_model import show_value


def subtree_scale(bound: Bound, component: str, instance: str | None = None) -> int:
    """Return the number of pods of a component with its descendants, or of one of its instances.

    If no component has a scale, components with pods are counted. Raises AccessError.
    """
    if instance == "":
        raise AccessError("instance-empty", "the instance has no name")
    summary = summarize(bound.spec)
    found = bound.component(component)
    if any(summary.parents.get(line_of(each, summary.parents)[-1]) for each in summary.parents):
        raise AccessError("owner-cycle", "components belong to each other in a circle")
    if summary.scales:
        return count_scaled_pods(bound, summary, found, instance)
    return count_components(bound, summary, found, instance)


def count_scaled_pods(
    bound: Bound, summary: Summary, component: BoundComponent, instance: str | None
) -> int:
    """Return the component's number times those of its children. Absent numbers do not count."""
    own = own_scale(component, instance)
    below = sum(
        count_scaled_pods(bound, summary, bound.component(name), None)
        for name in summary.children.get(component.name, ())
    )
    return own * below if own and below else own or below


def own_scale(component: BoundComponent, instance: str | None) -> int:
    """Return the number of one instance, or of all together."""
    scales = component.scales()
    if instance is None:
        return sum(map(minimum_number, (scales or {}).values()))
    known = component.instance_ids() if scales is None else scales
    if instance not in known:
        raise unknown(instance)
    return minimum_number(scales[instance]) if scales else 0


def minimum_number(scale: Replicas) -> int:
    """Return the number of pods that must run at the same time: the minimum, if there is one."""
    return next((each for each in (scale.minimum, scale.replicas) if each and each > 0), 0)


def count_components(
    bound: Bound, summary: Summary, component: BoundComponent, instance: str | None
) -> int:
    """Return the number of components with pods, counting each instance."""
    if component.defines_pods:
        if not component.is_many:
            return 1
        ids = component.instance_ids()
        if instance is not None and instance not in ids:
            raise unknown(instance)
        return 1 if instance is not None else len(ids)
    return sum(
        count_components(bound, summary, bound.component(name), None)
        for name in summary.children.get(component.name, ())
    )


def unknown(instance: str) -> AccessError:
    """Return the error for an unknown instance."""
    text = f"there is no instance `{show_value(instance)}`"
    return AccessError("instance-unknown", text, id=instance)
