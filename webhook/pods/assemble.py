"""Pods that a kind states piece by piece: assembled into one, with the place of every piece.

The forms of pieces are listed in webhook/interface/fragment.py. Where several places are of one
value, the last that is set counts; a default goes to the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from webhook.interface.fragment import Part
from webhook.jq.pair import matches_within
from webhook.jq.path import Match
from webhook.objects.draft import Draft
from webhook.objects.path import ABSENT, Assembled, Path, read
from webhook.pods.fragment_forms import FORMS
from webhook.pods.fragments import CONTAINER, Piece, joined_image, named, put, split_image

__all__ = ["PodParts", "joined_image", "parts_of", "split_image", "step_of"]

BEHIND: Final = frozenset(
    {
        *("containers", "also", "items", "more", "variables", "text", "devices", "amount", "name"),
        *("steps", "base", "over", "amounts", "shared", "workspaces"),
    }
)
"""Forms that are put behind what other pieces have put there."""
AS_THEY_ARE: Final = frozenset({"same", "readOnly"})
"""Forms whose inner places are those of a pod."""
READ_ONLY: Final = frozenset({"told", "readOnly"})
"""Forms of pieces that nothing is written to."""
MARKED: Final[Mapping[str, Path]] = {"mark": ("",)}
"""What shows that there is a pod states it, or stands around what does."""
AROUND: Final = {"sparkDriver": "driver", "sparkExecutor": "executor"}
"""Forms that look at values around, and which of these states the pod."""
STAY_PUT: Final = frozenset({"same", "readOnly", "seen", "told"})
"""Forms that set no other place than their own."""
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
"""The fragments of a resource interface as places of a pod."""


Found = tuple[Part, Match]


@dataclass(slots=True)
class PodParts:
    """The places of one assembled pod; `refused` are places of the object that cannot be read.

    `overridden` are values of pod fields that a later piece replaces, with their places of the pod
    and of the object; `latest` is where the last value of a place of the pod is in the object.
    """

    parts: Sequence[Part]
    bindings: tuple[Path, ...]
    root: Path
    pieces: list[Piece] = field(default_factory=list)
    refused: list[tuple[Path, str, Any]] = field(default_factory=list)
    overridden: list[tuple[Path, Path, Any]] = field(default_factory=list)
    latest: dict[Path, Path] = field(default_factory=dict)

    def known(self) -> dict[Path, frozenset[str | int]]:
        """The places that hold pieces, with the keys of these."""
        depth = len(self.root)
        found: dict[Path, set[str | int]] = {self.root: set()}
        for real in (each.real for each in self.pieces if each.real):
            if len(real) > depth and real[:depth] == self.root:
                found[self.root].add(real[depth])
            found.setdefault(real[:-1], set()).add(real[-1])
        return {path: frozenset(keys) for path, keys in found.items()}

    def assemble(self, document: Any, path: Path) -> dict[str, Any]:
        """The pod of any copy of the document, so far as needed to read one place of it.

        Paths go on meaning what they meant.
        """
        found = found_in(parts_on(path, self.parts), document, self.bindings)
        return PodParts(self.parts, self.bindings, self.root).settle(found)

    def settle(self, found: Iterable[Found]) -> dict[str, Any]:
        """The pod of what the parts find in a document, whose places paths mean from now on."""
        pod: dict[str, Any] = {"metadata": {}, "spec": {"containers": [{}]}}
        self.pieces, self.refused, self.overridden, self.latest = [], [], [], {}
        items: dict[tuple[Path, tuple[Path, ...]], int] = {}
        for part, match in found:
            at = part.pod if part.each is None else self.item_at(pod, items, part, match)
            if at is None:
                continue
            if match.path is not None:
                if part.form == "same" and match.value is not None and len(at) > 1:
                    self.note_overridden(pod, at)
                FORMS[part.form](self, pod, at, match.path, match.value)
            elif match.value is not None:
                put(pod, at, match.value)  # computed: it can be read only
        # A path is looked up by the first: the longest place, of several what counts, the last.
        self.pieces.reverse()
        self.pieces.sort(key=lambda piece: (-len(piece.pod), not piece.given))
        return pod

    def note_overridden(self, pod: dict[str, Any], at: Path) -> None:
        """Remember the value that a piece is about to replace, where another piece stated it."""
        held = read(pod, at)
        if held in NOTHING or isinstance(held, list):
            return
        piece = next(
            (each for each in reversed(self.pieces) if each.pod == at and each.given), None
        )
        if piece is not None and piece.form in AS_THEY_ARE:
            self.overridden.append((at, piece.real, held))

    def item_at(
        self,
        pod: dict[str, Any],
        items: dict[tuple[Path, tuple[Path, ...]], int],
        part: Part,
        match: Match,
    ) -> Path | None:
        """The part's place in the item that the match belongs to; None where there is no item."""
        assert part.each is not None
        listed = part.pod[: part.each]
        key = (listed, match.bindings[len(self.bindings) :])
        if part.form == "item" and match.value is None:
            return None
        if key not in items:
            if part.form != "item":
                return None
            first = all(known != listed for known, _ in items)
            items[key] = self.open_item(pod, listed, first=first)
        return (*listed, items[key], *part.pod[part.each + 1 :])

    def open_item(self, pod: dict[str, Any], listed: Path, *, first: bool) -> int:
        """The index of a new item; the first container takes the place that nobody else fills."""
        found = read(pod, listed)
        held = found if isinstance(found, list) else []
        stated = any(part.each is None and part.pod[:3] == CONTAINER for part in self.parts)
        if listed == CONTAINER[:2] and first and not stated:
            return 0
        put(pod, listed, [*held, {}])
        return len(held)

    def effective(self, pod: dict[str, Any]) -> dict[str, Any]:
        """A pod with what the operator uses for values that are absent."""
        for part in self.parts:
            if part.each is None and part.absent is not None and read(pod, part.pod) in NOTHING:
                draft = Draft(pod)
                draft.set(part.pod, part.absent)
                pod = draft.document
        return pod

    def add(self, pod: Path, place: Path, form: str = "same", *, given: bool = False) -> None:
        """Remember where a piece is."""
        self.pieces.append(Piece(pod, place, form, given))
        if given:
            self.latest[pod] = place

    def states_main(self) -> bool:
        """Return whether the kind states the fields of a main container, and never it as a whole."""
        of_main = [each.pod for each in self.parts if each.pod[:3] == CONTAINER]
        return bool(of_main) and CONTAINER not in of_main

    def refuse(self, place: Path, what: str, value: Any) -> None:
        """Remember that a place holds something else than `what`: whoever locates pods tells it."""
        self.refused.append((place, what, value))

    def piece(self, path: Path) -> Piece | None:
        """The piece that a path of the pod lies in."""
        return next((each for each in self.pieces if path[: len(each.pod)] == each.pod), None)

    def real(self, path: Path) -> Path:
        """The place in the object; for what it cannot hold, where the object states the pod."""
        piece = self.piece(path)
        return self.root if piece is None else place_in(piece, path)

    def writable(self, path: Path) -> Piece | None:
        """Return the piece that a value is written to: `readOnly` leaves it to a "same" beside it."""
        piece = self.piece(path)
        if piece is None or piece.form not in READ_ONLY:
            return piece
        beside = (each for each in self.pieces if each.pod == piece.pod and each.form == "same")
        return next(beside, None) if piece.form == "readOnly" else None

    def holds(self, path: Path) -> bool:
        """Whether the object has such a place."""
        return self.writable(path) is not None

    def writes(self, path: Path, value: Any) -> list[tuple[Path, Any]]:
        """What is set in the object for a value of the pod."""
        piece = self.writable(path)
        if piece is None:
            return []
        if piece.form == "image":
            repository, tag = split_image(str(value))
            tagged = [((*piece.real, "tag"), tag)] if tag else []
            return [((*piece.real, "repository"), repository), *tagged]
        if piece.form == "names" and path[-1] != "name":
            return [(place_in(piece, path), named(value))]
        return [(place_in(piece, path), value)]

    def item(self, path: Path, value: Any) -> Any:
        """An item of a list, as the object writes it."""
        piece = self.piece(path)
        return named(value) if piece is not None and piece.form == "names" else value


