"""Lookups in long lists find the same as a scan does."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.objects.lookup import FEW, ListKeys, Lookup, frozen
from webhook.objects.path import ABSENT

SIZES = [0, 1, FEW - 1, FEW, FEW + 1, 3 * FEW]


@pytest.mark.parametrize("size", SIZES)
def test_an_element_is_found_by_its_key_and_content(size: int) -> None:
    elements: list[Any] = [{"key": "a", "content": [each]} for each in range(size)]
    held = Lookup(elements, lambda each: each["key"], lambda one, two: one == two, frozen)
    for content in range(-1, size + 1):
        for key in "ab":
            element = {"key": key, "content": [content]}
            assert held.has(key, element) is (element in elements)
            assert held.has(key, element) is (element in elements)  # from what is kept by now


@pytest.mark.parametrize("size", SIZES)
def test_the_first_map_with_a_member_is_found(size: int) -> None:
    held: list[Any] = [{"name": f"n{each % 5}", "index": each} for each in range(size)]
    held[3:3] = ["no map", {"other": 1}, {"name": ["list"]}]
    keys = ListKeys()
    for wanted in ("n0", "n4", "absent", None, ["list"]):
        found = [each for each in held if isinstance(each, dict) and each.get("name") == wanted]
        for _ in range(2):
            assert keys.find(held, "name", wanted) is (found[0] if found else ABSENT)
