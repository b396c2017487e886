"""V: forbidden parts of jq texts are found wherever a definition holds jq."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field

from tests.conformance.fixtures import compile_jq
from webhook.documents.model import Model
from webhook.documents.read_model import Report
from webhook.documents.source import SourceDocument
from webhook.interface.document import Mode
from webhook.interface.jq_rules import check_expressions, fault_in
from webhook.jq.expressions import JqSyntaxError


class Nested(Model):
    nested_path: str | None = None


class JqStruct(Model):
    """Fields that hold jq, in all shapes, and two that do not."""

    required_path: str = ""
    optional_path: str | None = None
    slice_paths: list[str] = Field(default_factory=list)
    map_paths: dict[str, str] = Field(default_factory=dict)
    nested_struct: Nested = Nested()
    struct_slice: list[Nested] = Field(default_factory=list)
    regular_field: str = ""
    no_tag_field: str = ""
    other_list: list[str] = Field(default_factory=list)
    other_map: dict[str, str] = Field(default_factory=dict)


def faults(mode: Mode = "parity", **fields: Any) -> list[tuple[str, str]]:
    """Reason and place of every problem."""
    report = Report(SourceDocument("test", 1, {}, {}, {}))
    check_expressions(JqStruct.model_validate(fields), report, (), compile_jq, mode)
    return [(each.reason, each.path) for each in report.problems]


def nested(*texts: str) -> list[dict[str, str]]:
    return [{"nestedPath": each} for each in texts]


CLEAN: list[Any] = [
    pytest.param(
        {
            "requiredPath": ".spec.template",
            "optionalPath": ".spec.replicas",
            "slicePaths": [".spec.containers[0]", ".metadata.labels"],
            "mapPaths": {"a": ".spec.a", "b": ".spec.b"},
            "nestedStruct": {"nestedPath": ".status.phase"},
        },
        id="V1",
    ),
    pytest.param(
        {"regularField": "del(.dangerous)", "noTagField": "recurse(.also.dangerous)"}, id="V2"
    ),
    pytest.param(
        {"requiredPath": '.spec.template | select(.metadata.labels.app == "test")'}, id="V3"
    ),
    pytest.param({"requiredPath": "", "optionalPath": ""}, id="V4"),
    pytest.param({"requiredPath": ".a"}, id="V5"),
    pytest.param(
        {"requiredPath": '.spec.containers | map(select(.name == "main")) | .[0]'}, id="V23"
    ),
    pytest.param({"mapPaths": {"a": ".a", "b": ".b", "c": ".c"}}, id="V30"),
    pytest.param({"mapPaths": {}}, id="V31"),
]


@pytest.mark.parametrize("mode", ["parity", "admission"])
@pytest.mark.parametrize("fields", CLEAN)
def test_good_texts_have_no_problem(fields: dict[str, Any], mode: Mode) -> None:
    assert faults(mode, **fields) == []


FUNCTION, MODIFIES, DESCENT = "forbidden-function", "modifying-operator", "recursive-descent"


@pytest.mark.parametrize("mode", ["parity", "admission"])
@pytest.mark.parametrize(
    "text, reason, found",
    [
        pytest.param("del(.spec.template)", FUNCTION, "del", id="V8"),
        pytest.param("recurse(.children[])", FUNCTION, "recurse", id="V9"),
        pytest.param('walk(if type == "object" then . else empty end)', FUNCTION, "walk", id="V10"),
        pytest.param("paths", FUNCTION, "paths", id="V11"),
        pytest.param("range(1000000)", FUNCTION, "range", id="V12"),
        pytest.param("repeat(.)", FUNCTION, "repeat", id="V13"),
        pytest.param(".. | .name", DESCENT, "..", id="V14"),
        pytest.param(".spec.replicas = 5", MODIFIES, "=", id="V15"),
        pytest.param(".spec.replicas += 1", MODIFIES, "+=", id="V16"),
        pytest.param(".spec.replicas -= 1", MODIFIES, "-=", id="V17"),
        pytest.param(".spec.replicas *= 2", MODIFIES, "*=", id="V18"),
        pytest.param(".spec.replicas /= 2", MODIFIES, "/=", id="V19"),
        pytest.param(".spec.replicas %= 3", MODIFIES, "%=", id="V20"),
        pytest.param(".spec.replicas //= 1", MODIFIES, "//=", id="V21"),
        pytest.param(".spec.replicas |= . + 1", MODIFIES, "|=", id="V22"),
        pytest.param(".spec | recurse | .name", FUNCTION, "recurse", id="V24"),
        pytest.param('.spec.containers[0] | .image = "new-image"', MODIFIES, "=", id="V25"),
    ],
)
def test_a_forbidden_part_is_named(text: str, reason: str, found: str, mode: Mode) -> None:
    assert faults(mode, requiredPath=text) == [(reason, "requiredPath")]
    fault = fault_in(text, mode)
    assert fault is not None
    assert (fault.reason, fault.found) == (reason, found)


@pytest.mark.parametrize(
    "fields, expected",
    [
        pytest.param({"requiredPath": ".spec.template.["}, [("not-jq", "requiredPath")], id="V6"),
        pytest.param(
            {"slicePaths": [".spec.containers[0"]}, [("not-jq", "slicePaths[0]")], id="V7"
        ),
        pytest.param(
            {"nestedStruct": {"nestedPath": "del(.status)"}},
            [(FUNCTION, "nestedStruct.nestedPath")],
            id="V26",
        ),
        pytest.param(
            {"structSlice": nested(".valid.path", "recurse(.invalid)")},
            [(FUNCTION, "structSlice[1].nestedPath")],
            id="V27",
        ),
        pytest.param(
            {"slicePaths": [".valid.path", "del(.invalid)", ".another.valid"]},
            [(FUNCTION, "slicePaths[1]")],
            id="V28",
        ),
        pytest.param(
            {"mapPaths": {"valid": ".a", "invalid": "del(.spec.template)", "another": ".b"}},
            [(FUNCTION, "mapPaths.invalid")],
            id="V29",
        ),
        pytest.param(
            {"mapPaths": {"first": "del(.spec)", "second": "recurse(.status)", "third": ".a"}},
            [(FUNCTION, "mapPaths.first"), (FUNCTION, "mapPaths.second")],
            id="V32",
        ),
        pytest.param(
            {
                "requiredPath": "del(.a)",
                "optionalPath": "recurse(.a)",
                "slicePaths": ["paths", "walk(.invalid)"],
                "mapPaths": {"k": "range(1000)"},
                "nestedStruct": {"nestedPath": "repeat(.)"},
            },
            [
                (FUNCTION, "requiredPath"),
                (FUNCTION, "optionalPath"),
                (FUNCTION, "slicePaths[0]"),
                (FUNCTION, "slicePaths[1]"),
                (FUNCTION, "mapPaths.k"),
                (FUNCTION, "nestedStruct.nestedPath"),
            ],
            id="V33",
        ),
        pytest.param(
            {
                "requiredPath": "del(.a)",
                "mapPaths": {"mapkey": "walk(.a)"},
                "nestedStruct": {"nestedPath": "recurse(.a)"},
                "structSlice": nested("paths"),
            },
            [
                (FUNCTION, "requiredPath"),
                (FUNCTION, "mapPaths.mapkey"),
                (FUNCTION, "nestedStruct.nestedPath"),
                (FUNCTION, "structSlice[0].nestedPath"),
            ],
            id="V34",
        ),
        pytest.param({"optionalPath": "del(.optional)"}, [(FUNCTION, "optionalPath")], id="V35"),
        pytest.param(
            {"slicePaths": [".a", "del(.b)", ".c", "recurse(.d)"]},
            [(FUNCTION, "slicePaths[1]"), (FUNCTION, "slicePaths[3]")],
            id="V36",
        ),
        pytest.param(
            {"structSlice": nested(".a", "del(.b)", ".c")},
            [(FUNCTION, "structSlice[1].nestedPath")],
            id="V37",
        ),
        pytest.param(
            {
                "requiredPath": "del(.invalid)",
                "regularField": "del(.a)",
                "noTagField": "walk(.a)",
                "otherList": ["recurse(.a)"],
                "otherMap": {"k": "paths"},
            },
            [(FUNCTION, "requiredPath")],
            id="V38",
        ),
    ],
)
def test_a_problem_has_its_place(fields: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert faults(**fields) == expected


@pytest.mark.parametrize(
    "text",
    [
        "{env: 1}",
        "{del: .a, input: .b}",
        '.env | ."del" | .["paths"]',
        '"del(.x) .. = $ENV"',
        '"a \\(.b | tostring) del"',
        ". == 1 and . != 2 or (. <= 3 and . >= 4)",
        ".a as $x | $x.env",
        '"\\(.a + "\\(.b)")"',
    ],
)
def test_what_only_looks_forbidden_is_allowed(text: str) -> None:
    assert fault_in(text) is None


@pytest.mark.parametrize(
    "text, found",
    [
        ('"\\(del(.x))"', "del"),
        ('"\\("\\(env)")"', "env"),
        ('"a\\(1)b\\(input)"', "input"),
        ("{a: .[env:3]}", "env"),
        ("{(env): 1}", "env"),
        ("{env}", "env"),
        (".a | $ ENV", "ENV"),
        (". # \\\n | env", "#"),
        ("[limit(3; repeat(.))]", "limit"),
        ('@sh "\\(halt)"', "halt"),
        ("m::f", "m::f"),
    ],
)
def test_what_is_hidden_is_found(text: str, found: str) -> None:
    fault = fault_in(text)
    assert fault is not None
    assert fault.found == found


PIECES = st.sampled_from(
    [*'"\\(){}[]:,;|.#$@ \n', "env", "a", "del", ".b", "\\(", "1.", "é", "//="]
)


@given(st.lists(PIECES, max_size=30).map("".join))
def test_any_text_is_judged(text: str) -> None:
    fault_in(text)
    fault_in(text, "parity")


@settings(max_examples=500, deadline=None)
@given(st.lists(PIECES, max_size=12).map("".join))
def test_nothing_that_jq_accepts_calls_env_unseen(text: str) -> None:
    if fault_in(text) is not None:
        return
    marked = text.replace("env", "nowhere_defined")
    try:
        compile_jq(text)
    except JqSyntaxError:
        return
    # Were `env` called, jq would know no function of the other name.
    compile_jq(marked)
