"""D: definitions are validated in upstream's stages, all problems of a stage at once."""
# ruff: noqa: N802 - tests bear the ids of the conformance list

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.conformance.fixtures import compile_jq
from tests.definitions import base, children, document, root
from webhook.access.status import EVALUATED, entries
from webhook.documents.read_model import Report
from webhook.interface.document import InterfaceSpec, StatusMappings
from webhook.interface.interface import parse_interface
from webhook.interface.jq_rules import check_expressions

DECISION_0034 = {"owner-missing", "instance-selector-missing"}
"""What upstream's validator refuses and podgate warns of: upstream's own examples have it."""


def problems(data: Any) -> list[Any]:
    """Every error of a definition, jq included."""
    source = document(data)
    _, found = parse_interface(source)
    report = Report(source)
    try:
        spec = InterfaceSpec.model_validate(data["spec"])
        check_expressions(spec, report, ("spec",), compile_jq)
    except (ValueError, TypeError, KeyError):
        pass
    return [
        each
        for each in (*found, *report.problems)
        if each.severity == "error" or each.reason in DECISION_0034
    ]


def errors(data: Any) -> list[str]:
    """Their reasons, each place's once: what loading tells is not told by the compiler again."""
    told = dict.fromkeys((each.path, each.reason) for each in problems(data))
    return [reason for _, reason in told]


def changed(**component: Any) -> dict[str, Any]:
    """BaseDef with other keys of its root; None takes one away."""
    data = base()
    for key, value in component.items():
        root(data).pop(key, None)
        if value is not None:
            root(data)[key] = value
    return data


def with_child(**component: Any) -> dict[str, Any]:
    """The same for its child."""
    data = base()
    for key, value in component.items():
        children(data)[0].pop(key, None)
        if value is not None:
            children(data)[0][key] = value
    return data


def owned(**owners: str) -> dict[str, Any]:
    """BaseDef with children that say whose they are."""
    data = base()
    data["spec"].pop("optimizationInstructions")
    data["spec"]["structureDefinition"]["childComponents"] = [
        {"name": name, "ownerRef": owner} for name, owner in owners.items()
    ]
    return data


def members(*names: str) -> dict[str, Any]:
    """BaseDef with other members of its pod group."""
    data = base()
    gang = data["spec"]["optimizationInstructions"]["gangScheduling"]
    gang["podGroups"][0]["members"] = [{"componentName": name} for name in names]
    return data


def expressions(**texts: str) -> dict[str, Any]:
    """BaseDef with an expression for some states."""
    mappings = {
        state: [{"byExpression": {"expression": text, "expectedResult": "true"}}]
        for state, text in texts.items()
    }
    return changed(statusDefinition={"statusMappings": mappings})


KIND = {"group": "apps", "version": "v1", "kind": "Deployment"}
TEMPLATE = {"podTemplateSpecPath": ".spec.template"}
SPEC = {"podSpecPath": ".spec.template.spec"}
FRAGMENTS = {"fragmentedPodSpecDefinition": {"imagePath": ".spec.image"}}
SELECTOR = {
    "componentTypeSelector": {"matchLabels": {"role": "root"}},
    "componentInstanceSelector": {"idPath": ".metadata.labels.id"},
}
MANY = {"instanceIdPath": ".spec.jobs[].name", "specDefinition": None, "scaleDefinition": None}


def broken() -> dict[str, Any]:
    data = changed(kind=None)
    del children(data)[0]["ownerRef"]
    gang = data["spec"]["optimizationInstructions"]["gangScheduling"]
    gang["podGroups"][0]["members"].append({"componentName": "nonexistent"})
    return data


def twice() -> dict[str, Any]:
    data = base()
    children(data).append(copy.deepcopy({**children(data)[0], "name": "root"}))
    return data


def root_only() -> dict[str, Any]:
    data = base()
    del data["spec"]["optimizationInstructions"]
    del data["spec"]["structureDefinition"]["childComponents"]
    return data


def without_gang() -> dict[str, Any]:
    data = base()
    del data["spec"]["optimizationInstructions"]
    return data


def twice_and_worse() -> dict[str, Any]:
    data = twice()
    root(data).pop("kind")
    children(data)[0]["ownerRef"] = "nobody"
    return data


def circle_and_worse() -> dict[str, Any]:
    data = owned(A="B", B="A")
    root(data).pop("kind")
    return data


