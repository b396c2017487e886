"""Places of an object that pods are made of already, so that no second definition judges them again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from webhook.interface.fragment import Part
from webhook.objects.path import Path
from webhook.pods.assemble import PodParts

CONTAINER_LISTS: Final = frozenset({"containers", "initContainers", "ephemeralContainers"})


class Location(Protocol):
    """What is read of a pod location."""

    @property
    def spec_path(self) -> Path: ...
    @property
    def metadata_path(self) -> Path | None: ...
    @property
    def extra(self) -> tuple[tuple[Path, object], ...]: ...
    @property
    def parts(self) -> PodParts | None: ...


class Taken:
    """The places of pods that have been located."""

    __slots__ = ("around", "pieces", "whole")

    def __init__(self, locations: Iterable[Location]) -> None:
        self.whole: set[Path] = set()
        self.pieces: set[Path] = set()
        for each in locations:
            if each.parts is not None:
                self.pieces.update(piece.real for piece in each.parts.pieces if piece.real)
                continue
            self.whole.add(each.spec_path)
            self.whole.update(path for path, _ in each.extra)
            if each.metadata_path is not None:
                self.whole.add(each.metadata_path)
        self.around = {path[:size] for path in self.pieces for size in range(len(path) + 1)}

    def holds(self, path: Path) -> bool:
        """Whether a place is in a known pod, or is, holds or lies in a known piece of one."""
        heads = {path[:length] for length in range(len(path) + 1)}
        if not heads.isdisjoint(self.whole) or not heads.isdisjoint(self.pieces):
            return True
        return path in self.around


def makes_container(part: Part) -> bool:
    """Whether a piece is a container, a list of such, or an image: what a pod cannot be without."""
    section, *rest = part.pod
    if section != "spec" or not rest or rest[0] not in CONTAINER_LISTS:
        return False
    return len(rest) <= 2 or rest[2:] == ["image"]
