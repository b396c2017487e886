"""Resource interfaces: what is read, what is refused, and with which words."""
# ruff: noqa: N802 - tests bear the ids of the conformance list

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.definitions import base, children, document, reasons, root, yaml_document
from webhook.documents.problem import Problem
from webhook.interface.interface import is_interface, parse_interface

SELECTOR = {"componentInstanceSelector": {"idPath": ".metadata.labels.name"}}


def problems_of(data: Any) -> tuple[Problem, ...]:
    return parse_interface(document(data))[1]


def errors(data: Any) -> list[str]:
    found = problems_of(data)
    interface, _ = parse_interface(document(data))
    assert (interface is None) == bool(reasons(found))
    assert all(each.fix and each.found for each in found)
    return reasons(found)


def warnings(data: Any) -> list[str]:
    return reasons(problems_of(data), "warning")


def second_child(data: dict[str, Any], name: str, owner: str) -> None:
    children(data).append({"name": name, "ownerRef": owner})


def test_D1_what_is_no_definition_is_refused() -> None:
    assert not is_interface(None)
    assert errors({"kind": "ResourceInterface", "apiVersion": "v1"}) == ["wrong-kind"]
    assert errors({**base(), "spec": []}) == ["missing-field"]


def test_D2_D5_D26_the_base_definition_is_valid() -> None:
    interface, problems = parse_interface(document(base()))
    assert problems == ()
    assert interface is not None
    assert [each.name for each in interface.components] == ["root", "worker"]
    assert interface.root.root
    assert interface.root.form == "template"
    worker = interface.component("worker")
    assert worker is not None
    assert worker.form == "spec"
    assert worker.owner == "root"
    assert worker.replicas is not None
    assert interface.component("nobody") is None
    assert (interface.group, interface.version, interface.kind) == ("apps", "v1", "Deployment")


def test_D3_stages_without_dependence_are_told_together() -> None:
    data = base()
    del root(data)["kind"]
    del children(data)[0]["ownerRef"]
    groups = data["spec"]["optimizationInstructions"]["gangScheduling"]["podGroups"]
    groups[0]["members"].append({"componentName": "nonexistent"})
    assert errors(data) == ["root-kind", "member-unknown"]
    assert "owner-missing" in warnings(data)


def test_D4_D36_names_that_are_not_unique_end_the_checks() -> None:
    data = base()
    children(data)[0]["name"] = "root"
    assert errors(data) == ["name-not-unique"]
    del root(data)["statusDefinition"]
    assert errors(data) == ["name-not-unique"]


@pytest.mark.parametrize(
    "kind",
    [
        None,
        {"group": "apps", "version": "v1"},
        {"group": "", "version": "v1", "kind": "Deployment"},
        {"version": "v1", "kind": "Pod"},
    ],
    ids=["D6 absent", "incomplete", "D7 no group", "no group key"],
)
def test_D6_D7_the_root_has_a_full_kind(kind: Any) -> None:
    data = base()
    root(data)["kind"] = kind
    assert errors(data) == ["root-kind"]


@pytest.mark.parametrize("kind", ["Pod", "ReplicationController", "PodTemplate"])
def test_N14_core_kinds_have_an_empty_group(kind: str) -> None:
    data = base()
    root(data)["kind"] = {"group": "", "version": "v1", "kind": kind}
    assert errors(data) == []


def test_D8_D9_the_root_has_no_owner_and_has_a_status() -> None:
    data = base()
    root(data)["ownerRef"] = "worker"
    del root(data)["statusDefinition"]
    assert errors(data) == ["root-owner", "root-status"]


@pytest.mark.parametrize("owner", [None, ""])
def test_D10_D11_a_child_has_an_owner(owner: Any) -> None:
    data = base()
    children(data)[0]["ownerRef"] = owner
    interface, (problem,) = parse_interface(document(data))
    assert (problem.severity, problem.reason) == ("warning", "owner-missing")
    assert interface is not None
    assert interface.components[1].owner == "root"


def test_D12_an_owner_exists() -> None:
    data = base()
    children(data)[0]["ownerRef"] = "roots"
    (problem,) = problems_of(data)
    assert problem.reason == "owner-unknown"
    assert "`root`" in problem.fix
    assert problem.path == "spec.structureDefinition.childComponents[0].ownerRef"


def test_D13_D14_ownership_has_no_circle() -> None:
    data = base()
    children(data)[0]["ownerRef"] = "other"
    second_child(data, "other", "worker")
    assert errors(data) == ["owner-cycle"]
    data = base()
    children(data)[0]["ownerRef"] = "b"
    second_child(data, "b", "c")
    second_child(data, "c", "worker")
    second_child(data, "beside", "worker")
    assert errors(data) == ["owner-cycle"]


