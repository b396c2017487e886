"""Places in a JSON document."""

from __future__ import annotations

import json
from typing import Any

import jsonpatch
import jsonpointer
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.devices.classes import device_classes_of
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.references import References
from webhook.fields.gpu.use import GpuNames
from webhook.objects.path import (
    ABSENT,
    Path,
    _short_token,
    _show_key,
    decode,
    display,
    encode,
    read,
)

DOCUMENT = {"a": [{"b": None}, 2], "": {"/~": 0}}
PATHS = st.lists(st.text() | st.integers(0, 20), max_size=6).map(tuple)


@pytest.mark.parametrize(
    "path, value",
    [
        ((), DOCUMENT),
        (("a", 0, "b"), None),
        (("a", 1), 2),
        (("", "/~"), 0),
        (("a", 2), ABSENT),
        (("a", -1), ABSENT),
        (("a", "0"), ABSENT),
        ((0,), ABSENT),
        (("a", 1, "x"), ABSENT),
        (("a", 0, "b", "c"), ABSENT),
        (("x", "y"), ABSENT),
    ],
)
def test_reading_gives_the_value_or_absent(path: Path, value: Any) -> None:
    assert read(DOCUMENT, path) is value


def test_absent_is_falsy_and_shows_its_name() -> None:
    assert not ABSENT
    assert repr(ABSENT) == "absent"


@given(PATHS)
def test_a_pointer_decodes_to_the_tokens_it_was_made_of(path: Path) -> None:
    text = encode(path)
    assert decode(text) == tuple(map(str, path))
    assert jsonpointer.JsonPointer(text).parts == [str(step) for step in path]


def test_a_pointer_escapes_tildes_before_slashes() -> None:
    assert encode(("a/b~c", "~1", 0, "")) == "/a~1b~0c/~01/0/"


def test_digits_become_indices_only_when_asked() -> None:
    assert decode("/a/0/01/-", indices=True) == ("a", 0, "01", "-")
    assert decode("/a/0") == ("a", "0")
    assert decode("") == ()


@pytest.mark.parametrize("text", ["a", "a/b", "/~", "/~2", "#/a"])
def test_text_that_is_no_pointer_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="JSON Pointer"):
        decode(text)


@pytest.mark.parametrize(
    "path, text",
    [
        ((), "(whole object)"),
        (("spec", "containers", 0, "image"), "spec.containers[0].image"),
        ((0, "a"), "[0].a"),
        (("metadata", "annotations", "a/b"), 'metadata.annotations["a/b"]'),
        (("a", "", "x"), 'a[""].x'),
        (('say "hi"\n',), '["say \\"hi\\"\\n"]'),
        (("\u202e", "é\ud800"), '["\\u202e"]["\\u00e9\\ud800"]'),
        (("runai-x_y", "0"), "runai-x_y.0"),
    ],
)
def test_places_are_shown_as_people_write_them(path: Path, text: str) -> None:
    assert display(path) == text


def test_our_pointers_are_those_of_the_patch_oracle() -> None:
    document = {"a/b": {"~": [1]}}
    patch = [{"op": "remove", "path": encode(("a/b", "~", 0))}]
    assert jsonpatch.apply_patch(document, json.dumps(patch)) == {"a/b": {"~": []}}


@pytest.mark.parametrize("key", ["k" * 10**6, "~/" * 10**5, "\u00e9" * 10**5])
def test_a_key_of_megabytes_is_not_kept_and_is_shown_in_part(key: str) -> None:
    kept = _short_token.cache_info().currsize, _show_key.cache_info().currsize
    assert decode(encode((key,))) == (key,)
    display(("a", key[:600]))
    assert _short_token.cache_info().currsize == kept[0]
    assert len(display(("a", key, key))) < 10_000


def test_a_name_of_a_resource_of_megabytes_is_not_kept() -> None:
    classes = device_classes_of(References(), InstallationConfig())
    names = GpuNames(("*/gpu",), classes, classes.is_gpu)
    long = f"{'x' * 10**6}/gpu"
    assert names.among({long: "1", "a/gpu": "1", "b": "1"}) == [long, "a/gpu"]
    assert set(names.known) == {"cpu", "memory", "a/gpu", "b"}
