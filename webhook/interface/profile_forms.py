"""The notation of paths, kinds, flags and names in a profile, and their types after reading."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, Strict

from webhook.documents.model import DocumentPart, WrittenAs, fault, faults
from webhook.documents.read_model import show_value
from webhook.interface.injected_items import Injected, faults_of, read_injected
from webhook.jq.path import Program
from webhook.jq.programs import compile_path, compile_place
from webhook.objects.path import Path


@dataclass(frozen=True, slots=True)
class GroupKind(DocumentPart):
    """A group and kind."""

    group: str
    """API group, "" for the core group."""
    kind: Annotated[str, Field(min_length=1)]
    """The kind of the objects."""


def listed(value: Any) -> Any:
    """Convert a single string to a list."""
    return [value] if isinstance(value, str) else value


def folded(text: str | None) -> str | None:
    """Convert an instance name to lower case, for comparison."""
    return text.casefold() if text else None


def pair(kind: GroupKind) -> tuple[str, str]:
    """Convert a kind to a pair of group and kind."""
    return kind.group, kind.kind


def pairs(kinds: list[GroupKind]) -> frozenset[tuple[str, str]]:
    """Convert kinds to pairs of group and kind."""
    return frozenset(pair(each) for each in kinds)


def maybe_path(text: str) -> Program | None:
    """Compile a path that can compute a value. The empty string is None."""
    return compile_path(text) if text else None


def maybe_place(text: str) -> Program | None:
    """Compile a path of the object. The empty string is None."""
    return compile_place(text) if text else None


def known(places: list[Program | None]) -> tuple[Program, ...]:
    """Compile the paths that are set."""
    return tuple(each for each in places if each is not None)


ITEMS = re.compile(r"(?:\.[A-Za-z_][A-Za-z0-9_]*)+\[\](?:\.[A-Za-z_][A-Za-z0-9_]*)*", re.ASCII)


def pod_place(text: str) -> tuple[Path, int | None]:
    """Convert a plain path of a pod, and return the step that means all items of a list."""
    if compile_place(text).is_plain:
        steps = re.findall(r"\[\d+\]|[A-Za-z_][A-Za-z0-9_]*", text)
        return tuple(int(each[1:-1]) if each[0] == "[" else each for each in steps), None
    path, item = path_of_items(text)
    if item is None:
        fix = "write keys and indices, and `[]` once at most"
        raise fault("not-plain", f"`{show_value(text)}` is not plain", fix)
    return path, item


def path_of_items(text: str) -> tuple[Path, int | None]:
    """Convert `.a.b[].c` to the path of the first item, and return the step of the items."""
    if not ITEMS.fullmatch(text):
        return (), None
    before, _, after = text.partition("[]")
    steps = tuple(before[1:].split("."))
    return (*steps, 0, *after[1:].split(".")) if after else (*steps, 0), len(steps)


def read_content(content: dict[str, list[dict[str, Any]]]) -> Injected:
    """Read containers and items in the form of the setting for injected content."""
    if found := list(faults_of(content)):
        raise faults("injected-items", found)
    return read_injected(content, lambda *_: None)


Flag = Annotated[bool, Strict()]
Count = Annotated[int, Strict(), Field(ge=0)]
Folded = Annotated[str, AfterValidator(str.casefold)]
Texts = Annotated[tuple[str, ...], BeforeValidator(listed)]
TextSet = Annotated[frozenset[str], WrittenAs(list[str], frozenset)]
Place = Annotated[Program, WrittenAs(Annotated[str, Field(min_length=1)], compile_place)]
MaybePlace = Annotated[Program | None, WrittenAs(str, maybe_place)]
Bound = Annotated[Program | None, WrittenAs(str, maybe_path)]
Places = Annotated[
    tuple[Program, ...],
    WrittenAs(Annotated[list[MaybePlace], BeforeValidator(listed)], known),
]
PodPlace = Annotated[
    tuple[Path, int | None], WrittenAs(Annotated[str, Field(min_length=1)], pod_place)
]
Kinds = Annotated[frozenset[tuple[str, str]], WrittenAs(list[GroupKind], pairs)]
