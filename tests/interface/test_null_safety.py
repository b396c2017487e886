"""`interface check` reports paths that fail where something optional is absent."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.fixtures import evaluator
from tests.definitions import POLICIES, base, children, document, root
from webhook.documents.read_model import Report
from webhook.documents.yaml_source import read_documents
from webhook.interface.interface import is_interface, parse_interface
from webhook.interface.null_safety import check_null_safety


def reasons(data: dict[str, Any]) -> list[tuple[str, str]]:
    """The problems of a definition's texts, by the last key of their places."""
    source = document(data)
    report = Report(source)
    check_null_safety(source, evaluator(), report)
    assert {each.severity for each in report.problems} <= {"warning"}
    return [(each.path.rsplit(".", 1)[-1], each.reason) for each in report.problems]


def scaled(text: str) -> dict[str, Any]:
    data = base()
    children(data)[0]["scaleDefinition"] = {"replicasPath": text}
    return data


def matched(text: str) -> dict[str, Any]:
    data = base()
    expression = {"expression": text, "expectedResult": "true"}
    root(data)["statusDefinition"] = {"statusMappings": {"running": [{"byExpression": expression}]}}
    return data


@pytest.mark.parametrize(
    "text",
    [
        ".spec.replicas * .spec.size",
        ".spec.jobs[] | (.replicas * (.parallelism // 1))",
        ".spec.groups[].jobs[] | (.replicas - 1)",
        ".spec.jobs[].replicas // 1",
        ".spec.replicas | tonumber",
    ],
)
def test_a_number_that_may_be_absent_is_reported(text: str) -> None:
    assert reasons(scaled(text)) == [("replicasPath", "null-unsafe")]


@pytest.mark.parametrize(
    "text",
    [
        ".spec.replicas",
        "(.spec.replicas // 1) * (.spec.size // 1)",
        ".spec.jobs[] | ((.replicas // 1) * (.parallelism // 1))",
        ".spec.jobs[].replicas",
        ".spec.jobs | to_entries[] | .value.replicas",
        '(.spec.replicas // "0") | tonumber',
        "1",
    ],
)
def test_a_number_with_defaults_is_not(text: str) -> None:
    assert reasons(scaled(text)) == []


@pytest.mark.parametrize(
    "text, unsafe",
    [
        ('.status.conditions[] | .type == "Ready"', True),
        ("[.status.conditions[] | .status] | length > 0", True),
        (".status.ready / .spec.replicas == 1", True),
        ("[.status.conditions[]? | .status] | length > 0", False),
        ('any(.status.conditions[]?; .type == "Ready")', False),
        ("(.status.ready // 0) >= (.spec.replicas // 1)", False),
    ],
)
def test_an_expression_is_run_on_an_object_without_status(text: str, unsafe: bool) -> None:
    assert reasons(matched(text)) == ([("expression", "null-unsafe")] if unsafe else [])


def test_keys_and_filters_are_run_on_a_pod_without_labels() -> None:
    data = base()
    gang = data["spec"]["optimizationInstructions"]["gangScheduling"]
    (first, second) = gang["podGroups"][0]["members"]
    first["groupByKeyPaths"] = [".metadata.labels.a | ascii_downcase", ".metadata.labels.b"]
    second["filters"] = ['.metadata.labels.tier == "gpu"', '.metadata.labels.x | startswith("a")']
    assert reasons(data) == [
        ("groupByKeyPaths[0]", "null-unsafe"),
        ("filters[1]", "null-unsafe"),
    ]


def test_shipped_definitions_are_null_safe() -> None:
    seen = 0
    for path in sorted(POLICIES.glob("*.yaml")):
        documents, _ = read_documents(path.read_bytes(), path.name)
        for each in filter(lambda source: is_interface(source.data), documents):
            report = Report(each)
            check_null_safety(each, evaluator(), report)
            assert report.problems == []
            seen += 1
    assert seen > 50


def gang_warnings(*names: str, root_has_pods: bool = False) -> list[str]:
    data = base()
    gang = data["spec"]["optimizationInstructions"]["gangScheduling"]
    gang["podGroups"][0]["members"] = [{"componentName": name} for name in names]
    if not root_has_pods:
        del root(data)["specDefinition"]
    return [
        each.fix for each in parse_interface(document(data))[1] if each.reason == "gang-of-root"
    ]


def test_a_gang_of_the_root_without_pods_is_reported() -> None:
    (fix,) = gang_warnings("root")
    assert "`worker`" in fix
    assert len(gang_warnings("root", "worker")) == 1
    assert gang_warnings("worker") == []
    assert gang_warnings("root", root_has_pods=True) == []
