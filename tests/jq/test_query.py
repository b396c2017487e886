"""Native jq paths: what they yield, where, and what is left to jq."""

import pickle
import re
from typing import Any

import pytest

from webhook.jq.pair import check_pairing, pair_values
from webhook.jq.parse import MAX_NESTING
from webhook.jq.path import Match, Program, QueryError, Unsupported, compile_query

ROWS = [{"x": None}, {"x": 2}, {}]


def program(text: str) -> Program:
    compiled = compile_query(text)
    assert isinstance(compiled, Program), compiled
    return compiled


def refused(text: str) -> Unsupported:
    compiled = compile_query(text)
    assert isinstance(compiled, Unsupported), compiled
    return compiled


def values(text: str, document: Any) -> list[Any]:
    return [match.value for match in program(text).matches(document)]


def paths(text: str, document: Any) -> list[Any]:
    return [match.path for match in program(text).matches(document)]


# `//` is a stream operator: table 4.4 of the reference.


@pytest.mark.parametrize(
    "text, document, expected",
    [
        (".a[].x // 1", {"a": ROWS}, [2]),
        (".a[].x // 1", {"a": [{"x": None}, {}]}, [1]),
        (".a[]? // 1", {}, [1]),
        (".a[] | .x // 1", {"a": ROWS}, [1, 2, 1]),
        (".b // 1", {"b": False}, [1]),
        ("(.r // 1) * (.a[].n // 1)", {"a": [{"n": 2}, {}]}, [2]),
        ("(.r // 3) * 2", {"r": False}, [6]),
        (".n // .m // 3", {"m": 0}, [0]),
        (".a // 1 + 2", {}, [3]),
        (".a | .b // 1", {"a": {}}, [1]),
        ("(.a[].x)? // 7", {"a": "text"}, [7]),
    ],
)
def test_an_alternative_takes_the_whole_stream(text: str, document: Any, expected: Any) -> None:
    assert values(text, document) == expected


@pytest.mark.parametrize(
    "text, document, message",
    [
        (".a[].x // 1", {}, "cannot iterate over null at .a"),
        (".a.b // 1", {"a": "s"}, 'cannot index string with "b" at .a'),
        (".x * .y", {"x": 2}, "number and null cannot be multiplied"),
        (".x - .y", {"x": "a", "y": True}, "string and boolean cannot be subtracted"),
        (".x + .y", {"x": 1, "y": "s"}, "number and string cannot be added"),
        (".x + 1", {"x": True}, "boolean and number cannot be added"),
        (".x + .y", {"x": [1], "y": [2]}, r"array \+ array is not native"),
        ("(.x + .y)?", {"x": [1]}, r"array \+ null is not native"),
        (".x * .y", {"x": "a", "y": 10**9}, r"string \* number is not native"),
        (".x * .x", {"x": 1e300}, "too large"),
        (".x * 1.5", {"x": 10**400}, "too large"),
        (".a[]", {"a": 3}, "cannot iterate over number at .a"),
        (".a[0]", {"a": {}}, "cannot index object with 0 at .a"),
        (".a[].b.c", {"a": [{}, {"b": True}]}, r'cannot index boolean with "c" at .a\[1\].b'),
        ('.a["x/y"].b', {"a": {"x/y": 1}}, r'cannot index number with "b" at .a\["x/y"\]'),
        (".a.b[]", {"a": []}, 'cannot index array with "b" at .a'),
        (".a | to_entries[] | .key", {"a": "s"}, "string has no keys at .a"),
        (".a | to_entries[]? | .key", {}, "null has no keys at .a"),
        ("1 | .a", {}, 'cannot index number with "a" at a computed value'),
    ],
)
def test_an_error_names_the_expression_and_the_place(
    text: str, document: Any, message: str
) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        program(text).matches(document)
    assert str(caught.value).startswith(f"{text}: ")


# The constructs met in definitions: table 4.5 of the reference.

DOCUMENT = {
    "a": [{"b": 1, "k": "v"}, {"b": 2}],
    "m": {"z": {"b": 3}, "c": {"b": 4}},
    "a-b": {"x/y": 5},
    "n": 6,
}


