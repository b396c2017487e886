"""Drafts and patches, with jsonpatch as an independent reader of what we emit."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.objects.draft import Draft, PatchError, diff, same
from webhook.objects.path import ABSENT, Path, read

# Not "-": jsonpatch takes it for the end of a list even in an object.
NAMES = st.sampled_from(["a", "b", "", "/", "~", "~1", "a/b~c", "é\U0001f600", "0"])
KEYS = NAMES | st.text(max_size=3).filter(lambda key: key != "-")
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([0.0, 1.0, 0.5, -1.0])
    | st.text(max_size=2)
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


def exact(value: Any) -> str:
    """A text in which 1, 1.0 and true differ and the order of keys does not."""
    return json.dumps(value, sort_keys=True)


def applied(document: Any, operations: list[dict[str, Any]]) -> Any:
    """What jsonpatch makes of it; the document is wrapped so that a root of any type will do."""
    moved = [{**operation, "path": "/x" + operation["path"]} for operation in operations]
    return jsonpatch.apply_patch({"x": copy.deepcopy(document)}, json.dumps(moved))["x"]


@given(JSON, JSON)
@settings(max_examples=200, deadline=None)
def test_applying_the_difference_gives_the_new_document(old: Any, new: Any) -> None:
    before, wanted = exact(old), exact(new)
    operations = diff(old, new)
    assert exact(applied(old, operations)) == wanted
    assert exact(applied(old, operations)) == wanted
    assert (exact(old), exact(new)) == (before, wanted)
    assert (operations == []) == (before == wanted)


@given(st.lists(JSON, max_size=8), st.data())
@settings(max_examples=100, deadline=None)
def test_lists_that_share_items_differ_only_where_they_differ(items: list[Any], data: Any) -> None:
    start = data.draw(st.integers(0, len(items)))
    end = data.draw(st.integers(start, len(items)))
    inserted = data.draw(st.lists(JSON, max_size=3))
    new = [*items[:start], *inserted, *items[end:]]
    operations = diff(items, new)
    assert exact(applied(items, operations)) == exact(new)
    top = [operation for operation in operations if operation["path"].count("/") == 1]
    assert len(top) <= max(end - start, len(inserted)) or len(items) == len(new)


@given(JSON)
def test_a_document_does_not_differ_from_itself_or_its_copy(document: Any) -> None:
    assert diff(document, document) == []
    assert diff(document, copy.deepcopy(document)) == []
    assert same(document, copy.deepcopy(document))


def test_equal_texts_and_numbers_need_not_be_one_object() -> None:
    text = '{"a": ["' + "long text " * 5 + '", 123456789, 0.25]}'
    assert diff(json.loads(text), json.loads(text)) == []


@given(JSON, JSON)
@settings(deadline=None)
def test_sameness_is_that_of_json_text(old: Any, new: Any) -> None:
    assert same(old, new) == (exact(old) == exact(new))


def places(document: Any, path: Path = ()) -> list[Path]:
    """Every place in a document, the root first."""
    members: Any = ()
    if isinstance(document, dict):
        members = document.items()
    elif isinstance(document, list):
        members = enumerate(document)
    return [path, *(place for step, value in members for place in places(value, (*path, step)))]


def mutate(draft: Draft, mirror: list[Any], data: Any) -> None:
    """One random write, to the draft and to a plain deep copy of the same document."""
    path = data.draw(st.sampled_from(places(draft.document)))
    value = data.draw(JSON)
    target = read(mirror[0], path)
    kind = data.draw(st.sampled_from(["set", "member", "insert", "append", "remove", "own"]))
    holder: Any = mirror if not path else read(mirror[0], path[:-1])
    step: Any = path[-1] if path else 0
    if kind == "set":
        draft.set(path, value)
        holder[step] = copy.deepcopy(value)
    elif kind == "member" and (target is None or isinstance(target, dict)):
        key, inner = data.draw(KEYS), data.draw(KEYS)
        below = (target or {}).get(key)
        if below is not None and not isinstance(below, dict):
            return
        draft.set((*path, key, inner), value)
        holder[step] = {**(target or {}), key: {**(below or {}), inner: copy.deepcopy(value)}}
    elif kind in ("insert", "append") and (target is None or isinstance(target, list)):
        index = data.draw(st.integers(0, len(target or [])))
        if kind == "insert":
            draft.insert(path, index, value)
        else:
            index = len(target or [])
            draft.append(path, value)
        holder[step] = [*(target or [])[:index], copy.deepcopy(value), *(target or [])[index:]]
    elif kind == "remove" and path:
        draft.remove(path)
        del holder[step]
    elif kind == "own" and isinstance(target, dict):
        owned: Any = draft.own(path)
        owned["owned"] = value
        target["owned"] = copy.deepcopy(value)


@given(JSON, st.data())
@settings(max_examples=150, deadline=None)
def test_a_draft_does_what_plain_writes_to_a_deep_copy_do(document: Any, data: Any) -> None:
    before = exact(document)
    draft, mirror = Draft(document), [copy.deepcopy(document)]
    for _ in range(data.draw(st.integers(0, 8))):
        mutate(draft, mirror, data)
        assert exact(draft.document) == exact(mirror[0])
    assert exact(document) == before
    assert exact(applied(document, diff(document, draft.document))) == exact(mirror[0])
    if exact(mirror[0]) != before:
        assert draft.changed


def test_values_handed_in_are_never_changed_by_later_writes() -> None:
    shared = {"limits": {"cpu": "1"}}
    draft = Draft({})
    draft.set(("a",), shared)
    draft.set(("b",), shared)
    draft.set(("a", "limits", "cpu"), "2")
    assert shared == {"limits": {"cpu": "1"}}
    assert draft.document == {"a": {"limits": {"cpu": "2"}}, "b": shared}


def test_operations_do_not_follow_later_writes() -> None:
    original: dict[str, Any] = {}
    draft = Draft(original)
    draft.set(("spec", "a"), 1)
    operations = diff(original, draft.document)
    draft.set(("spec", "b"), 2)
    assert operations == [{"op": "add", "path": "/spec", "value": {"a": 1}}]


def test_an_absent_or_null_parent_is_added_whole() -> None:
    original = {"spec": {"x": None, "same": {"y": 1}}}
    draft = Draft(original)
    draft.set(("spec", "resources", "limits", "cpu"), "1")
    draft.set(("spec", "resources", "limits", "memory"), "1Gi")
    draft.set(("spec", "x", "y"), 1)
    assert diff(original, draft.document) == [
        {"op": "replace", "path": "/spec/x", "value": {"y": 1}},
        {
            "op": "add",
            "path": "/spec/resources",
            "value": {"limits": {"cpu": "1", "memory": "1Gi"}},
        },
    ]
    assert draft.document["spec"]["same"] is original["spec"]["same"]


def test_only_the_spine_is_copied_and_each_container_once() -> None:
    original = {"a": {"b": [{"c": 1}, {"d": 2}]}, "z": {}}
    draft = Draft(original)
    draft.set(("a", "b", 0, "c"), 3)
    spine = draft.own(("a", "b"))
    draft.set(("a", "b", 0, "e"), 4)
    assert draft.own(("a", "b")) is spine
    assert draft.document["z"] is original["z"]
    assert draft.document["a"]["b"][1] is original["a"]["b"][1]


def test_a_container_made_by_the_draft_stays_the_same_while_empty() -> None:
    draft = Draft({})
    owned: Any = draft.own(("a", "b"))
    draft.set(("a", "c"), 1)
    owned["late"] = True
    draft.set(("a", "b", "x"), 1)
    assert draft.document == {"a": {"b": {"late": True, "x": 1}, "c": 1}}


def test_a_container_that_was_replaced_is_not_written_any_more() -> None:
    draft = Draft({"a": {"b": {"c": 1}}})
    draft.set(("a", "b", "c"), 2)
    cut_off = draft.document["a"]["b"]
    draft.set(("a",), {"b": {"new": True}})
    draft.set(("a", "b", "c"), 3)
    assert cut_off == {"c": 2}
    assert draft.document == {"a": {"b": {"new": True, "c": 3}}}


def test_items_that_moved_are_found_at_their_new_index() -> None:
    draft = Draft({"c": [{"n": 1}, {"n": 2}]})
    draft.set(("c", 1, "x"), 1)
    draft.insert(("c",), 0, {"n": 0})
    draft.set(("c", 1, "y"), 1)
    draft.remove(("c", 2))
    draft.append(("c",), {"n": 3})
    draft.set(("c", 2, "z"), 1)
    assert draft.document == {"c": [{"n": 0}, {"n": 1, "y": 1}, {"n": 3, "z": 1}]}


def test_removing_what_is_absent_changes_nothing() -> None:
    document: dict[str, Any] = {"a": {}}
    draft = Draft(document)
    draft.remove(("a", "b", "c"))
    assert draft.document is document
    assert not draft.changed


def test_writing_the_same_value_is_no_change() -> None:
    draft = Draft({"a": {"b": [1]}})
    draft.set(("a", "b"), [1])
    assert not draft.changed
    draft.set(("a", "b"), [True])
    assert draft.changed


@pytest.mark.parametrize(
    "method, arguments, words",
    [
        ("set", (("text", "x"), 1), "text is not an object or a list but text"),
        ("set", (("list", "x"), 1), "list is not an object but a list"),
        ("set", (("map", 0), 1), "map is not a list but an object"),
        ("set", (("list", 5), 1), "list[5] is not an existing item but absent"),
        ("set", (("list", -1), 1), "list[-1] is not an existing item but absent"),
        ("set", (("list", 5, "x"), 1), "list[5] is not an existing item but absent"),
        ("set", (("number", "x"), 1), "number is not an object or a list but a number"),
        ("insert", (("list",), 3, 1), "list[3] is not an existing item but absent"),
        ("insert", (("map",), 0, 1), "map is not a list but an object"),
        ("append", (("map",), 1), "map is not a list but an object"),
        ("append", (("flag",), 1), "flag is not an object or a list but a boolean"),
        ("remove", ((),), "(whole object) is not a member of something but an object"),
        ("own", (("text",),), "text is not an object or a list but text"),
    ],
)
def test_a_step_of_the_wrong_type_is_told_with_its_place(
    method: str, arguments: tuple[Any, ...], words: str
) -> None:
    draft = Draft({"text": "x", "list": [1], "map": {}, "number": 1.5, "flag": True})
    with pytest.raises(PatchError) as caught:
        getattr(draft, method)(*arguments)
    assert str(caught.value) == words


def test_missing_lists_are_made_by_insert_and_append() -> None:
    draft = Draft(None)
    draft.append(("a", "b"), 1)
    draft.insert(("c",), 0, 2)
    assert draft.document == {"a": {"b": [1]}, "c": [2]}
    draft.set((), [])
    draft.append((), 1)
    assert draft.document == [1]
    whole = Draft(None)
    whole.append((), 1)
    assert whole.document == [1]


def test_a_boolean_and_numbers_of_one_size_are_three_values() -> None:
    assert diff({"a": 1}, {"a": True}) == [{"op": "replace", "path": "/a", "value": True}]
    assert diff([1, 2], [1.0]) == [
        {"op": "replace", "path": "/0", "value": 1.0},
        {"op": "remove", "path": "/1"},
    ]
    assert read({"a": 1}, ("b",)) is ABSENT
