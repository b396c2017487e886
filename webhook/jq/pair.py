"""Pairs ids with values, by the elements of the iterators that they share."""

from collections.abc import Iterable
from typing import Any

from webhook.jq.nodes import path_text
from webhook.jq.path import Match, Path, Program, QueryError

Bindings = tuple[Path, ...]


def check_pairing(
    values: Program, ids: Program, what: str = "ids", *, deeper: bool = False
) -> str | None:
    """Return why the two cannot be evaluated per element, None if they can.

    `what` names the second one in the answer. With `deeper`, values may go through
    further collections inside the elements of the ids.
    """
    for program in (values, ids):
        if not program.nested:
            return f"`{program.text}` iterates over {_list_iterators(program)} side by side"
    depth = len(ids.iterators) if deeper else len(values.iterators)
    if values.iterators[:depth] != ids.iterators:
        return (
            f"`{values.text}` iterates over {_list_iterators(values)}, "
            f"but its {what} `{ids.text}` over {_list_iterators(ids)}"
        )
    return None


def pair_values(values: Program, ids: Program, document: Any) -> list[tuple[str, Match]]:
    """Return each value that is not null with its id, in the order of the document."""
    if reason := check_pairing(values, ids):
        raise QueryError(reason)
    owners = matches_by_element(ids, document)
    names = _names(ids, owners, document)
    pairs = []
    found = owners if values is ids else matches_by_element(values, document)
    if values.by_number and len(found) != len(owners):
        reason = f"{values.text} gives {len(found)} results, its ids {ids.text} {len(owners)}"
        raise QueryError(reason)
    for match in found:
        if match.value is None:
            continue
        if match.bindings not in names:
            raise QueryError(f"{ids.text}: no id for the value at {_place(match)}")
        pairs.append((names[match.bindings], match))
    return pairs


def matches_within(values: Program, document: Any, bindings: Bindings) -> list[Match]:
    """Return the outputs of a path in one element, including those of inner collections."""
    if not bindings:
        return values.matches_or_none(document)
    return values.matches_of(document, bindings)


def _list_iterators(program: Program) -> str:
    return " and ".join(f"`{text}`" for text in program.iterators) or "nothing"


def matches_by_element(program: Program, document: Any) -> list[Match]:
    """Return the outputs, by element if the whole stream would drop some of them."""
    if program.elementwise:
        return program.matches_or_none(document)
    # `.a[].x // 1` as a whole drops elements; evaluated for each element it does not.
    return [
        match
        for bindings in program.elements(document)
        for match in program.matches_of(document, bindings)
    ]


def _names(ids: Program, matches: Iterable[Match], document: Any) -> dict[Bindings, str]:
    owners: dict[str, Match] = {}
    names: dict[Bindings, str] = {}
    for match in matches:
        name = _text(ids, match)
        if len(match.bindings) > 1:
            name = "/".join((*_enclosing(match.bindings, document), name))
        if name in owners:
            places = f"{_place(owners[name])} and at {_place(match)}"
            raise QueryError(f'{ids.text}: the id "{name}" is given twice, at {places}')
        owners[name] = match
        names[match.bindings] = name
    return names


def _text(ids: Program, match: Match) -> str:
    value = match.value
    if value is None or value == "":
        raise QueryError(f"{ids.text}: the id at {_place(match)} is empty")
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise QueryError(f"{ids.text}: the id at {_place(match)} is neither text nor a number")
    return f"{value:.0f}" if isinstance(value, float) and value.is_integer() else str(value)


def _enclosing(bindings: Bindings, document: Any) -> list[str]:
    """Return what distinguishes the elements around the innermost: key, `name`, or position."""
    names = []
    for path in bindings[:-1]:
        element = document
        for key in path:
            element = element[key]
        name = element.get("name") if isinstance(element, dict) else None
        by_name = isinstance(path[-1], int) and isinstance(name, str) and name != ""
        names.append(str(name if by_name else path[-1]))
    return names


def _place(match: Match) -> str:
    if match.path is not None:
        return path_text(match.path)
    return path_text(match.bindings[-1]) if match.bindings else path_text(None)
