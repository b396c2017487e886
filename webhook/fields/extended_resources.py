"""Extended resources as items. Rules apply to the total of the pod."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from webhook.documents.problem import Source
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.state import Evaluation
from webhook.fields.gpu.use import counter_of
from webhook.fields.items.attributes import Unreadable
from webhook.fields.store import Addition, NativeItem
from webhook.fields.totals import amount_of, total_of
from webhook.objects import quantity
from webhook.objects.lookup import frozen
from webhook.objects.path import Path
from webhook.pods.pod_view import Container, PodView
from webhook.policy import values
from webhook.policy.row import Field

ORDINARY = frozenset({"cpu", "memory", "ephemeral-storage", "storage"})
PAGES = "hugepages-"
PARTS = ("limits", "requests")


class ExtendedStore:
    """Return devices by resource name, summed over the pod's containers like a scheduler does."""

    __slots__ = ("gpus",)

    def __init__(self, config: InstallationConfig) -> None:
        self.gpus = counter_of(config).names

    def is_extended(self, name: object) -> bool:
        """Return whether a resource is neither Kubernetes' own nor a GPU."""
        if not isinstance(name, str) or name in ORDINARY or name.startswith(PAGES):
            return False
        return name not in self.gpus

    def read(self, view: PodView) -> list[NativeItem]:
        """Return one item for each name, with the pod's total, none for a name without an amount."""
        return [self.item(view, name, *found) for name, found in self.places(view).items()]

    def places(self, view: PodView) -> dict[str, tuple[list[Path], list[Container]]]:
        """Return the paths of each resource in order, and the containers that name it."""
        found: dict[str, tuple[list[Path], list[Container]]] = {}
        for container in view.everyone:
            resources = container.body.get("resources")
            for part in PARTS:
                held = resources.get(part) if isinstance(resources, dict) else None
                for name in held if isinstance(held, dict) else ():
                    if self.is_extended(name):
                        path = (*container.path, "resources", part, name)
                        paths, named = found.setdefault(name, ([], []))
                        paths.append(path)
                        if not named or named[-1] is not container:
                            named.append(container)
        return found

    def item(
        self, view: PodView, name: str, paths: list[Path], named: list[Container]
    ) -> NativeItem:
        """Return the item of one resource. Amounts that are not quantities stay as they are."""
        found: dict[str, tuple[Any, ...]] = {"resource": (name,)}
        total = pod_amount(named, name)
        if total is not None:
            found["quantity"] = (total,)
        at: dict[str, tuple[Path, ...]] = {"resource": (paths[0],), "quantity": (paths[0],)}
        # An unreadable amount may stay as it was if no other amount grows.
        raw = devices_of(named, name) if isinstance(total, Unreadable) else total
        return NativeItem(name, found, paths[0], raw, at)

    def devices(self, view: PodView) -> dict[str, Devices]:
        """The amounts of each resource."""
        return {name: devices_of(named, name) for name, (_, named) in self.places(view).items()}

    def add(self, view: PodView, ev: Evaluation, new: Addition) -> None:
        """Write equal limit and request on the main container."""
        name, amount = new.attributes["resource"].value, new.attributes.get("quantity")
        if amount is None or not self.is_extended(name):
            ev.warn("unmapped-default", new.row.path, view.spec_path)
            return
        text = values.AMOUNT_TEXT.write(amount.value, amount.raw)
        self.put(view, ev, new.row, name, str(text), new.why, new.item.source)

    def restore(self, view: PodView, ev: Evaluation, row: Field, item: NativeItem) -> bool:
        """Write the old total on the main container."""
        if not isinstance(item.raw, int):
            return False
        self.put(view, ev, row, item.key, quantity.render(item.raw), "kept", None)
        return True

    def put(
        self,
        view: PodView,
        ev: Evaluation,
        row: Field,
        name: str,
        text: str,
        why: str,
        source: Source | None,
    ) -> None:
        """Write one amount at both paths."""
        if view.main is None:
            return
        paths = [(*view.main.path, "resources", part, name) for part in PARTS]
        if all(ev.can_write(each) for each in paths):  # one alone is refused by servers
            for each in paths:
                ev.write(row.path, each, text, why, source)

    def belongs_elsewhere(self, item: NativeItem) -> bool:
        """GPUs are no items here to begin with."""
        return False


class Devices(NamedTuple):
    """The pod's total of one resource that can be read, and each amount that cannot, by container."""

    total: int
    unread: frozenset[Hashable]

    def is_no_more(self, other: Devices) -> bool:
        """Whether neither the total nor what cannot be read exceeds that of another pod."""
        return self.total <= other.total and self.unread <= other.unread


def devices_of(containers: Sequence[Container], name: str) -> Devices:
    """The amounts of one resource; `containers` are those that name it."""
    unread = {
        (each.list, each.name, frozen(native))
        for each in containers
        for native in values_of_resource(each, name)
        if not is_readable(native)
    }
    return Devices(total_of(containers, lambda each: most_of(each, name)), frozenset(unread))


def is_readable(native: Any) -> bool:
    """Whether an amount can be read."""
    try:
        quantity.parse(native)
    except ValueError:
        return False
    return True


def most_of(container: Container, name: str) -> int:
    """A container's amount of one resource, of limits or requests the larger."""
    return max(amount_of(container.body, part, name) for part in PARTS)


def values_of_resource(container: Container, name: str) -> list[Any]:
    """What a container says of one resource, null left out."""
    resources = container.body.get("resources")
    held = [resources.get(part) for part in PARTS] if isinstance(resources, dict) else []
    natives = [each.get(name) for each in held if isinstance(each, dict)]
    return [each for each in natives if each is not None]


def pod_amount(containers: Sequence[Container], name: str) -> int | Unreadable | None:
    """The pod's total of one resource in nano units, of limits or requests the larger.

    `containers` are those that name it: others add nothing. None when every amount is null; the
    first that is no quantity makes the total unreadable.
    """
    natives = [native for each in containers for native in values_of_resource(each, name)]
    for native in natives:
        if not is_readable(native):
            return Unreadable(native)
    return total_of(containers, lambda each: most_of(each, name)) if natives else None