def test_D15_a_chain_of_owners_is_valid() -> None:
    data = base()
    second_child(data, "other", "worker")
    assert errors(data) == []


def test_D16_a_component_has_a_name() -> None:
    data = base()
    second_child(data, "", "root")
    assert errors(data) == ["name-missing"]


@pytest.mark.parametrize(
    "forms",
    [
        ("podTemplateSpecPath", "podSpecPath"),
        ("podTemplateSpecPath", "fragmentedPodSpecDefinition"),
        ("podSpecPath", "fragmentedPodSpecDefinition"),
        ("podTemplateSpecPath", "podSpecPath", "fragmentedPodSpecDefinition"),
    ],
    ids=["D17", "D18", "D19", "D20"],
)
def test_D17_to_D20_pods_have_one_form(forms: tuple[str, ...]) -> None:
    values = {
        "podTemplateSpecPath": ".a",
        "podSpecPath": ".b",
        "fragmentedPodSpecDefinition": {"imagePath": ".c"},
    }
    data = base()
    children(data)[0]["specDefinition"] = {each: values[each] for each in forms}
    assert errors(data) == ["several-forms"]


def test_D21_D22_D23_instances_and_their_selector_come_together() -> None:
    data = base()
    child = children(data)[0]
    child["instanceIdPath"] = ".spec.name"
    assert (errors(data), warnings(data)) == ([], ["instance-selector-missing"])
    child["podSelector"].update(SELECTOR)
    assert errors(data) == []
    del child["instanceIdPath"]
    assert errors(data) == ["instance-ids-missing"]


def test_D24_D27_gang_instructions_and_children_are_optional() -> None:
    data = base()
    del data["spec"]["optimizationInstructions"]
    del data["spec"]["structureDefinition"]["childComponents"]
    assert problems_of(data) == ()


def test_D25_W22_members_of_both_group_forms_are_components() -> None:
    data = base()
    data["spec"]["optimizationInstructions"]["gangScheduling"] = {
        "podGroups": [{"name": "g", "members": [{"componentName": "nonexistent"}]}],
        "podGroup": {"name": "g", "subGroups": [{"componentName": "workers"}]},
    }
    first, second = problems_of(data)
    assert {first.reason, second.reason} == {"member-unknown"}
    assert "`worker`" in second.fix


def test_D28_a_path_that_deletes_is_refused_at_its_place() -> None:
    data = base()
    root(data)["specDefinition"]["podTemplateSpecPath"] = "del(.spec.template)"
    (problem,) = problems_of(data)
    assert problem.reason == "forbidden-function"
    assert problem.path.endswith("rootComponent.specDefinition.podTemplateSpecPath")
    assert "del(.spec.template)" in problem.found


def test_D29_D32_expressions_of_the_status_stay_text() -> None:
    data = base()
    matcher = {"byExpression": {"expression": "any(.x; . > 1)", "expectedResult": "true"}}
    root(data)["statusDefinition"]["statusMappings"] = {
        name: [matcher] for name in ("initializing", "running", "completed", "failed")
    }
    assert problems_of(data) == ()


def test_D37_a_circle_is_not_looked_for_in_a_broken_structure() -> None:
    data = base()
    children(data)[0]["ownerRef"] = "other"
    second_child(data, "other", "worker")
    del root(data)["statusDefinition"]
    assert errors(data) == ["root-status"]


def test_N9_to_N13_a_type_selector_selects_something() -> None:
    data = base()
    selector = children(data)[0]["podSelector"]
    for good in ({"keyPath": ".a"}, {"keyPath": ".a", "value": "v"}, {"matchLabels": {"a": "b"}}):
        selector["componentTypeSelector"] = good
        assert errors(data) == []
    selector["componentTypeSelector"] = {}
    assert errors(data) == ["selector-empty"]
    selector["componentTypeSelector"] = {"value": "v"}
    assert errors(data) == ["selector-value"]


def test_N7_values_of_suspend_actions_are_json_or_text_that_holds_json() -> None:
    data = base()
    good = ["true", '"Suspended"', "null", True, None, 1]
    actions = [{"path": ".spec.x", "value": each} for each in good]
    root(data)["suspendDefinition"] = {"suspendActions": actions, "resumeActions": actions}
    assert errors(data) == []
    actions[0]["value"] = "Suspended"
    assert errors(data) == ["value-not-json"] * 2
    root(data)["suspendDefinition"]["resumeActions"] = []
    assert errors(data) == ["empty-value"]


