"""Pieces of an assembled pod: where each is in the object, and the values that they are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

from webhook.objects.path import Path

CONTAINER: Final[Path] = ("spec", "containers", 0)


@dataclass(slots=True)
class Piece:
    """One place of an assembled pod and the object's own; `told` ones can be read only.

    `given` says whether the object has a value there, `before` how many items of the pod's list
    are not this place's.
    """

    pod: Path
    real: Path
    form: str
    given: bool = False
    before: int = 0


class Pieces(Protocol):
    """What the forms of pieces are put into."""

    pieces: list[Piece]
    overridden: list[tuple[Path, Path, Any]]
    latest: dict[Path, Path]

    def add(self, pod: Path, place: Path, form: str = "same", *, given: bool = False) -> None:
        """Remember where a piece is."""

    def states_main(self) -> bool:
        """Return whether the kind states the fields of a main container, and never it as a whole."""

    def refuse(self, place: Path, what: str, value: Any) -> None:
        """Remember that a place holds something else than `what`."""


def named(value: Any) -> Any:
    """The name of {name}, and of a list of such the names."""
    if isinstance(value, list):
        return [named(each) for each in value]
    return value.get("name") if isinstance(value, dict) else value


def split_image(text: str) -> tuple[str, str]:
    """Repository and tag of an image; a digest counts as a tag."""
    if "@" in text:
        repository, _, digest = text.partition("@")
        return repository, digest
    head, slash, last = text.rpartition("/")
    name, _, tag = last.partition(":")
    return f"{head}{slash}{name}", tag


def joined_image(value: Any) -> Any:
    """The image of {repository, tag}; None without a repository, others as they are."""
    if not isinstance(value, dict):
        return value
    repository, tag = value.get("repository"), value.get("tag")
    if not isinstance(repository, str) or not repository:
        return None
    if not isinstance(tag, str) or not tag:
        return repository
    return f"{repository}@{tag}" if tag.startswith("sha256:") else f"{repository}:{tag}"


def put(pod: Any, path: Path, value: Any) -> None:
    """Set one place of a pod that is being made; what it holds of the document stays as it is."""
    node = pod
    for step in path[:-1]:
        if isinstance(node, dict):
            node[step] = copied(node.get(step))
        node = node[step]
    node[path[-1]] = value


def copied(value: Any) -> Any:
    """A map or list of one's own; a new map for what is absent or cannot hold anything."""
    if isinstance(value, list):
        return [dict(each) if isinstance(each, dict) else each for each in value]
    return dict(value) if isinstance(value, dict) else {}


def mapping(value: Any) -> dict[str, Any]:
    """The value if it is a map, else an empty one."""
    return value if isinstance(value, dict) else {}
