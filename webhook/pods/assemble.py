"""Assembles pods that a kind has in fragments, with the path of each fragment in the object.

The forms of fragments are listed in webhook/interface/fragment.py, those of one project in its
assembler (webhook/pods/assemblers). If several paths contain one value, the last one that is set
counts. A default is written to the last path.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from webhook.interface.fragment import FragmentSpec
from webhook.jq.pair import matches_within
from webhook.jq.path import Match
from webhook.objects.draft import Draft
from webhook.objects.path import ABSENT, Path, read
from webhook.pods.fragment_forms import FORMS
from webhook.pods.fragments import (
    CONTAINER,
    Fragment,
    FragmentForm,
    names_of,
    put,
    split_image,
)

AS_THEY_ARE: Final = frozenset({"same", "readOnly"})
"""Forms whose inner paths are those of a pod."""
READ_ONLY: Final = frozenset({"told", "readOnly"})
"""Forms of fragments that are never written to."""
MARKED: Final[Mapping[str, Path]] = {"mark": ("",)}
"""A fragment that proves that there is a pod contains it, or is beside the fragments that do."""
NOTHING: Final = (ABSENT, None)
UPSTREAM: Final[Mapping[str, Path]] = {
    "schedulerNamePath": ("spec", "schedulerName"),
    "priorityClassNamePath": ("spec", "priorityClassName"),
    "imagePath": (*CONTAINER, "image"),
    "labelsPath": ("metadata", "labels"),
    "annotationsPath": ("metadata", "annotations"),
    "resourcesPath": (*CONTAINER, "resources"),
    "resourceClaimsPath": ("spec", "resourceClaims"),
    "podAffinityPath": ("spec", "affinity", "podAffinity"),
    "nodeAffinityPath": ("spec", "affinity", "nodeAffinity"),
    "containersPath": ("spec", "containers"),
    "containerPath": CONTAINER,
}
"""The fragments of a resource interface as paths of a pod."""


Found = tuple[FragmentSpec, Match]


class Assembler(ABC):
    """The forms of fragments that the kinds of one project use. A profile names its assembler.

    It is called whenever a pod is assembled. A form changes only the pod that is being assembled,
    and raises nothing. It reports unreadable values to `PodBuilder.refuse`.
    """

    def __init__(self) -> None:
        self.forms: Mapping[str, FragmentForm] = {**FORMS, **self.own_forms()}

    @abstractmethod
    def own_forms(self) -> Mapping[str, FragmentForm]:
        """Return the project's own forms, by the names that its profiles use."""


