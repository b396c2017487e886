"""Fragments of an assembled pod, and helpers for the values that they consist of."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from webhook.objects.path import Path

CONTAINER: Final[Path] = ("spec", "containers", 0)


@dataclass(slots=True)
class Fragment:
    """One path of an assembled pod and its `path` in the object. `told` fragments are read only.

    `given` says whether the object has a value there, `before` how many items of the pod's list
    come from other paths.
    """

    pod: Path
    path: Path
    form: str
    given: bool = False
    before: int = 0


class PodBuilder(Protocol):
    """The pod that the forms of fragments write to."""

    fragments: list[Fragment]
    overridden: list[tuple[Path, Path, Any]]
    latest: dict[Path, Path]

    def add(self, pod: Path, path: Path, form: str = "same", *, given: bool = False) -> None:
        """Add a fragment."""

    def states_main(self) -> bool:
        """Return whether the kind sets fields of a main container, and never the whole container."""

    def refuse(self, path: Path, what: str, value: Any) -> None:
        """Note that the value at a path is not `what`."""


Put = Callable[[PodBuilder, Any, Path, Path, Any], None]
"""Writes a value of the object into a pod. Arguments: builder, pod, pod path, object path, value."""


@dataclass(frozen=True, slots=True)
class FragmentForm:
    """A form in which an object has a fragment of a pod, under a name that profiles use.

    `behind` forms append to what other fragments wrote. `own_path` forms set only their own path.
    `read_only` forms take no default. `empty` forms have nothing of the first container. `around`
    is the key of the value that contains the pod, if the value contains more.
    """

    put: Put
    behind: bool = False
    own_path: bool = False
    read_only: bool = False
    empty: bool = False
    around: str = ""


def names_of(value: Any) -> Any:
    """Return the name of {name}, or the names of a list of them."""
    if isinstance(value, list):
        return [names_of(each) for each in value]
    return value.get("name") if isinstance(value, dict) else value


def split_image(text: str) -> tuple[str, str]:
    """Return repository and tag of an image. A digest counts as a tag."""
    if "@" in text:
        repository, _, digest = text.partition("@")
        return repository, digest
    head, slash, last = text.rpartition("/")
    name, _, tag = last.partition(":")
    return f"{head}{slash}{name}", tag


def join_image(value: Any) -> Any:
    """Return the image of {repository, tag}, None without a repository. Other values are unchanged."""
    if not isinstance(value, dict):
        return value
    repository, tag = value.get("repository"), value.get("tag")
    if not isinstance(repository, str) or not repository:
        return None
    if not isinstance(tag, str) or not tag:
        return repository
    return f"{repository}@{tag}" if tag.startswith("sha256:") else f"{repository}:{tag}"


def put(pod: Any, path: Path, value: Any) -> None:
    """Set one path of a pod that is being assembled, without changing the document's own values."""
    node = pod
    for step in path[:-1]:
        if isinstance(node, dict):
            node[step] = copy_container(node.get(step))
        node = node[step]
    node[path[-1]] = value


def copy_container(value: Any) -> Any:
    """Return a copy of a map or list, a new map for anything else."""
    if isinstance(value, list):
        return [dict(each) if isinstance(each, dict) else each for each in value]
    return dict(value) if isinstance(value, dict) else {}


def mapping(value: Any) -> dict[str, Any]:
    """Return the value if it is a map, else an empty one."""
    return value if isinstance(value, dict) else {}


def put_resource(
    builder: PodBuilder, pod: Any, at: tuple[str, str], path: Path, value: Any
) -> None:
    """Set one amount of the first container, which is read only."""
    if value is None or not isinstance(pod["spec"]["containers"][0], dict):
        return
    container = pod["spec"]["containers"][0]
    resources = mapping(container.get("resources"))
    container["resources"] = {**resources, at[0]: {**mapping(resources.get(at[0])), at[1]: value}}
    builder.add((*CONTAINER, "resources", *at), path, "told", given=True)


def decode_text(value: Any) -> Any:
    """Return the decoded JSON of a text. Other values, and text that is not JSON, are unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
