"""Finds out where an added value came from, and what decided whether it was added."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.e2e.testbed.probe.kinds import Json
from tests.e2e.testbed.probe.observations import Seen

_PRESENT = "(present)"
_Token = str | int | bool | None


class UnexplainedError(Exception):
    """Answers differ and nothing that was sent explains it: an input is missing."""


@dataclass(frozen=True, slots=True)
class Explained:
    """One rule without its path, and the places where it acted."""

    rule: Json
    seen: tuple[Seen, ...]


def explain(seen: list[Seen]) -> list[Explained]:
    """Return rules that account for every place of `seen`. Raises UnexplainedError."""
    added = [one for one in seen if one.added]
    values = _distinct(one.value for one in added)
    if len(values) > 1 and (source := _source(added)):
        # A copy of nothing adds nothing, so such places say nothing about conditions.
        relevant = [one for one in seen if one.added or _read(one, source) is not None]
        rule: Json = {"copyFrom": source}
        return [Explained({**rule, **_when(relevant, added)}, tuple(added))]
    explained = []
    for value in values:
        same = [one for one in added if one.value == value]
        explained.append(Explained({"value": value, **_when(seen, same)}, tuple(same)))
    return explained


def _distinct(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def _source(added: list[Seen]) -> Json | None:
    candidates: Iterator[Json] = (
        *({"sibling": key} for key in sorted(added[0].parent)),
        *({"at": path} for path in _objects(added[0].answer.sent)),
    ).__iter__()
    for candidate in candidates:
        if all(_read(one, candidate) == one.value for one in added):
            return candidate
    return None


def _objects(value: Json, path: str = "") -> Iterator[str]:
    for key, inner in value.items():
        here = f"{path}.{key}" if path else key
        if isinstance(inner, dict):
            yield here
            yield from _objects(inner, here)


def _read(seen: Seen, source: Json) -> Any:
    if "sibling" in source:
        return seen.parent.get(source["sibling"])
    value: Any = seen.answer.sent
    for key in str(source["at"]).split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _when(seen: list[Seen], acted: list[Seen]) -> Json:
    if len(acted) == len(seen):
        return {}
    idle = [one for one in seen if one not in acted]
    keys = sorted({key for one in seen for key in one.parent})
    roots = sorted({key for one in seen for key in one.answer.sent})
    for place in (*({"sibling": key} for key in keys), *({"at": key} for key in roots)):
        decides = _separates(
            [_token(one, place) for one in acted], [_token(one, place) for one in idle]
        )
        if decides:
            return {"when": {**place, **decides}}
    alone = {tuple(sorted(one.parent)) for one in acted}
    if len(alone) == 1 and not alone & {tuple(sorted(one.parent)) for one in idle}:
        return {"when": {"only": list(alone.pop())}}
    shown = [(one.answer.kind, one.parent, one.value) for one in (*acted[:3], *idle[:3])]
    raise UnexplainedError(f"no key decides between {shown}")


def _token(seen: Seen, place: Json) -> _Token:
    value = _read(seen, place)
    return value if isinstance(value, (str, bool, int)) or value is None else _PRESENT


def _open_ended(token: _Token) -> bool:
    """Tell whether `token` stands for any value, where words and truth values stand for one."""
    return token == _PRESENT or (isinstance(token, int) and not isinstance(token, bool))


def _separates(acted: list[_Token], idle: list[_Token]) -> Json | None:
    on, off = set(acted), set(idle)
    if on & off:
        return None
    if on == {None}:
        return {"in": [None]}
    if off == {None} and all(_open_ended(token) for token in on):
        return {"notIn": [None]}
    if _PRESENT in on:
        return None
    return {"in": sorted(on, key=lambda token: (token is not None, str(token)))}