@dataclass(slots=True)
class FragmentPod:
    """The paths of one assembled pod.

    `refused` are paths of the object that cannot be read. `overridden` are values of pod fields
    that a later fragment replaces, with their paths in the pod and in the object. `latest` maps a
    path of the pod to the path of its last value in the object.
    """

    specs: Sequence[FragmentSpec]
    assembler: Assembler
    bindings: tuple[Path, ...]
    root: Path
    fragments: list[Fragment] = field(default_factory=list)
    refused: list[tuple[Path, str, Any]] = field(default_factory=list)
    overridden: list[tuple[Path, Path, Any]] = field(default_factory=list)
    latest: dict[Path, Path] = field(default_factory=dict)

    def known_paths(self) -> dict[Path, frozenset[str | int]]:
        """Return the paths of the object that contain fragments, with the keys of these."""
        depth = len(self.root)
        found: dict[Path, set[str | int]] = {self.root: set()}
        for path in (each.path for each in self.fragments if each.path):
            if len(path) > depth and path[:depth] == self.root:
                found[self.root].add(path[depth])
            found.setdefault(path[:-1], set()).add(path[-1])
        return {path: frozenset(keys) for path, keys in found.items()}

    def assemble(self, document: Any, path: Path) -> dict[str, Any]:
        """Assemble the pod of any copy of the document, as far as needed to read `path`.

        This object's own paths do not change.
        """
        found = found_in(self.specs_on(path), document, self.bindings)
        return FragmentPod(self.specs, self.assembler, self.bindings, self.root).settle(found)

    def specs_on(self, path: Path) -> list[FragmentSpec]:
        """Return the specs whose fragments may be on a path of the pod, or change the indices in it."""
        depth = next((at for at, step in enumerate(path) if isinstance(step, int)), len(path))
        forms = self.assembler.forms
        return [
            spec
            for spec in self.specs
            if not forms[spec.form].own_path
            or spec.each is not None
            or spec.pod[:depth] == path[: min(depth, len(spec.pod))]
        ]

    def settle(self, found: Iterable[Found]) -> dict[str, Any]:
        """Assemble the pod from what the specs find in a document, and set the paths of this object."""
        pod: dict[str, Any] = {"metadata": {}, "spec": {"containers": [{}]}}
        self.fragments, self.refused, self.overridden, self.latest = [], [], [], {}
        items: dict[tuple[Path, tuple[Path, ...]], int] = {}
        forms = self.assembler.forms
        for spec, match in found:
            at = spec.pod if spec.each is None else self.item_at(pod, items, spec, match)
            if at is None:
                continue
            if match.path is not None:
                if spec.form == "same" and match.value is not None and len(at) > 1:
                    self.note_overridden(pod, at)
                forms[spec.form].put(self, pod, at, match.path, match.value)
            elif match.value is not None:
                put(pod, at, match.value)  # computed: it can be read only
        # A lookup takes the first match, so the longest path comes first, and the last value.
        self.fragments.reverse()
        self.fragments.sort(key=lambda fragment: (-len(fragment.pod), not fragment.given))
        return pod

    def note_overridden(self, pod: dict[str, Any], at: Path) -> None:
        """Note the value of another fragment that a fragment is about to replace."""
        value = read(pod, at)
        if value in NOTHING or isinstance(value, list):
            return
        fragment = next(
            (each for each in reversed(self.fragments) if each.pod == at and each.given), None
        )
        if fragment is not None and fragment.form in AS_THEY_ARE:
            self.overridden.append((at, fragment.path, value))

    def item_at(
        self,
        pod: dict[str, Any],
        items: dict[tuple[Path, tuple[Path, ...]], int],
        spec: FragmentSpec,
        match: Match,
    ) -> Path | None:
        """Return the path of the spec in the item that the match belongs to, None without an item."""
        assert spec.each is not None
        listed = spec.pod[: spec.each]
        key = (listed, match.bindings[len(self.bindings) :])
        if spec.form == "item" and match.value is None:
            return None
        if key not in items:
            if spec.form != "item":
                return None
            first = all(known != listed for known, _ in items)
            items[key] = self.open_item(pod, listed, first=first)
        return (*listed, items[key], *spec.pod[spec.each + 1 :])

    def open_item(self, pod: dict[str, Any], listed: Path, *, first: bool) -> int:
        """Return the index of a new item. The first container may take the index that no spec fills."""
        found = read(pod, listed)
        value = found if isinstance(found, list) else []
        stated = any(spec.each is None and spec.pod[:3] == CONTAINER for spec in self.specs)
        if listed == CONTAINER[:2] and first and not stated:
            return 0
        put(pod, listed, [*value, {}])
        return len(value)

    def effective(self, pod: dict[str, Any]) -> dict[str, Any]:
        """Return a pod with the operator's values for absent ones."""
        for spec in self.specs:
            if spec.each is None and spec.absent is not None and read(pod, spec.pod) in NOTHING:
                draft = Draft(pod)
                draft.set(spec.pod, spec.absent)
                pod = draft.document
        return pod

    def add(self, pod: Path, path: Path, form: str = "same", *, given: bool = False) -> None:
        """Add a fragment."""
        self.fragments.append(Fragment(pod, path, form, given))
        if given:
            self.latest[pod] = path

    def states_main(self) -> bool:
        """Return whether the kind sets fields of a main container, and never the whole container."""
        of_main = [each.pod for each in self.specs if each.pod[:3] == CONTAINER]
        return bool(of_main) and CONTAINER not in of_main

    def refuse(self, path: Path, what: str, value: Any) -> None:
        """Note a value that is not `what`. The caller that locates pods reports it."""
        self.refused.append((path, what, value))

    def fragment_at(self, path: Path) -> Fragment | None:
        """Return the fragment that contains a path of the pod."""
        return next((each for each in self.fragments if path[: len(each.pod)] == each.pod), None)

    def report(self, path: Path) -> Path:
        """Return the path in the object, or the root of the pod's fragments if there is none."""
        fragment = self.fragment_at(path)
        return self.root if fragment is None else object_path(fragment, path)

    def writable(self, path: Path) -> Fragment | None:
        """Return the fragment to write to: for `readOnly`, the "same" fragment beside it, if any."""
        fragment = self.fragment_at(path)
        if fragment is None or fragment.form not in READ_ONLY:
            return fragment
        beside = (
            each for each in self.fragments if each.pod == fragment.pod and each.form == "same"
        )
        return next(beside, None) if fragment.form == "readOnly" else None

    def writes(self, path: Path, value: Any) -> list[tuple[Path, Any]]:
        """Return the paths and values to set in the object for a value of the pod."""
        fragment = self.writable(path)
        if fragment is None:
            return []
        if fragment.form == "image":
            repository, tag = split_image(str(value))
            tagged = [((*fragment.path, "tag"), tag)] if tag else []
            return [((*fragment.path, "repository"), repository), *tagged]
        if fragment.form == "names" and path[-1] != "name":
            return [(object_path(fragment, path), names_of(value))]
        return [(object_path(fragment, path), value)]

    def item(self, path: Path, value: Any) -> Any:
        """Return an item of a list in the object's notation."""
        fragment = self.fragment_at(path)
        return names_of(value) if fragment is not None and fragment.form == "names" else value