@pytest.mark.parametrize(
    "text, expected",
    [
        (".", [()]),
        (".n", [("n",)]),
        ('."a-b"', [("a-b",)]),
        ('.["a-b"]["x/y"]', [("a-b", "x/y")]),
        ('.m["z"].b', [("m", "z", "b")]),
        (".a[]", [("a", 0), ("a", 1)]),
        (".a[].b", [("a", 0, "b"), ("a", 1, "b")]),
        (".a[] | .b", [("a", 0, "b"), ("a", 1, "b")]),
        (".m | .[] | .b", [("m", "c", "b"), ("m", "z", "b")]),
        (".m | to_entries[] | .value.b", [("m", "c", "b"), ("m", "z", "b")]),
        (".m | to_entries | .[].value", [("m", "c"), ("m", "z")]),
        (".a | to_entries[] | select(.key == 1) | .value", [("a", 1)]),
        (".a[1]", [("a", 1)]),
        (".a[-1].b", [("a", 1, "b")]),
        (".a.[7].b", [("a", 7, "b")]),
        (".n[]?", []),
        (".n.x.y??", []),
        (".a[].b.c?", []),
        ("(.a[1].b)", [("a", 1, "b")]),
        ('.a[] | select(.k == "v")', [("a", 0)]),
        ('.a[] | select("v" == .k) | .b', [("a", 0, "b")]),
        (".a[] | select(.b == 2).b", [("a", 1, "b")]),
        (".a[] | select(.k == null)", [("a", 1)]),
        (".x // .n", [("n",)]),
        ("(.x // .a)[0].b", [("a", 0, "b")]),
        (".absent.deeper[3]", [("absent", "deeper", 3)]),
    ],
)
def test_an_assignable_path_yields_places(text: str, expected: list[Any]) -> None:
    assert program(text).assignable
    assert paths(text, DOCUMENT) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        (".m | to_entries[] | .key", [("c", None), ("z", None)]),
        (".a | to_entries[] | .key", [(0, None), (1, None)]),
        (".n // 1", [(6, ("n",))]),
        (".x // 1", [(1, None)]),
        ("1", [(1, None)]),
        ('"1"', [("1", None)]),
        ("-1.5", [(-1.5, None)]),
        ('"\\u00e9\\n"', [("é\n", None)]),
        (".n | 2", [(2, None)]),
        (".n * 2 - 1", [(11, None)]),
        ("1 - 2 - 3 * -1", [(2, None)]),
        (".n + .x", [(6, None)]),
        (".x + .y", [(None, None)]),
        (".a[0].k + .a[0].k", [("vv", None)]),
        ("(.n // 1) * (.a[0].b // 1)", [(6, None)]),
        ("(.x // 1) * (.y // 1)", [(1, None)]),
        ("select(.n == 6.0) | .n + 0", [(6, None)]),
    ],
)
def test_what_can_only_be_read_is_not_assignable(text: str, expected: list[Any]) -> None:
    assert not program(text).assignable
    assert [(match.value, match.path) for match in program(text).matches(DOCUMENT)] == expected


@pytest.mark.parametrize("literal, kept", [("1", [1]), ("true", [True]), ("null", [None, None])])
def test_select_tells_one_from_true_and_null_from_false(literal: str, kept: list[Any]) -> None:
    document = [{"k": 1}, {"k": True}, {"k": None}, {}, {"k": False}, {"k": "1"}]
    assert values(f".[] | select(.k == {literal}) | .k", document) == kept


def test_an_index_before_the_first_element_is_null_and_nowhere() -> None:
    assert program(".[-3].a").matches([1, 2]) == [Match(None, None, ())]
    assert program(".[-1]").matches(None) == [Match(None, None, ())]


def test_a_guard_holds_for_one_step_and_a_second_for_all_before() -> None:
    assert values(".a.b?", {"a": 1}) == []
    with pytest.raises(QueryError):
        values(".a.b?", "text")
    assert values(".a.b??", "text") == []
    assert values("(.a[].b)?", {"a": [{"b": 1}, 2, {"b": 3}]}) == [1]
    assert values(".a[].b?", {"a": [{"b": 1}, 2, {"b": 3}]}) == [1, 3]
    assert values(".?", 1) == [1]


def test_values_are_the_documents_own() -> None:
    own: dict[str, Any] = {}
    for text in (".a[].t", ".a[]|.t", ".a[0].t", "(.x // .a[0].t)"):
        assert program(text).matches({"a": [{"t": own}]})[0].value is own
    assert program(".m|to_entries[]|.value").matches({"m": {"k": own}})[0].value is own


def test_bindings_name_the_elements_outermost_first() -> None:
    document = {"a": [{"m": {"z": 1, "k": 2}}]}
    for text in (".a[].m[]", ".a[] | .m | to_entries[] | .value"):
        assert [match.bindings for match in program(text).matches(document)] == [
            (("a", 0), ("a", 0, "m", "k")),
            (("a", 0), ("a", 0, "m", "z")),
        ]