def test_N22_paths_and_ids_go_through_the_same_collections() -> None:
    data = base()
    child = children(data)[0]
    child["podSelector"].update(SELECTOR)
    child["instanceIdPath"] = ".spec.jobs[].name"
    child["specDefinition"] = {"podTemplateSpecPath": ".spec.groups[].template"}
    child["scaleDefinition"] = {"replicasPath": ".spec.jobs[].replicas"}
    found = problems_of(data)
    assert [(each.severity, each.reason) for each in found] == [
        ("warning", "not-paired"),
        ("error", "not-paired"),
    ]
    for each in found:
        assert ".spec.groups" in each.found
        assert ".spec.jobs" in each.found


def test_pods_are_places_and_never_computed() -> None:
    data = base()
    root(data)["specDefinition"]["podTemplateSpecPath"] = ".spec.a + .spec.b"
    root(data)["scaleDefinition"]["replicasPath"] = "(.spec.a // 1) * (.spec.b // 1)"
    assert errors(data) == ["not-a-place"]


def test_a_matcher_needs_what_it_looks_at() -> None:
    data = base()
    mappings = {"running": [{"byPhase": "Up", "byConditions": [{"type": "Ready"}]}]}
    root(data)["statusDefinition"] = {"statusMappings": mappings}
    assert errors(data) == ["phase-undefined", "conditions-undefined"]
    assert warnings(data) == ["condition-open"]


def test_N33_misspellings_are_read_and_told() -> None:
    data = base()
    child = children(data)[0]
    child["ownerName"] = child.pop("ownerRef")
    child["specDefinition"] = {
        "podSpecPath": ".spec.worker.spec",
        "metaDataPath": ".spec.worker.metadata",
        "specPath": ".spec.worker",
    }
    root(data)["statusDefinition"] = {
        "phaseDefinition": {"path": ".status.phase"},
        "statusMappings": {"running": {"byPhase": "Up"}},
    }
    data["spec"]["structureDefinition"]["referencedComponents"] = []
    interface, problems = parse_interface(document(data))
    assert reasons(problems) == []
    assert sorted(reasons(problems, "warning")) == [
        "misspelt-field",
        "misspelt-field",
        "not-a-list",
        "unknown-field",
        "unknown-field",
    ]
    assert interface is not None
    worker = interface.component("worker")
    assert worker is not None
    assert worker.metadata is not None
    assert worker.owner == "root"


def test_a_problem_inside_a_misspelt_field_names_it_as_written() -> None:
    data = base()
    children(data)[0]["specDefinition"] = {"fragmentedPodDefinition": {"imagePath": "del(.x)"}}
    found = problems_of(data)
    assert [each.reason for each in found] == [
        "misspelt-field",
        "forbidden-function",
    ]
    assert found[-1].path.endswith("specDefinition.fragmentedPodDefinition.imagePath")


@pytest.mark.parametrize("text", ["env.HOME", "input", "$ENV", "now", "input_filename"])
def test_an_expression_that_reads_more_than_the_object_is_refused(text: str) -> None:
    data = base()
    mappings = root(data)["statusDefinition"]["statusMappings"]
    mappings["running"] = [{"byExpression": {"expression": text, "expectedResult": "x"}}]
    (found,) = [each for each in problems_of(data) if each.severity == "error"]
    assert found.path.endswith("byExpression.expression")
    assert text in found.found


def test_the_wrong_spelling_beside_the_right_one_is_dropped() -> None:
    data = base()
    children(data)[0]["ownerName"] = "nobody"
    assert problems_of(data)[0].reason == "misspelt-field"
    assert errors(data) == []


def test_unknown_fields_are_told_with_what_was_probably_meant() -> None:
    data = base()
    root(data)["scaleDefinition"]["replicaPath"] = ".x"
    root(data)["colour"] = "blue"
    data["stauts"] = {}
    found = problems_of(data)
    assert {each.reason for each in found} == {"unknown-field"}
    fixes = {each.path.rsplit(".", 1)[-1]: each.fix for each in found}
    assert fixes["replicaPath"] == "did you mean `replicasPath`?"
    assert fixes["stauts"] == "did you mean `status`?"
    assert fixes["colour"].startswith("remove it; known here: ")


def test_wrong_types_are_told_all_at_once_with_lines() -> None:
    found = parse_interface(
        yaml_document(
            "apiVersion: run.ai/v1alpha1\n"
            "kind: Karta\n"
            "spec:\n"
            "  structureDefinition:\n"
            "    rootComponent:\n"
            "      name: 5\n"
            "      specDefinition: [.spec]\n"
            "    childComponents: {}\n"
            "    additionalChildKinds:\n"
            "    - group: true\n"
        )
    )[1]
    assert {(each.path.rsplit(".", 1)[-1], each.line) for each in found} == {
        ("name", 6),
        ("specDefinition", 7),
        ("childComponents", 8),
        ("group", 10),
    }
    assert found[0].found == "a number where text belongs"


