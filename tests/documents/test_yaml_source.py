"""YAML and JSON text as documents with lines, columns and source texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.documents import yaml_source
from webhook.documents.source import SourceDocument, SyntaxProblem
from webhook.documents.yaml_source import read_documents

POLICY = """\
# a policy
defaults:
  mode: 0644
  on: yes
  times: [22:30, 1e9, "1e9", .5]
  "quoted": 'on'
---
---
second: ~
"""


@pytest.fixture(params=["CSafeLoader", "SafeLoader"], autouse=True)
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs with libyaml and with the pure loader."""
    if not hasattr(yaml, request.param):
        pytest.skip(f"PyYAML has no {request.param} here: libyaml is missing")
    monkeypatch.setattr(yaml_source, "LOADER", getattr(yaml, request.param))


def only(text: str | bytes, *, kubernetes: bool = False) -> SourceDocument:
    documents, problems = read_documents(text, "x.yaml", kubernetes=kubernetes)
    assert problems == []
    assert len(documents) == 1
    return documents[0]


def problem(text: str | bytes, *, kubernetes: bool = False) -> SyntaxProblem:
    documents, problems = read_documents(text, "x.yaml", kubernetes=kubernetes)
    assert documents == []
    assert len(problems) == 1
    return problems[0]


def test_places_and_source_texts_are_kept() -> None:
    (first, second), problems = read_documents(POLICY, "p.yaml")
    assert problems == []
    assert first.data == {
        "defaults": {
            "mode": "0644",
            "on": "yes",
            "times": ["22:30", 1e9, "1e9", 0.5],
            "quoted": "on",
        }
    }
    assert first.position(("defaults", "mode")) == (3, 3)
    assert first.position(("defaults", "times", 1)) == (5, 18)
    assert first.position(("defaults", "times", 1, "deeper")) == (5, 18)
    assert first.texts == {
        ("defaults", "mode"): "0644",
        ("defaults", "on"): "yes",
        ("defaults", "times", 0): "22:30",
        ("defaults", "times", 1): "1e9",
        ("defaults", "times", 3): ".5",
    }
    assert (second.index, second.data, second.position(("second",))) == (
        3,
        {"second": None},
        (9, 1),
    )


def test_manifests_are_read_as_kubectl_reads_them() -> None:
    text = "on: yes\nmode: 0644\n8080: 1_000\nport: 22:30\nquoted: 'on'\n"
    document = only(text, kubernetes=True)
    assert document.data == {
        "true": True, "mode": 420, "8080": 1000, "port": "22:30", "quoted": "on",
    }  # fmt: skip
    assert document.text(("mode",)) == "0644"
    assert document.position(("true",)) == (1, 1)


def test_keys_of_our_documents_are_their_text() -> None:
    assert only("on: 1\n0644: 2\n1.0: 3\n~: 4\n").data == {"on": 1, "0644": 2, "1.0": 3, "~": 4}


@pytest.mark.parametrize("key", ["1.5", "1e9", "~", ".inf", "null"])
def test_keys_that_kubectl_would_change_or_refuse_are_problems(key: str) -> None:
    found = problem(f"a:\n  {key}: x\n", kubernetes=True)
    assert (found.line, found.column) == (2, 3)


def test_kubectl_refuses_infinity_where_our_documents_keep_the_text() -> None:
    assert only("a: .inf").data == {"a": ".inf"}
    assert "no JSON number" in problem("a: .inf", kubernetes=True).message


def test_a_broken_document_does_not_hide_its_neighbours() -> None:
    text = "a: 1\n---\nb: [1,\nc: }\n---\nd: 2\n...\n%YAML 1.1\n---\ne: 3\n--- {f: 4}\n"
    documents, problems = read_documents(text, "x")
    assert [document.data for document in documents] == [{"a": 1}, {"d": 2}, {"e": 3}, {"f": 4}]
    assert [document.index for document in documents] == [1, 3, 4, 5]
    assert [document.position(()) for document in documents] == [(1, 1), (6, 1), (10, 1), (11, 5)]
    assert [found.line for found in problems] in ([4], [3])


@pytest.mark.parametrize("text", ["", "\n\n", "# only\n", "---\n", "---\n---\n# x\n", "~", "null"])
def test_empty_documents_are_skipped(text: str) -> None:
    assert read_documents(text, "x") == ([], [])