def object_path(fragment: Fragment, path: Path) -> Path:
    """Return the path in the object for a path of the pod in a fragment."""
    rest = path[len(fragment.pod) :]
    if fragment.before and rest and isinstance(rest[0], int):
        rest = (rest[0] - fragment.before, *rest[1:])
    if fragment.form in AS_THEY_ARE:
        return (*fragment.path, *rest)
    if fragment.form == "names":
        return (*fragment.path, *rest[:1])
    return (*fragment.path, "repository") if fragment.form == "image" else fragment.path


def found_in(
    specs: Iterable[FragmentSpec], document: Any, bindings: tuple[Path, ...]
) -> list[Found]:
    """Return what each spec finds in one element."""
    return [
        (spec, match) for spec in specs for match in matches_within(spec.place, document, bindings)
    ]


def fragment_pod_at(
    specs: Sequence[FragmentSpec],
    assembler: Assembler,
    bindings: tuple[Path, ...],
    each_of: Sequence[Found],
) -> FragmentPod | None:
    """Return the pod in one element of the object, None if the object sets nothing of it.

    `each_of` is what the specs find there.
    """
    deciding = [each for each in each_of if each[0].makes_pod] or each_of
    forms = assembler.forms
    if not any(states_pod(forms[spec.form], match.value) for spec, match in deciding):
        return None
    paths = [
        (*match.path, *MARKED.get(spec.form, ()))
        for spec, match in deciding
        if not forms[spec.form].around and match.path is not None
    ]
    return FragmentPod(specs, assembler, bindings, root_of(paths))


def states_pod(form: FragmentForm, value: Any) -> bool:
    """Return whether a value of this form is a fragment of a pod."""
    if form.around:
        return isinstance(value, dict) and value.get(form.around) is not None
    return value is not None


def root_of(paths: Sequence[Path]) -> Path:
    """Return the innermost path that contains all fragments."""
    common = 0
    while paths and all(len(path) > common + 1 for path in paths):
        if len({path[common] for path in paths}) > 1:
            break
        common += 1
    return paths[0][:common] if paths else ()
