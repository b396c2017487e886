"""Keys that are given twice inside parameters, which decoded JSON does not show."""

from __future__ import annotations

import random
import sys
from typing import Any

import orjson
import pytest

from webhook.devices.configs import find_repeated_keys
from webhook.objects.path import Path

DRIVER = "gpu.nvidia.com"
TWICE = '{"sharing": {"strategy": "MPS", "mpsConfig": {"a": 1, "a": 2}}}'
ONCE = '{"sharing": {"strategy": "MPS", "mpsConfig": {"a": 1, "b": [{"a": 1}, {"a": 2}]}}}'


def review(*parameters: str, at: Path = ("spec", "devices"), driver: str = DRIVER) -> bytes:
    """The body of a review of an object with configurations at a path."""
    configs = ", ".join(
        f'{{"opaque": {{"driver": "{driver}", "parameters": {each}}}}}' for each in parameters
    )
    text = f'{{"config": [{configs}]}}'
    for key in reversed(at):
        text = f'{{"{key}": {text}}}'
    return f'{{"kind": "AdmissionReview", "request": {{"uid": "u", "object": {text}}}}}'.encode()


def path(index: int, at: Path = ("spec", "devices")) -> Path:
    return (*at, "config", index, "opaque", "parameters")


@pytest.mark.parametrize("at", [("spec", "devices"), ("spec", "spec", "devices"), ("spec",)])
def test_claims_templates_and_classes(at: Path) -> None:
    assert find_repeated_keys(review(ONCE, TWICE, ONCE, TWICE, at=at)) == [path(1, at), path(3, at)]
    assert find_repeated_keys(review(ONCE, at=at)) == []


@pytest.mark.parametrize(
    "parameters",
    [
        '{"a": 1, "a": 1}',
        '{"a": null, "a": null}',
        '{"a": 1, "\\u0061": 1}',
        '{"": 1, "": 1}',
        '{"x": [[{"a": {}, "b": 1, "a": {}}]]}',
        '{"x": {"a": 1, "a": 2}, "x": 1}',
        '[{"a": 1, "a": 1}]',
        '{"\\ud83d\\ude00": 1, "😀": 1}',
    ],
)
def test_repeated(parameters: str) -> None:
    assert orjson.loads(review(parameters))
    assert find_repeated_keys(review(parameters)) == [path(0)]


@pytest.mark.parametrize(
    "parameters",
    ['{"a": 1, "A": 1}', '{"a": {"a": {"a": 1}}}', "{}", "null", '"x"', '[{"a": 1}, {"a": 1}]'],
)
def test_not_repeated(parameters: str) -> None:
    assert find_repeated_keys(review(parameters)) == []


def test_the_last_parameters_are_those_that_are_read() -> None:
    assert find_repeated_keys(review(f'{{"x": 1}}, "parameters": {TWICE}')) == [path(0)]
    assert find_repeated_keys(review(f'{TWICE}, "parameters": {{"x": 1}}')) == []


def test_other_drivers_and_other_places_are_not_read() -> None:
    assert find_repeated_keys(review(TWICE, driver="nic.example.com")) == []
    assert find_repeated_keys(review("{}").replace(b'"uid"', b'"uid": "u", "uid"')) == []


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"7",
        b"[]",
        b"\xff\xfe",
        b"\x00{\x00}",
        b'{"request": 7}',
        b'{"request": {"object": []}}',
        b'{"request": {"object": {"spec": 7}}}',
        b'{"request": {"object": {"spec": {"spec": [], "config": {}, "devices": 1}}}}',
        review("[" * 100_000),
        review("[" * 100_000 + "]" * 100_000),
        review('{"a":' * 100_000 + "1" + "}" * 100_000),
        review("9" * 100_000),
    ],
)
def test_any_bytes(raw: bytes) -> None:
    assert find_repeated_keys(raw) == []


@pytest.mark.parametrize("depth", [10, 250])
def test_depths_that_a_review_may_have(depth: int) -> None:
    deep = '{"a":' * depth + '{"b": 1, "b": 2}' + "}" * depth
    assert find_repeated_keys(review(deep)) == [path(0)]


def test_long_numbers_do_not_hide_what_follows() -> None:
    number = "9" * (sys.get_int_max_str_digits() + 1)
    assert find_repeated_keys(review(f'{{"n": {number}, "a": 1, "a": 2}}')) == [path(0)]


def make(chance: random.Random, depth: int = 0) -> tuple[str, bool]:
    """The text of a JSON value, and whether an object in it has a key twice.

    What a later value of the same key replaces is not seen: there is a repeated key anyway.
    """
    form = chance.randrange(3) if depth < 4 else 2
    if form == 2:
        return chance.choice(("1", "1.5e3", '"a\\"b"', "null", "true", "{}", "[]")), False
    inner = [make(chance, depth + 1) for _ in range(chance.randrange(4))]
    if form == 1:
        return "[" + ",".join(text for text, _ in inner) + "]", any(each for _, each in inner)
    keys = [chance.choice("abcdefghijkl") for _ in inner]
    spelt = [chance.choice((f'"{key}"', f'"\\u{ord(key):04x}"')) for key in keys]
    text = ",".join(f"{key} : {each}" for key, (each, _) in zip(spelt, inner, strict=True))
    repeated = len(set(keys)) < len(keys)
    return "{" + text + "}", repeated or any(each for _, each in inner)


def test_generated_parameters() -> None:
    chance, told = random.Random(17), 0
    for _ in range(3_000):
        made: list[tuple[str, Any]] = [make(chance) for _ in range(3)]
        expected = [path(index) for index, (_, repeated) in enumerate(made) if repeated]
        assert find_repeated_keys(review(*(text for text, _ in made))) == expected, made
        told += len(expected)
    assert 500 < told < 8_500