def test_windows_line_ends_and_byte_order_marks_do_no_harm() -> None:
    document = only("\ufeffa: 1\r\nb:\r\n  c: 2\r\n".encode())
    assert document.data == {"a": 1, "b": {"c": 2}}
    assert document.position(("b", "c")) == (3, 3)


def test_json_is_read_with_its_places() -> None:
    data = {
        "a": [1, 2.5, True, None, "x\U0001f600\n\u00e9"],
        "on": "yes",
        "b\\ud83d": "\\ud83d\\ude00",
    }
    document = only(json.dumps(data, indent=2))
    assert document.data == data
    assert document.position(("a", 2)) == (5, 5)
    assert document.position(("on",)) == (9, 3)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=5),
        lambda inner: st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=5), inner, max_size=4
        ),
        max_leaves=15,
    ).filter(lambda value: isinstance(value, dict | list)),
    st.booleans(),
)  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_all_json_reads_as_json_does(data: Any, ascii_only: bool) -> None:
    documents, problems = read_documents(json.dumps(data, ensure_ascii=ascii_only), "x")
    assert problems == []
    assert [document.data for document in documents] == [data]


def test_aliases_and_merge_keys_are_expanded() -> None:
    text = (
        "a: &a {m: 0644, n: 1}\nb:\n  <<: *a\n  n: 2\nc: *a\nd:\n  <<: [{n: 5}, *a]\ne: {'<<': 1}\n"
    )
    document = only(text)
    assert document.data == {
        "a": {"m": "0644", "n": 1},
        "b": {"m": "0644", "n": 2},
        "c": {"m": "0644", "n": 1},
        "d": {"m": "0644", "n": 5},
        "e": {"<<": 1},
    }
    assert document.text(("b", "m")) == document.text(("c", "m")) == "0644"
    assert document.position(("b", "n")) == (4, 3)
    assert document.position(("c",)) == (5, 1)
    assert document.data["a"] is not document.data["c"]


def test_a_merge_overrides_keys_above_it_for_kubectl_only() -> None:
    text = "a: 2\n<<: {a: 1}\n"
    assert only(text).data == {"a": 2}
    assert only(text, kubernetes=True).data == {"a": 1}


def test_standard_tags_are_followed() -> None:
    text = "a: !!str 5\nb: !!int '5'\nc: !!float 5\nd: !!map {x: !!null ''}\ne: !!seq [a]\n"
    assert only(text).data == {"a": "5", "b": 5, "c": 5, "d": {"x": None}, "e": ["a"]}


@pytest.mark.parametrize(
    "text, line, column, words",
    [
        ("a: 1\nb: 2\na: 3\n", 3, 1, "the key a is there twice (first on line 1)"),
        ("true: 1\n'true': 2\n", 2, 1, "the key true is there twice"),
        ("<<: {}\n<<: {}\n", 2, 1, "the key << is there twice"),
        ("<<: 5\n", 1, 5, "<< takes a mapping"),
        ("a: !thing 5\n", 1, 4, "a tag of its own is not supported"),
        ("a: !!binary aGk=\n", 1, 4, "the tag !!binary is not supported"),
        ("a: !!set {b}\n", 1, 4, "the tag !!set is not supported"),
        ("a: !!int x\n", 1, 4, "the value is not of type !!int"),
        ("? [a]\n: 1\n", 1, 3, "a key is a list or a mapping"),
        ("a: &a [*a]\n", 1, 8, "alias *a contains itself"),
        ("a: *b\n", 1, 4, "without an anchor"),
        ("a: \x00\n", 1, 4, "character U+0000 is not allowed"),
        ("b: 1\na: \ud800\n", 2, 4, "character U+D800 is not allowed"),
        ("a: b: c\n", 1, 5, "mapping values are not allowed"),
        ('a: "b\n', 2, 1, "unexpected end of stream"),
        ("a:\n\tb: 1\n", 2, 1, "cannot start any token"),
    ],
)
def test_faults_are_told_with_their_place(text: str, line: int, column: int, words: str) -> None:
    found = problem(text)
    assert (found.origin, found.line, found.column) == ("x.yaml", line, column)
    assert words.replace("found ", "") in found.message.replace("'\\t' that ", "")
    assert found.fix


