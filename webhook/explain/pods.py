"""TABLE of readers: for each shape of field in pods, all of its values in one completed pod."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.explain.items import item_entries
from webhook.explain.model import COMPUTED, UNSET, Entry
from webhook.explain.origins import Origins
from webhook.fields.gpu.parts import UNREADABLE
from webhook.fields.host_ports import host_ports
from webhook.fields.scalar import reader
from webhook.objects.path import ABSENT, Path, real
from webhook.pods.pod_view import Container, PodView
from webhook.policy.row import (
    AMOUNT,
    CONTAINER,
    GPU,
    GPU_FORM,
    HOME,
    HOST_PORTS,
    IDENTITY,
    ITEMS,
    NODE_POOLS,
    NODE_TYPE,
    POD_AFFINITY,
    POD_SET,
    PROBE,
    PULL_SECRETS,
    SERVING_PORT,
    SHARED_MEMORY,
    Binding,
    Field,
)

EVERYWHERE = frozenset({"image"})
"""Fields of main containers whose rules look into all lists of containers."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a reader is asked: the values of a field in one pod of the completed object."""

    origins: Origins
    ev: Evaluation
    view: PodView
    row: Field
    binding: Any

    def entry(self, path: Path, value: Any, key: str = "") -> Entry:
        """A value that stands at its place."""
        return self.origins.entry(self.row, path, value, key)

    def derived(self, path: Path, value: Any, key: str = "") -> Entry:
        """A value that follows from what is at its place, or stands there in another notation."""
        return self.origins.entry(self.row, path, value, key, derived=True)

    def unset(self, path: Path) -> Entry:
        """Nothing, with the place where a default would go."""
        return Entry(real(path), ABSENT, UNSET)


def in_turn(view: PodView, containers: Iterable[Container]) -> list[Container]:
    """The main container, then the others."""
    return sorted(containers, key=lambda each: each is not view.main)


def of_containers(asked: Asked) -> Iterator[Entry]:
    """The pod's own value, then each container's; an inherited one is not repeated."""
    row, view = asked.row, asked.view
    get = reader(row.at)
    pod_at = row.pod_at or (row.at if row.shape == AMOUNT and "resources" in view.spec else ())
    if pod_at:
        yield asked.entry((*view.spec_path, *pod_at), reader(pod_at)(view.spec), "the pod")
    everyone = row.binding is Binding.SAFETY or row.path in EVERYWHERE
    for container in in_turn(view, view.everyone if everyone else view.containers):
        entry = asked.entry((*container.path, *row.at), get(container.body), container.name)
        if entry.value is ABSENT and isinstance(row.absent, bool | str):
            word = str(row.absent).lower() if isinstance(row.absent, bool) else row.absent
            entry.note = f"without a value it is {word}"
        yield entry


def of_probes(asked: Asked) -> Iterator[Entry]:
    """Each container's value; a port by name is told by its number."""
    for container in in_turn(asked.view, asked.view.containers):
        path = (*container.path, *asked.row.at)
        yield asked.derived(path, asked.binding.get(container.body), container.name)


def of_gpus(asked: Asked) -> Iterator[Entry]:
    """The pod's total over all forms."""
    binding, view = asked.binding, asked.view
    use, path = binding.use(view, asked.ev), binding.place(view)
    if use.forms or use.unbounded or binding.stated(view):
        value = binding.shown(use) if use.unbounded else use.count
        yield asked.derived(path, value, "total of the pod")
    else:
        yield asked.unset(path)


def of_gpu_forms(asked: Asked) -> Iterator[Entry]:
    """Every amount of one form that the pod states; what cannot be read is never shown."""
    binding, view = asked.binding, asked.view
    found, note = binding.stated_values(view), ""
    if not found and (binding.rules.final or binding.rules.prohibitions):
        # Rules look at what another form amounts to.
        found = binding.asked(view, asked.ev, binding.use(view, asked.ev))
        note = "what another form of GPUs amounts to"
    for each in found:
        entry = asked.derived(each.path, each.native)
        entry.note = note
        if each.native == UNREADABLE:
            entry.value, entry.note = None, "cannot be read"
        yield entry
    if not found:
        yield asked.unset(binding.unset(view))