def test_missing_required_fields_are_named() -> None:
    data = base()
    root(data)["statusDefinition"] = {"phaseDefinition": {}}
    found = problems_of(data)
    assert reasons(found) == ["missing-field"] * 2
    assert {each.fix for each in found} == {"add `path`", "add `statusMappings`"}


def test_claims_of_the_format_that_nobody_enforces_are_warnings() -> None:
    data = base()
    child = children(data)[0]
    child["kind"] = dict(root(data)["kind"])
    child["podSelector"] = root(data)["podSelector"]
    child["specDefinition"] = {"podTemplateSpecPath": ".spec.items[].template"}
    root(data)["specDefinition"]["metadataPath"] = ".metadata"
    kinds = data["spec"]["structureDefinition"]["additionalChildKinds"] = [
        {"group": "apps", "version": "v1", "kind": "Deployment"},
        {"group": "apps", "version": "v1", "kind": "Deployment"},
    ]
    assert errors(data) == []
    assert sorted(warnings(data)) == [
        "ids-missing",
        "kind-repeated",
        "metadata-without-spec",
        "selectors-overlap",
    ]
    kinds.append({"group": "apps", "kind": "ReplicaSet"})
    child["kind"] = {"kind": "Pod"}
    assert errors(data) == ["kind-incomplete"] * 2


def test_components_with_pods_should_be_told_apart_and_somebody_has_pods() -> None:
    data = base()
    del children(data)[0]["podSelector"]
    assert warnings(data) == ["pod-selector-missing"]
    del children(data)[0]["specDefinition"]
    assert warnings(data) == []
    del root(data)["specDefinition"]
    assert warnings(data) == ["no-pods"]


def test_paths_that_admission_does_without_may_be_any_harmless_jq() -> None:
    data = base()
    body = root(data)
    body["statusDefinition"] = {
        "phaseDefinition": {"path": "[.x][0]"},
        "conditionsDefinition": {"path": "[.y]"},
        "statusMappings": {},
    }
    body["instanceIdPath"] = ".metadata.name"
    body["podSelector"] = {
        "componentTypeSelector": {"keyPath": ".a | ascii_downcase"},
        "componentInstanceSelector": {"idPath": "ascii_downcase"},
        "replicaSelector": {"keyPath": "tostring"},
    }
    action = [{"path": "[.z]", "value": True}]
    body["suspendDefinition"] = {"suspendActions": action, "resumeActions": action}
    assert problems_of(data) == ()
    body["podSelector"]["replicaSelector"]["keyPath"] = "now"
    assert errors(data) == ["forbidden-function"]


def test_a_path_without_its_dot_is_told_so() -> None:
    data = base()
    root(data)["specDefinition"]["podTemplateSpecPath"] = "spec.template"
    (problem,) = problems_of(data)
    assert problem.reason == "forbidden-function"
    assert "`.spec.template`" in problem.fix


def test_empty_paths_are_skipped() -> None:
    data = base()
    children(data)[0]["scaleDefinition"] = {"replicasPath": "", "minReplicasPath": None}
    interface, problems = parse_interface(document(data))
    assert problems == ()
    assert interface is not None
    assert not interface.components[1].scales


def test_N34_both_kinds_are_one_model() -> None:
    data = base()
    other = copy.deepcopy(data)
    other["apiVersion"], other["kind"] = "run.ai/v1alpha1", "Karta"
    first, second = parse_interface(document(data))[0], parse_interface(document(other))[0]
    assert first is not None
    assert second is not None
    assert first.spec == second.spec
    assert first.name == second.name == "test-ri"


def test_messages_are_short_and_on_one_line() -> None:
    data = base()
    children(data)[0]["ownerRef"] = "a\nb\x1b[31m" + "x" * 500
    (problem,) = problems_of(data)
    assert len(problem.found) < 160
    assert "\n" not in problem.found
    assert "\x1b" not in problem.found


@pytest.mark.parametrize("spec", [None, [], "x", {"structureDefinition": []}, {"a": 1}, {}])
def test_odd_bodies_are_problems_and_never_exceptions(spec: Any) -> None:
    assert errors({**base(), "spec": spec})
    structure = {"rootComponent": spec, "childComponents": [spec]}
    assert errors({**base(), "spec": {"structureDefinition": structure}})