def place_in(piece: Piece, path: Path) -> Path:
    """Return the place in the object that a path of the pod means in its piece."""
    rest = path[len(piece.pod) :]
    if piece.before and rest and isinstance(rest[0], int):
        rest = (rest[0] - piece.before, *rest[1:])
    if piece.form in AS_THEY_ARE:
        return (*piece.real, *rest)
    if piece.form == "names":
        return (*piece.real, *rest[:1])
    return (*piece.real, "repository") if piece.form == "image" else piece.real


def step_of(name: str, parts: PodParts) -> Assembled:
    """The first step of the paths of an assembled pod."""
    step = Assembled(name)
    step.places = parts
    return step


def found_in(parts: Iterable[Part], document: Any, bindings: tuple[Path, ...]) -> list[Found]:
    """What each of the parts finds in one element."""
    return [
        (part, match) for part in parts for match in matches_within(part.place, document, bindings)
    ]


def parts_on(path: Path, parts: Iterable[Part]) -> list[Part]:
    """The parts whose findings may lie on a path of the pod, or decide on the numbers in it."""
    depth = next((at for at, step in enumerate(path) if isinstance(step, int)), len(path))
    return [
        part
        for part in parts
        if part.form not in STAY_PUT
        or part.each is not None
        or part.pod[:depth] == path[: min(depth, len(part.pod))]
    ]


def parts_of(
    parts: Sequence[Part], bindings: tuple[Path, ...], each_of: Sequence[Found]
) -> PodParts | None:
    """The places of a pod in one element of the object; None where it states nothing of one.

    `each_of` is what the parts find there.
    """
    deciding = [each for each in each_of if each[0].makes_pod] or each_of
    if not any(says_something(part, match.value) for part, match in deciding):
        return None
    places = [
        (*match.path, *MARKED.get(part.form, ()))
        for part, match in deciding
        if part.form not in AROUND and match.path is not None
    ]
    return PodParts(parts, bindings, root_of(places))


def says_something(part: Part, value: Any) -> bool:
    """Whether what a part found says something of a pod."""
    if part.form in AROUND:
        return isinstance(value, dict) and value.get(AROUND[part.form]) is not None
    return value is not None


def root_of(paths: Sequence[Path]) -> Path:
    """The innermost place that all pieces lie below."""
    common = 0
    while paths and all(len(path) > common + 1 for path in paths):
        if len({path[common] for path in paths}) > 1:
            break
        common += 1
    return paths[0][:common] if paths else ()