def of_identity(asked: Asked) -> Iterator[Entry]:
    """Where the ids of the pod come from, at the first id that it states.

    That the image decides is told only where a policy asks.
    """
    binding, view = asked.binding, asked.view
    ids, rules = binding.ids(view), binding.rules
    path = next((each for each, _ in ids.values()), (*view.spec_path, "securityContext"))
    asks = rules.default or rules.final or rules.prohibitions or rules.required
    if not ids and not asks:
        yield asked.unset(path)
        return
    entry = asked.derived(path, binding.source(view, asked.ev))
    if not ids:
        entry.source, entry.by, entry.note = COMPUTED, None, "the pod has no ids"
    yield entry


def of_host_ports(asked: Asked) -> Iterator[Entry]:
    """Every port of the node that a container asks for."""
    for container in asked.view.everyone:
        for path, _ in host_ports(container):
            yield asked.derived(path, True, container.name)
    yield asked.unset(asked.view.spec_path)


def of_sets(asked: Asked) -> Iterator[Entry]:
    """Every name in use."""
    for each in asked.binding.elements(asked.view, asked.ev):
        yield asked.derived(each.path, each.name)
    yield asked.unset((*asked.view.spec_path, *asked.row.at))


def of_node_pools(asked: Asked) -> Iterator[Entry]:
    """Every place that names pools."""
    binding, view = asked.binding, asked.view
    metadata = view.location.metadata_path
    for each in binding.places(view, asked.origins.document):
        yield asked.derived(each.path, each.names)
    yield asked.unset(view.location.place if metadata is None else binding.target(view, []))


def of_node_type(asked: Asked) -> Iterator[Entry]:
    """Every value that selector and affinity name."""
    for path, value, says in asked.binding.named(asked.view):
        entry = asked.entry(path, value)
        entry.note = "" if says else "an operator that excludes or only demands the label"
        yield entry
    yield asked.unset((*asked.view.spec_path, *asked.binding.at))


def of_pod_affinity(asked: Asked) -> Iterator[Entry]:
    """Types, or keys, of the terms."""
    view = asked.view
    for path, value in asked.binding.found(view.spec, view.spec_path):
        yield asked.derived(path, value)
    yield asked.unset((*view.spec_path, *asked.binding.at))


def of_serving_port(asked: Asked) -> Iterator[Entry]:
    """The first port of the main container."""
    binding = asked.binding
    for container in in_turn(asked.view, binding.bound(asked.view)):
        path = (*container.path, *binding.at)
        native, absent = binding.read(container), binding.effective(container)
        value = binding.rules.read(native) if isinstance(native, str) else native
        entry = asked.derived(path, value, container.name)
        if native is None and absent is not None:
            entry.note = f"without a name it is {binding.rules.read(absent)}"
        yield entry


def of_items(asked: Asked) -> Iterator[Entry]:
    """Every item of the pod, and the policy's that are not there."""
    return item_entries(asked.origins, asked.view, asked.ev, asked.row, asked.binding)


def of_place(asked: Asked) -> Iterator[Entry]:
    """The one place of the pod spec."""
    yield asked.entry(*asked.binding.read(asked.view))


def of_mounts(asked: Asked) -> Iterator[Entry]:
    """The mount that makes a field true."""
    yield asked.derived(*asked.binding.read(asked.view))


READERS: dict[str, Callable[[Asked], Iterator[Entry]]] = {
    CONTAINER: of_containers,
    AMOUNT: of_containers,
    PROBE: of_probes,
    GPU: of_gpus,
    GPU_FORM: of_gpu_forms,
    IDENTITY: of_identity,
    HOST_PORTS: of_host_ports,
    POD_SET: of_sets,
    NODE_POOLS: of_node_pools,
    NODE_TYPE: of_node_type,
    POD_AFFINITY: of_pod_affinity,
    HOME: of_mounts,
    SHARED_MEMORY: of_mounts,
    SERVING_PORT: of_serving_port,
    ITEMS: of_items,
    PULL_SECRETS: of_items,
}


def pod_entries(asked: Asked) -> Iterator[Entry]:
    """The values of a field in one pod, unset ones too; raises MalformedPod."""
    return READERS.get(asked.row.shape, of_place)(asked)