@pytest.mark.parametrize(
    "text, iterators",
    [
        (".a[]", (".a",)),
        (".a|.[]", (".a",)),
        (".a | to_entries[] | .key", (".a",)),
        ('.["a"] | to_entries[]?? | .value.b', (".a",)),
        ("(.a)[]?.b", (".a",)),
        ('.a[] | select(.k == "v") | .b["x-y"][]', (".a", '.a[].b["x-y"]')),
        (".[][0][]", (".", ".[][0]")),
        ("(.a // .b)[]", ("(.a // .b)",)),
        (".a[].x // 1", (".a",)),
        ("(.r // 1) * (.a[].n // 1)", (".a",)),
        (".a[].x // .b[].x", (".a", ".b")),
        ("(.a | to_entries[] | .key)[]", (".a", ".a[]|key")),
        ("(.a + 1)[] | 1", ("(.a + 1)",)),
        ("1 | .[]", ("1",)),
        (".a", ()),
    ],
)
def test_iterators_are_named_canonically(text: str, iterators: tuple[str, ...]) -> None:
    assert program(text).iterators == iterators


@pytest.mark.parametrize(
    "text, plain",
    [(".", True), (".a.b[0]", True), (".a?.b", True), (".a[]", False), (".a // .b", False),
     ("select(.a == 1)", False), ("1", False), (".a + 1", False)],
)  # fmt: skip
def test_a_plain_path_has_fields_and_indices_only(text: str, *, plain: bool) -> None:
    assert program(text).is_plain is plain


@pytest.mark.parametrize(
    "text, expected",
    [
        (".x[]", []),
        (".x[].a", []),
        (".x[].a[].b", []),
        (".a[].x[]", []),
        (".x | .[] | .a", []),
        (".x | to_entries[] | .key", []),
        (".x[] // 1", [1]),
        (".x.y", [None]),
    ],
)
def test_at_admission_iterating_null_gives_nothing(text: str, expected: list[Any]) -> None:
    assert [match.value for match in program(text).matches_or_none(DOCUMENT)] == expected


def test_at_admission_a_wrong_type_is_still_an_error() -> None:
    for text in (".n[]", ".n.x", ".n | to_entries[] | .key"):
        with pytest.raises(QueryError):
            program(text).matches_or_none(DOCUMENT)


@pytest.mark.parametrize(
    "text, position, found, reason",
    [
        ("", 0, "end of text", "syntax error"),
        ("spec.template", 0, "spec", "left to jq"),
        (".a | any", 5, "any", "left to jq"),
        (".a, .b", 2, ",", "left to jq"),
        (".a == 1", 3, "==", "left to jq"),
        (".a and .b", 3, "and", "left to jq"),
        (".a |", 4, "end of text", "syntax error"),
        (".a b", 3, "b", "syntax error"),
        (".a)", 2, ")", "syntax error"),
        ("(.a", 3, "end of text", "syntax error"),
        (".a. b", 4, "b", "syntax error"),
        ("..", 0, "..", "left to jq"),
        (".a[0:3]", 4, ":", "left to jq"),
        (".a[.b]", 3, ".b", "brackets"),
        (".a[1.5]", 3, "1.5", "brackets"),
        (".a[-\"x\"]", 4, '"x"', "brackets"),
        (".a // []", 6, "[", "left to jq"),
        ("{a: .b}", 0, "{", "left to jq"),
        ("-.a", 0, "-", "minus"),
        ("-1.5[]", 0, "-", "minus"),
        (".a + \"x\"", 5, '"x"', "numbers"),
        (".a * null", 5, "null", "numbers"),
        (".a?//1", 2, "?//", "left to jq"),
        ("12345678901234567", 0, "12345678901234567", "digits"),
        ("1e5", 0, "1e5", "plain numbers"),
        (".a[] * .b[]", 5, "*", "both sides"),
        ("select(.a)", 9, ")", "path == literal"),
        ("select(.a == .b)", 10, "==", "path == literal"),
        ("select(.a[] == 1)", 12, "==", "iterates"),
        ("select .a", 7, ".a", "syntax error"),
        (".a | to_entries", 0, ".a", "to_entries"),
        (".a | to_entries[]", 0, ".a", "to_entries"),
        ("to_entries[0]", 10, "[", "to_entries"),
        ("to_entries[].name", 12, ".name", "to_entries"),
        ("to_entries[][]", 12, "[", "to_entries"),
        ("to_entries + 1", 11, "+", "to_entries"),
        ("to_entries[] | . // .key", 17, "//", "beside a value"),
        ("to_entries | to_entries", 13, "to_entries", "to_entries"),
        ('."a\\(1)"', 1, '"a\\(1)"', "interpolation"),
        ('."\\q"', 1, '"\\q"', "escape"),
        ('"\\ud800"', 0, '"\\ud800"', "escape"),
        ('"\\u0000"', 0, '"\\u0000"', "NUL"),
        ('."a', 1, '"', "does not end"),
        (".a # why", 3, "#", "comments"),
        (".é", 1, "é", "syntax error"),
        ("$ENV.PATH", 0, "$ENV", "left to jq"),
        ("@base64", 0, "@base64", "left to jq"),
        (".a = 1", 3, "=", "left to jq"),
        ("if . then 1 else 2 end", 0, "if", "left to jq"),
    ],
)  # fmt: skip
def test_anything_else_is_unsupported_and_says_where_and_why(
    text: str, position: int, found: str, reason: str
) -> None:
    refusal = refused(text)
    assert (refusal.text, refusal.position, refusal.found) == (text, position, found)
    assert reason in refusal.reason