def test_all_faults_of_a_document_are_told_once_each() -> None:
    _, problems = read_documents("a: 1\na: !x 2\na: 3\nb: &b {c: 1, c: 2}\nd: *b\n", "x")
    assert [found.line for found in problems] == [2, 3, 4]


@pytest.mark.parametrize("text", ["a: \xe9".encode("latin-1"), "a: b".encode("utf-16")])
def test_bytes_that_are_not_utf_8_are_told(text: bytes) -> None:
    found = problem(text)
    assert found.message == "the text is not UTF-8"
    assert found.line == 1


LAUGHS = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)
MERGES = "a0: &a0 {x: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 100)
)
MERGE_CHAIN = "a0: &a0 {x: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: *a{n - 1}}}\n" for n in range(1, 500)
)
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 500))


@pytest.mark.parametrize(
    "text, words",
    [
        (LAUGHS, "more than 1000000 values"),
        (MERGES, "more than 1000000 values"),
        (CHAIN, "deeper than 200"),
        (MERGE_CHAIN, "deeper than 200"),
        ("[" * 10_000, "deeper than 200"),
        ("{a: " * 10_000, "deeper than 200"),
        ("- " * 10_000, "deeper than 200"),
        ("---\na: 1\n" * 10_002, "more than 10000 documents"),
    ],
    ids=["laughs", "merges", "chain", "merge chain", "brackets", "braces", "dashes", "documents"],
)
def test_texts_made_to_exhaust_are_refused(text: str, words: str) -> None:
    _, problems = read_documents(text, "x")
    assert len(problems) == 1
    assert words in problems[0].message


@given(
    st.binary(max_size=60)
    | st.text(max_size=60)
    | st.text(alphabet="ab:-[]{}&*!|>'\"%@`#,?\n\t 01.~<", max_size=60),
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_no_text_at_all_raises(text: str | bytes, kubernetes: bool) -> None:
    documents, problems = read_documents(text, "x", kubernetes=kubernetes)
    for document in documents:
        json.dumps(document.data, allow_nan=False)
        assert set(document.texts) <= set(document.positions)
    assert all(found.message and found.fix for found in problems)


def test_ten_megabytes_of_one_scalar_are_read() -> None:
    text = "a: |\n" + "  0123456789abcdef\n" * 60_000
    assert len(only(text).data["a"]) == 60_000 * 17


def test_the_manifests_beside_this_test_read_without_fault() -> None:
    for path in sorted(Path(__file__).parents[2].glob("policies/**/*.yaml")):
        _, problems = read_documents(path.read_bytes(), path.name)
        assert problems == []


FLAT = """apiVersion: run.ai/v1alpha1
kind: Karta
metadata:
name: flat
spec:
structureDefinition:
rootComponent:
name: "set"
"""


@pytest.mark.parametrize(
    "text, outer, inner, line",
    [
        (FLAT, "metadata", "name", 3),
        (FLAT.replace("metadata:\nname: flat\n", ""), "spec", "structureDefinition", 3),
        ("kind: Pod\nspec:\r\ncontainers:\n- name: a\nimage: b\n", "spec", "containers", 2),
        ("# a policy\ndefaults:\ncompute:\ncpuCoreRequest: 1\n", "defaults", "compute", 2),
        ("meta:\nname: a\nspec:\n- path: b\n", "meta", "name", 1),
    ],
)
def test_a_text_without_indentation_gets_one_error(
    text: str, outer: str, inner: str, line: int
) -> None:
    documents, (problem,) = read_documents(f"a: 1\n---\n{text}---\nb: 2\n", "x.yaml")
    assert [each.data for each in documents] == [{"a": 1}, {"b": 2}]
    assert f"{inner} is not below {outer}" in problem.message
    assert f"'  {inner}:'" in problem.fix
    assert (problem.line, problem.column) == (line + 2, 1)


@pytest.mark.parametrize(
    "text",
    [
        "kind: ConfigMap\nmetadata:\ndata:\n",
        "kind: Pod\nmetadata:\nspec:\nstatus:\n",
        "defaults:\nrules:\n",
        "kind: Pod\nmetadata: {name: a}\nspec: {}\n",
        '{"metadata":\n{"name": "a"}}',
        "spec:\n  containers: []\nother:\nname: a\n",
    ],
)
def test_a_text_whose_keys_are_empty_on_purpose_is_read(text: str) -> None:
    assert only(text).data
