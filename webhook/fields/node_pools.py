"""nodePools: an annotation or label of the pod, else a label of the workload, by preference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from webhook.evaluation.installation import Vocabulary
from webhook.evaluation.state import Evaluation
from webhook.fields.scalar import Before, ScalarRules, rules_of
from webhook.objects.path import ABSENT, Path, read
from webhook.pods.pod_view import MalformedPod, PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import Field

WORKLOAD: Path = ("metadata",)


class Pools(NamedTuple):
    """The pools that one place names, in order; `key` identifies the place across an update."""

    key: tuple[str, str, str]
    path: Path
    names: list[str]


class NodePoolsField:
    """The pools of a pod: schedulers read the first place that names some, rules look at all.

    No node affinity is read or written: it would have to say the labels of NodePool objects, and
    none are known here.
    """

    __slots__ = ("annotation", "field", "labels", "rules")

    def __init__(self, field: Field, leaf: Leaf, words: Vocabulary) -> None:
        self.field = field
        self.rules: ScalarRules = rules_of(field, leaf)
        self.annotation = words.node_pools_annotation
        self.labels = tuple(each for each in words.node_pool_labels if each)

    def places(self, view: PodView, document: Any) -> list[Pools]:
        """Every place that names pools: the pod's annotation and labels, the workload's labels."""
        metadata = view.location.metadata_path
        held = None if metadata is None else read(document, metadata)
        return [*self.of_pod(view, held), *self.of_workload(view, document)]

    def of_pod(self, view: PodView, held: Any) -> Iterator[Pools]:
        """The pod's own places; `held` is its metadata, which the object may have in fragments."""
        metadata = view.location.metadata_path
        if metadata is None:
            return
        if self.annotation:
            pools = text_at(held, ("annotations", self.annotation), metadata).split()
            if pools:
                path = (*metadata, "annotations", self.annotation)
                yield Pools(("pod", "annotation", self.annotation), path, pools)
        yield from self.labelled("pod", metadata, held)

    def of_workload(self, view: PodView, document: Any) -> Iterator[Pools]:
        """The labels of the object, where that is not the pod itself."""
        if view.location.metadata_path != WORKLOAD:
            yield from self.labelled("workload", WORKLOAD, read(document, WORKLOAD))

    def labelled(self, whose: str, metadata: Path, held: Any) -> Iterator[Pools]:
        """The labels of the metadata at a path; each label names one pool."""
        for label in self.labels:
            if pool := text_at(held, ("labels", label), metadata):
                yield Pools((whose, "label", label), (*metadata, "labels", label), [pool])

    def before(self, view: PodView, ev: Evaluation) -> list[Pools]:
        """The same places before the update."""
        return self.places(view.old, ev.old) if view.old is not None else []

    def before_at(self, place: Pools, view: PodView, old: list[Pools]) -> Before:
        """What a place named before the update; None for a pod that is new."""
        if view.old is None:
            return None
        held = next((each for each in old if each.key == place.key), None)
        return (held.path, held.names) if held is not None else (place.path, None)

    def read(self, view: PodView) -> tuple[Path, Any]:
        """The first place of the pod's own metadata, with its pools; None when it names none."""
        metadata = view.location.metadata_path
        if metadata is None:
            return view.location.place, None
        first = next(self.of_pod(view, view.metadata), None)
        return (first.path, first.names) if first is not None else (self.target(view, []), None)

    def intent(self, view: PodView, ev: Evaluation) -> None:
        """Prohibitions on every place that names pools."""
        if not self.rules.prohibitions:
            return
        old = self.before(view, ev)
        for place in self.places(view, ev.request.object):
            before = self.before_at(place, view, old)
            self.rules.judge_intent(ev, place.path, place.names, before, None)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write the default where no place names a pool: one as the label, several in order."""
        default = self.rules.default
        if default is None or not default.value or self.places(view, ev.request.object):
            return
        if view.location.metadata_path is None or not (self.labels and self.annotation):
            ev.warn("unmapped-default", self.field.path, view.location.place)
            return
        old = next(iter(self.before(view, ev)), None)
        before = (old.path, old.names) if old is not None else None
        wanted = self.rules.wanted(ev, self.target(view, []), None, None, before)
        if wanted is None:
            return
        kept, pools = wanted
        if kept == "default":
            pools = self.rules.codec.write(default.value, default.raw)
        path = self.target(view, pools)
        if ev.can_write(path):
            ev.write(self.field.path, path, " ".join(pools), kept, default.source)

    def target(self, view: PodView, pools: list[str]) -> Path:
        """Where so many pools are written."""
        metadata = view.location.metadata_path
        assert metadata is not None
        if len(pools) > 1 or not self.labels:
            return (*metadata, "annotations", self.annotation)
        return (*metadata, "labels", self.labels[0])

    def final(self, view: PodView, ev: Evaluation) -> None:
        """Options on every place that names pools; `required` is met by any of them."""
        places, old = self.places(view, ev.draft.document), self.before(view, ev)
        if not places and self.rules.required:
            path = self.read(view)[0]
            self.rules.judge_required(ev, path, unchanged=view.old is not None and not old)
        for place in places:
            before = self.before_at(place, view, old)
            unchanged = before is not None and before[1] == place.names
            self.rules.judge_final(ev, place.path, place.names, unchanged=unchanged)

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """The pools that the first place names now; None when unset."""
        first = next(iter(self.places(view, ev.draft.document)), None)
        return first.names if first is not None else None


def text_at(metadata: Any, at: Path, above: Path) -> str:
    """The text at a path in metadata, "" when absent; raises MalformedPod for anything else.

    `above` is the path of the metadata in the object.
    """
    found = read(metadata, at)
    if found is ABSENT or found is None:
        return ""
    if not isinstance(found, str):
        raise MalformedPod((*above, *at), "text", found)
    return found