@pytest.mark.parametrize(
    "text",
    ["(" * 100_000, "(" * 17 + ".a" + ")" * 17, ".[]" * 50_000, "1 + " * 30_000 + "1", "-" * 9999,
     ".a//" * 9_000 + "1", "9" * 100_000, ".[" + "9" * 50_000 + "]", '"' * 99_999, "?" * 99_999],
)  # fmt: skip
def test_an_enormous_text_is_refused_without_raising(text: str) -> None:
    assert len(refused(text).found) <= 60


@pytest.mark.parametrize(
    "text",
    [
        "(" * 16 + ".a" + ")" * 16,
        ".[]?" * 31,
        "1+" * 63 + "1",
        ".a//" * 63 + "1",
        ".a" + "?" * 126,
    ],
)
def test_the_longest_native_texts_are_evaluated(text: str) -> None:
    program(text).matches({})


def test_a_program_survives_pickling() -> None:
    copied = pickle.loads(pickle.dumps(program(".a[].b")))
    assert copied.matches({"a": [{"b": 1}]}) == [Match(("a", 0, "b"), 1, (("a", 0),))]
    assert repr(copied) == "Program('.a[].b')"


# Pairing.


def pairs(values: str, ids: str, document: Any) -> list[tuple[str, Any, Any]]:
    assert check_pairing(program(values), program(ids)) is None
    found = pair_values(program(values), program(ids), document)
    return [(name, match.path, match.value) for name, match in found]


def test_values_are_paired_by_element() -> None:
    document = {"a": [{"n": "x", "t": 1}, {"n": 3, "t": 2}, {"n": 4.0, "t": 5}, {"n": 0.5, "t": 6}]}
    assert pairs(".a[].t", ".a[] | .n", document) == [
        ("x", ("a", 0, "t"), 1),
        ("3", ("a", 1, "t"), 2),
        ("4", ("a", 2, "t"), 5),
        ("0.5", ("a", 3, "t"), 6),
    ]


def test_keys_are_ids_of_the_values_of_a_map() -> None:
    document = {"m": {"z": {"t": 1}, "k": {"t": 2}}}
    expected = [("k", ("m", "k", "t"), 2), ("z", ("m", "z", "t"), 1)]
    assert pairs(".m[].t", ".m | to_entries[] | .key", document) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        (".a[].r // 1", [("x", 1), ("y", 2)]),
        (".a[] | .r // 1", [("x", 1), ("y", 2)]),
        (".r // .a[].r // 1", [("x", 1), ("y", 2)]),
        ("(.s // 3) * (.a[].r // 1)", [("x", 3), ("y", 6)]),
        ("(.a | to_entries[] | .value.r) // 1", [("x", 1), ("y", 2)]),
        ("(.a | to_entries[] | select(.key == 1) | .value.r) // 1", [("x", 1), ("y", 2)]),
        ("(.a[].r)?", [("y", 2)]),
        (".a[] | select(.n == \"y\") | .r", [("y", 2)]),
        (".a[].n + .a[0].absent", [("x", "x"), ("y", "y")]),
    ],
)  # fmt: skip
def test_alternatives_and_factors_are_taken_per_element(text: str, expected: Any) -> None:
    document = {"a": [{"n": "x"}, {"n": "y", "r": 2}]}
    assert [(name, value) for name, _, value in pairs(text, ".a[].n", document)] == expected


