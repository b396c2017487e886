"""Applies the changes of a decision on the defaulted object to the manifest as it was written."""

from __future__ import annotations

from typing import Any

from webhook.objects.lookup import frozen


def carry(raw: Any, defaulted: Any, final: Any) -> Any:
    """Return the raw manifest with the changes from `defaulted` to `final`, without server defaults.

    `defaulted` has the list items of `raw` at the same indices. `final` shares the values that did
    not change with `defaulted`.
    """
    if final is defaulted:
        return raw
    if isinstance(final, dict) and isinstance(defaulted, dict) and isinstance(raw, dict | None):
        return carry_map(raw or {}, defaulted, final)
    if isinstance(final, list) and isinstance(defaulted, list) and isinstance(raw, list | None):
        return carry_list(raw or [], defaulted, final)
    return final


def carry_map(
    raw: dict[str, Any], defaulted: dict[str, Any], final: dict[str, Any]
) -> dict[str, Any]:
    """Return the map with the keys of `raw` in their order, then the keys that the decision added."""
    result: dict[str, Any] = {}
    for key in (*(k for k in raw if k in final), *(k for k in final if k not in raw)):
        value = final[key]
        if key in defaulted and value is defaulted[key]:
            if key in raw:
                result[key] = raw[key]
        elif key in defaulted and (key in raw or key != "labels"):
            result[key] = carry(raw.get(key), defaulted[key], value)
        else:
            result[key] = value
    return result


def carry_list(raw: list[Any], defaulted: list[Any], final: list[Any]) -> list[Any]:
    """Return the list. Elements found by identity or position keep the form of `raw`."""
    index_of = {id(element): index for index, element in enumerate(defaulted)}
    named = {
        frozen(element.get("name")): index
        for index, element in reversed(list(enumerate(defaulted)))
        if isinstance(element, dict)
    }
    added = len(final) - len(defaulted)
    result = []
    for position, element in enumerate(final):
        index = index_of.get(id(element))
        if index is None and added == 0:
            index = position
        if index is None and isinstance(element, dict) and element.get("name") is not None:
            index = named.get(frozen(element["name"]))
        if index is None or index >= len(raw):
            result.append(element)
        else:
            result.append(carry(raw[index], defaulted[index], element))
    return result