@pytest.mark.parametrize(
    "data, expected",
    [
        pytest.param(None, ["wrong-kind"], id="D1"),
        pytest.param(base(), [], id="D2"),
        pytest.param(broken(), ["owner-missing", "root-kind", "member-unknown"], id="D3"),
        pytest.param(twice(), ["name-not-unique"], id="D4"),
        pytest.param(changed(kind=None), ["root-kind"], id="D6"),
        pytest.param(changed(kind={**KIND, "group": ""}), ["root-kind"], id="D7"),
        pytest.param(changed(ownerRef="worker"), ["root-owner"], id="D8"),
        pytest.param(changed(statusDefinition=None), ["root-status"], id="D9"),
        pytest.param(with_child(ownerRef=None), ["owner-missing"], id="D10"),
        pytest.param(with_child(ownerRef=""), ["owner-missing"], id="D11"),
        pytest.param(with_child(ownerRef="nonexistent"), ["owner-unknown"], id="D12"),
        pytest.param(owned(A="B", B="A"), ["owner-cycle"], id="D13"),
        pytest.param(owned(A="B", B="C", C="A"), ["owner-cycle"], id="D14"),
        pytest.param(owned(A="root", B="A"), [], id="D15"),
        pytest.param(owned(**{"": "root"}), ["name-missing"], id="D16"),
        pytest.param(changed(specDefinition={**TEMPLATE, **SPEC}), ["several-forms"], id="D17"),
        pytest.param(
            changed(specDefinition={**TEMPLATE, **FRAGMENTS}), ["several-forms"], id="D18"
        ),
        pytest.param(changed(specDefinition={**SPEC, **FRAGMENTS}), ["several-forms"], id="D19"),
        pytest.param(
            changed(specDefinition={**TEMPLATE, **SPEC, **FRAGMENTS}),
            ["several-forms"],
            id="D20",
        ),
        pytest.param(changed(**MANY), ["instance-selector-missing"], id="D21"),
        pytest.param(changed(podSelector=SELECTOR), ["instance-ids-missing"], id="D22"),
        pytest.param(changed(**MANY, podSelector=SELECTOR), [], id="D23"),
        pytest.param(without_gang(), [], id="D24"),
        pytest.param(members("nonexistent"), ["member-unknown"], id="D25"),
        pytest.param(members("root", "worker"), [], id="D26"),
        pytest.param(root_only(), [], id="D27"),
        pytest.param(expressions(running='.status.phase == "Running"'), [], id="D29"),
        pytest.param(expressions(running="del(.status)"), ["forbidden-function"], id="D30"),
        pytest.param(expressions(running=".status.phase == "), ["not-jq"], id="D31"),
        pytest.param(
            expressions(
                initializing=".status == null",
                running='.status.phase == "Running"',
                completed=".status.succeeded > 0",
                failed=".status.failed > 0",
            ),
            [],
            id="D32",
        ),
        pytest.param(
            expressions(initializing=".a == 1", running="del(.status)", failed=".b == 2"),
            ["forbidden-function"],
            id="D33",
        ),
        pytest.param(twice_and_worse(), ["name-not-unique"], id="D36"),
        pytest.param(circle_and_worse(), ["root-kind"], id="D37"),
    ],
)
def test_a_definition_is_validated(data: Any, expected: list[str]) -> None:
    assert errors(data) == expected


def test_D5_the_components_are_known_by_name() -> None:
    interface, _ = parse_interface(document(base()))
    assert interface is not None
    assert [each.name for each in interface.components] == ["root", "worker"]


def test_D28_a_path_that_deletes_is_refused() -> None:
    found = errors(changed(specDefinition={"podTemplateSpecPath": "del(.spec.template)"}))
    assert "forbidden-function" in found


MATCHERS = [{"byPhase": "x"}]


def test_D34_every_state_comes_with_its_matchers() -> None:
    mappings = StatusMappings.model_validate({each.lower(): MATCHERS for each in EVALUATED})
    found = entries(mappings)
    assert [name for name, _ in found] == list(EVALUATED)
    assert all(matchers is not None and len(matchers) == 1 for _, matchers in found)


def test_D35_what_is_absent_stays_absent() -> None:
    mappings = StatusMappings.model_validate({"running": MATCHERS, "failed": []})
    found = dict(entries(mappings))
    assert len(found) == 8
    assert [name for name, matchers in found.items() if matchers is not None] == [
        "Running",
        "Failed",
    ]
    assert found["Failed"] == []