def test_null_values_are_dropped_and_absent_lists_have_no_pairs() -> None:
    document = {"a": [{"n": "x", "t": None}, {"n": "y"}, {"n": "z", "t": 0}]}
    assert pairs(".a[].t", ".a[].n", document) == [("z", ("a", 2, "t"), 0)]
    assert pairs(".a[].t", ".a[].n", {}) == []
    assert pairs(".a[].t // 1", ".a[].n", {}) == []
    assert pairs(".t", ".n", {"n": "x"}) == []


def test_ids_of_nested_iterators_are_joined() -> None:
    document = {
        "p": [
            {"name": "main", "c": [{"s": 1}, {"s": 2}]},
            {"name": "", "c": [{"s": 3}]},
            {"c": [{"s": 4}]},
        ],
        "m": {"k": {"name": "ignored", "c": {"j": 5}}},
    }
    found = pairs(".p[].c[].s", ".p[].c | to_entries[] | .key", document)
    assert [name for name, _, _ in found] == ["main/0", "main/1", "1/0", "2/0"]
    found = pairs(".m[].c[]", ".m | to_entries[] | .value.c | to_entries[] | .key", document)
    assert [name for name, _, _ in found] == ["k/j"]
    found = pairs(".q[][]", ".q[] | to_entries[] | .key", {"q": [[5], [6]]})
    assert [name for name, _, _ in found] == ["0/0", "1/0"]


@pytest.mark.parametrize(
    "ids, document, message",
    [
        (".a[].n", {"a": [{"n": ""}]}, r"the id at .a\[0\].n is empty"),
        (".a[].n", {"a": [{}]}, r"the id at .a\[0\].n is empty"),
        (".a[].n", {"a": [{"n": True}]}, "neither text nor a number"),
        (".a[].n", {"a": [{"n": {}}]}, "neither text nor a number"),
        (".a[].n", {"a": [{"n": "x"}, {"n": "x"}]}, r"at .a\[0\].n and at .a\[1\].n"),
        ('.a[] | "x"', {"a": [{}, {}]}, r'"x" is given twice, at .a\[0\] and at .a\[1\]'),
        ('.a[] | select(.k == 1) | .n', {"a": [{"n": "x", "t": 1}]}, r"no id for .* .a\[0\].t"),
    ],
)  # fmt: skip
def test_an_id_that_is_no_id_is_an_error(ids: str, document: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        pair_values(program(".a[].t"), program(ids), document)


def test_an_empty_computed_id_is_an_error() -> None:
    with pytest.raises(QueryError, match="the id at a computed value is empty"):
        pair_values(program(".t"), program('.n // ""'), {"t": 1})


@pytest.mark.parametrize(
    "values, ids, reason",
    [
        (".a[].t", ".b[].n", "`.a[].t` iterates over `.a`, but its ids `.b[].n` over `.b`"),
        (".a[].b[].t", ".a[].n", "iterates over `.a` and `.a[].b`, but its ids `.a[].n` over `.a`"),
        (".t", ".a[].n", "`.t` iterates over nothing, but its ids `.a[].n` over `.a`"),
        (".a[].t // .b[].t", ".a[].n", "iterates over `.a` and `.b` side by side"),
        ("(.a[] // .b)[]", ".a[].n", "side by side"),
    ],
)
def test_different_iterators_cannot_be_paired(values: str, ids: str, reason: str) -> None:
    assert reason in (check_pairing(program(values), program(ids)) or "")
    with pytest.raises(QueryError, match=re.escape(reason)):
        pair_values(program(values), program(ids), {})


@pytest.mark.parametrize("beside", ["", "(.a) + ", "(.a) + (.a) + ((.a)) + "])
def test_parentheses_may_be_as_deep_as_the_limit_whatever_stands_beside(beside: str) -> None:
    def deep(levels: int) -> str:
        return beside + "(" * levels + ".a" + ")" * levels

    count = beside.count(".a") + 1
    assert values(deep(MAX_NESTING), {"a": 1}) == [count]
    assert "levels of parentheses" in refused(deep(MAX_NESTING + 1)).reason


def test_what_is_wrong_in_one_element_is_told_with_its_place() -> None:
    document = {"a": [{"b": {"c": 1}}, {"b": "text"}]}
    found = program(".a[].b.c")
    assert [each.value for each in found.matches_of(document, (("a", 0),))] == [1]
    with pytest.raises(QueryError, match=r"a\[1\]"):
        found.matches_of(document, (("a", 1),))
