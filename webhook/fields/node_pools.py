"""nodePools: an annotation or label of the pod, else a label of the workload, by preference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.state import Evaluation
from webhook.fields.handler import FieldSource, FieldValue, PodField, PodHandler
from webhook.fields.scalar import Before, rules_of
from webhook.objects.path import ABSENT, Path, read
from webhook.pods.pod_view import MalformedPod, PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import NODE_POOLS, Field

WORKLOAD: Path = ("metadata",)


class Pools(NamedTuple):
    """The pools that one path names, in order. `key` identifies the path across an update."""

    key: tuple[str, str, str]
    path: Path
    names: list[str]


class NodePoolsField(PodField):
    """The pools of a pod. Schedulers read the first path with pools; rules apply to all.

    No node affinity is read or written, because it would need the labels of NodePool objects, which
    podgate does not know.
    """

    __slots__ = ("annotation", "labels")

    def __init__(self, row: Field, leaf: Leaf, config: InstallationConfig) -> None:
        super().__init__(row, rules_of(row, leaf))
        self.annotation = config.node_pools_annotation
        self.labels = tuple(each for each in config.node_pool_labels if each)

    def places(self, view: PodView, document: Any) -> list[Pools]:
        """Return every path with pools: the pod's annotation and labels, the workload's labels."""
        metadata = view.location.metadata_path
        held = None if metadata is None else view.read_in(document, metadata)
        return [*self.of_pod(view, held), *self.of_workload(view, document)]

    def of_pod(self, view: PodView, held: Any) -> Iterator[Pools]:
        """Yield the pod's own paths. `held` is its metadata, which the object may have in fragments."""
        metadata = view.location.metadata_path
        if metadata is None:
            return
        if self.annotation:
            pools = text_at(held, ("annotations", self.annotation), metadata).split()
            if pools:
                path = (*metadata, "annotations", self.annotation)
                yield Pools(("pod", "annotation", self.annotation), path, pools)
        yield from self.read_labels("pod", metadata, held)

    def of_workload(self, view: PodView, document: Any) -> Iterator[Pools]:
        """Yield the labels of the object, unless it is the pod itself."""
        if view.location.metadata_path != WORKLOAD:
            yield from self.read_labels("workload", WORKLOAD, read(document, WORKLOAD))

    def read_labels(self, whose: str, metadata: Path, held: Any) -> Iterator[Pools]:
        """Yield the labels of the metadata at a path. Each label names one pool."""
        for label in self.labels:
            if pool := text_at(held, ("labels", label), metadata):
                yield Pools((whose, "label", label), (*metadata, "labels", label), [pool])

    def before(self, view: PodView, ev: Evaluation) -> list[Pools]:
        """The same places before the update."""
        return self.places(view.old, ev.old) if view.old is not None else []

    def before_at(self, path: Pools, view: PodView, old: list[Pools]) -> Before:
        """Return the pools of a path before the update, None for a new pod."""
        if view.old is None:
            return None
        held = next((each for each in old if each.key == path.key), None)
        return (held.path, held.names) if held is not None else (path.path, None)

    def find(self, view: PodView) -> tuple[Path, Any]:
        """Return the first path in the pod's own metadata, with its pools, None without any."""
        metadata = view.location.metadata_path
        if metadata is None:
            return view.location.place, None
        first = next(self.of_pod(view, view.metadata), None)
        return (first.path, first.names) if first is not None else (self.target(view, []), None)

    def read(self, view: PodView, ev: Evaluation) -> Iterator[FieldValue]:
        """Every path that names pools."""
        for each in self.places(view, ev.draft.document):
            yield FieldValue(each.path, each.names, derived=True)
        metadata = view.location.metadata_path
        yield FieldValue(view.location.place if metadata is None else self.target(view, []), None)

    def check_intent(self, view: PodView, ev: Evaluation) -> None:
        """Prohibitions on every place that names pools."""
        if not self.rules.prohibitions:
            return
        old = self.before(view, ev)
        for path in self.places(view, ev.request.object):
            before = self.before_at(path, view, old)
            self.rules.check_intent(ev, path.path, path.names, before, None)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write the default if no path names a pool: one pool as the label, several in order."""
        default = self.rules.default
        if default is None or not default.value or self.places(view, ev.request.object):
            return
        if view.location.metadata_path is None or not (self.labels and self.annotation):
            ev.warn("unmapped-default", self.row.path, view.location.place)
            return
        old = next(iter(self.before(view, ev)), None)
        before = (old.path, old.names) if old is not None else None
        wanted = self.rules.choose_value(ev, self.target(view, []), None, None, before)
        if wanted is None:
            return
        kept, pools = wanted
        if kept == "default":
            pools = self.rules.codec.write(default.value, default.raw)
        path = self.target(view, pools)
        if ev.can_write(path):
            ev.write(self.row.path, path, " ".join(pools), kept, default.source)

    def target(self, view: PodView, pools: list[str]) -> Path:
        """Return the path for this number of pools."""
        metadata = view.location.metadata_path
        assert metadata is not None
        if len(pools) > 1 or not self.labels:
            return (*metadata, "annotations", self.annotation)
        return (*metadata, "labels", self.labels[0])

    def check_final(self, view: PodView, ev: Evaluation) -> None:
        """Check options on every path with pools. Any of them satisfies `required`."""
        paths, old = self.places(view, ev.draft.document), self.before(view, ev)
        if not paths and self.rules.required:
            path = self.find(view)[0]
            self.rules.check_required(ev, path, unchanged=view.old is not None and not old)
        for place in paths:
            before = self.before_at(place, view, old)
            unchanged = before is not None and before[1] == place.names
            self.rules.check_final(ev, place.path, place.names, unchanged=unchanged)

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """Return the pools at the first path, None if unset."""
        first = next(iter(self.places(view, ev.draft.document)), None)
        return first.names if first is not None else None


def text_at(metadata: Any, at: Path, above: Path) -> str:
    """Return the text at a path in metadata, "" if absent. Raises MalformedPod.

    `above` is the path of the metadata in the object.
    """
    found = read(metadata, at)
    if found is ABSENT or found is None:
        return ""
    if not isinstance(found, str):
        raise MalformedPod((*above, *at), "text", found)
    return found


class NodePoolsHandler(PodHandler):
    """The node pools that a pod may use, by annotation and labels."""

    name = NODE_POOLS

    def compile(self, source: FieldSource) -> NodePoolsField:
        """The field, with the names of annotation and labels from the settings."""
        return NodePoolsField(source.row, source.leaf, source.config)

    def pod_paths(self, row: Field) -> Sequence[Path]:
        """Where a pod template has the field."""
        return [("metadata", "labels")]
