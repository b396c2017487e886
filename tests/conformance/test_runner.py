"""R: jq texts are evaluated and assigned as upstream's runner does."""
# ruff: noqa: N802 - tests bear the ids of the conformance list

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.fixtures import DEFAULTS, ITEMS, RUNNER_POD, evaluator
from webhook.access.errors import AccessError
from webhook.access.upstream_mode import ParityAccess
from webhook.interface.document import ComponentModel
from webhook.jq.expressions import Evaluator, JqError, JqLimitError, JqSyntaxError
from webhook.libjq.worker import JqCancelledError, JqDeadlineError, JqWorker

P, D = RUNNER_POD, DEFAULTS
NAMES = "(.spec.containers // [])"


@pytest.mark.parametrize(
    "text, document, expected",
    [
        pytest.param(".metadata.name", P, ["test-pod"], id="R1"),
        pytest.param(".spec.containers[0].name", P, ["web"], id="R2"),
        pytest.param(".spec.containers[].name", P, ["web", "sidecar"], id="R3"),
        pytest.param(".spec.containers[0].ports[].containerPort", P, [80, 443], id="R4"),
        pytest.param(".metadata.nonexistent", P, [None], id="R5"),
        pytest.param('.spec.containers[] | select(.name == "notfound")', P, [], id="R6"),
        pytest.param('.metadata.name == "test-pod"', P, [True], id="R7"),
        pytest.param(
            '.spec.containers[] | select(.name == "web") | .image', P, ["nginx:1.20"], id="R8"
        ),
        pytest.param(".spec.containers | map(.name)", P, [["web", "sidecar"]], id="R9"),
        pytest.param(".spec.containers | length", P, [2], id="R10"),
        pytest.param(". | length", "test-string", [11], id="R17-text"),
        pytest.param(". + 8", 42, [50], id="R17-number"),
        pytest.param(". | length", [1, 2, 3], [3], id="R17-list"),
        pytest.param(".", None, [None], id="R18"),
        pytest.param('.labels.app // "default-app"', D, ["myapp"], id="R19"),
        pytest.param('.labels.nonexistent // "default-value"', D, ["default-value"], id="R20"),
        pytest.param('.missing.nested.path // "fallback"', D, ["fallback"], id="R21"),
        pytest.param(".spec.replicas // 1", D, [1], id="R22"),
        pytest.param(".spec.enabled // true", D, [True], id="R23"),
        pytest.param('.status // {"phase": "Unknown"}', D, [{"phase": "Unknown"}], id="R24"),
        pytest.param(".spec.volumes // []", D, [[]], id="R25"),
        pytest.param('.labels | has("app")', D, [True], id="R26"),
        pytest.param('.labels | has("nonexistent")', D, [False], id="R27"),
        pytest.param(
            'if (.labels | has("environment")) then .labels.environment else "development" end',
            D,
            ["development"],
            id="R28",
        ),
        pytest.param(
            '.labels.environment // .annotations.environment // "staging"',
            D,
            ["staging"],
            id="R29",
        ),
        pytest.param(f"{NAMES} | length", D, [1], id="R30"),
        pytest.param(f'{NAMES} | map(.name // "unnamed")', D, [["main"]], id="R31"),
        pytest.param(
            f'{NAMES} | map(select(.name // "default" | startswith("m"))) | length',
            D,
            [1],
            id="R32",
        ),
    ],
)
def test_a_text_is_evaluated(text: str, document: Any, expected: list[Any]) -> None:
    assert evaluator().values(text, document) == expected


def test_R11_bad_syntax_has_its_own_error() -> None:
    with pytest.raises(JqSyntaxError):
        evaluator().values(".invalid[[[syntax", P)


def test_R13_as_many_results_as_the_limit_are_too_many() -> None:
    for text in (".items[].id", ".items[:5][].id", ".items[:5] | .[] | .id"):
        with pytest.raises(JqLimitError, match="5 results"):
            evaluator(limit=5).values(text, ITEMS)


def test_R14_fewer_results_than_the_limit_are_fine() -> None:
    assert evaluator(limit=5).values(".items[0:3][].id", ITEMS) == [0, 1, 2]


@pytest.fixture
def worker() -> Iterator[JqWorker]:
    """jq in a process that can be stopped."""
    with JqWorker(deadline=10, queue_timeout=10) as found:
        yield found


def test_R12_a_call_that_was_cancelled_does_not_begin(worker: JqWorker) -> None:
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(JqCancelledError, match="cancelled"):
        worker.evaluate(".metadata.name", json.dumps(P).encode(), cancelled=cancelled)
    assert worker.evaluate(".metadata.name", json.dumps(P).encode()) == ["test-pod"]


def test_R15_a_deadline_ends_an_evaluation(worker: JqWorker) -> None:
    items = [{"id": index, "nested": "x" * 100} for index in range(10_000)]
    text = ".data | map(select(.nested | length > 50)) | length"
    with pytest.raises(JqDeadlineError, match=r"0\.001 s"):
        Evaluator(worker.compiler(deadline=0.001)).values(text, {"data": items})
    assert Evaluator(worker.compile).values(text, {"data": items}) == [10_000]


def test_R16_a_long_deadline_is_not_reached(worker: JqWorker) -> None:
    found = worker.evaluate(".spec.containers[].name", json.dumps(P).encode(), deadline=10)
    assert found == ["web", "sidecar"]


def assigned(document: Any, text: str, value: Any) -> Any:
    access = ParityAccess(document, evaluator())
    access.assign(text, value)
    return access.document


@pytest.mark.parametrize(
    "document, text, value, expected",
    [
        pytest.param({"name": "original"}, ".name", "updated", {"name": "updated"}, id="R33"),
        pytest.param(
            {"metadata": {"name": "a"}, "example": 1},
            ".metadata.name",
            "b",
            {"metadata": {"name": "b"}, "example": 1},
            id="R34",
        ),
        pytest.param(
            {"primary": "a", "fallback": "b"},
            ".primary // .fallback",
            "c",
            {"primary": "c", "fallback": "b"},
            id="R35",
        ),
        pytest.param({"fallback": "b"}, ".primary // .fallback", "c", {"fallback": "c"}, id="R36"),
        pytest.param(
            {"items": [{"name": "a"}, {"name": "b"}, {"name": "c"}]},
            ".items[1] | .name",
            "x",
            {"items": [{"name": "a"}, {"name": "x"}, {"name": "c"}]},
            id="R37",
        ),
        pytest.param(
            {"spec": {"replicas": 3}},
            ".spec",
            {"replicas": 5, "template": {"name": "pod"}},
            {"spec": {"replicas": 5, "template": {"name": "pod"}}},
            id="R38",
        ),
        pytest.param(
            {"spec": {}},
            ".spec.containers",
            [{"name": "updated"}],
            {"spec": {"containers": [{"name": "updated"}]}},
            id="R39",
        ),
        pytest.param(
            {"existing": "value"}, ".newField", 1, {"existing": "value", "newField": 1}, id="R40"
        ),
        pytest.param({}, ".a.b.c.d.e", 1, {"a": {"b": {"c": {"d": {"e": 1}}}}}, id="R41"),
        pytest.param(
            {"metadata": {"name": "test"}},
            ".metadata.labels.app",
            "x",
            {"metadata": {"name": "test", "labels": {"app": "x"}}},
            id="R42",
        ),
        pytest.param(
            {},
            ".newComplex",
            {"key1": "value1", "key2": [1, 2, 3]},
            {"newComplex": {"key1": "value1", "key2": [1, 2, 3]}},
            id="R43",
        ),
    ],
)
def test_a_value_is_assigned(document: Any, text: str, value: Any, expected: Any) -> None:
    before = copy.deepcopy(document)
    assert assigned(document, text, value) == expected
    assert document == before


def test_R44_bad_syntax_is_never_hidden_in_another_error() -> None:
    with pytest.raises(JqSyntaxError):
        assigned({}, ".invalid[[[", 1)


def zipped(document: Any, text: str, values: list[Any]) -> Any:
    """Write a list of values at the places of a path, as instances are written."""
    model = ComponentModel.model_validate({"name": "x", "instanceIdPath": ".unused"})
    access = ParityAccess(document, evaluator())
    access.replace(model, text, values)
    return access.document


def items(*names: Any, key: str = "name") -> dict[str, Any]:
    return {"items": [{"id": index + 1, key: name} for index, name in enumerate(names)]}


def test_R45_values_are_zipped_with_the_selected_places() -> None:
    found = zipped(items("a", "b"), ".items[] | select(.id == 1) | .name", ["updated"])
    assert found == items("updated", "b")


def test_R46_a_list_is_replaced_in_order() -> None:
    assert zipped({"items": ["a", "b", "c"]}, ".items[]", ["d", "e", "f"]) == {
        "items": ["d", "e", "f"]
    }


def test_R47_nested_places_are_replaced_in_order() -> None:
    found = zipped(items("a", "b", "c"), ".items[] | .name", ["d", "e", "f"])
    assert found == items("d", "e", "f")


def test_R48_null_is_written() -> None:
    found = zipped(items(1, 2, 3, key="value"), ".items[] | .value", [None, 3, None])
    assert found == items(None, 3, None, key="value")


def test_R49_places_and_values_have_one_count() -> None:
    with pytest.raises(AccessError) as error:
        zipped(items(1, 2, 3), ".items[] | .name", ["a", "b"])
    assert error.value.reason == "length-mismatch"
    assert error.value.facts == {"places": 3, "values": 2}


def test_assignment_follows_jq_where_it_computes() -> None:
    assert assigned({}, ".x[1].z", 9) == {"x": [None, {"z": 9}]}
    assert assigned({"x": []}, ".x[].z", 9) == {"x": []}
    for text in (".x[].z", ".a // 1", "{requests: .x}", '"\\(.a)"', ".a | tonumber"):
        with pytest.raises(JqError):
            assigned({}, text, 9)
