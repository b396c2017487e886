"""Workload profiles: what is read, what is refused, and how they agree with interfaces."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.definitions import base, document, reasons, yaml_document
from webhook.documents.source import SourceDocument
from webhook.interface.interface import Interface, parse_interface
from webhook.interface.profile import MainConvention, Profile, without_profile
from webhook.interface.profile_document import is_profile, parse_profile
from webhook.interface.profile_rules import check_profile


def minimal(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": "WorkloadProfile",
        "metadata": {"name": "deployment.apps"},
        "spec": {
            "group": "apps",
            "kind": "Deployment",
            "versions": ["v1"],
            "resource": "deployments",
            **spec,
        },
    }


def parsed(**spec: Any) -> Profile:
    profile, problems = parse_profile(document(minimal(**spec)))
    assert problems == ()
    assert profile is not None
    return profile


def errors(**spec: Any) -> list[str]:
    profile, problems = parse_profile(document(minimal(**spec)))
    assert (profile is None) == bool(reasons(problems))
    return reasons(problems)


def interface(data: dict[str, Any] | None = None) -> Interface:
    found, problems = parse_interface(document(data or base()))
    assert found is not None, problems
    return found


def in_pieces() -> Interface:
    data = base()
    for each in data["spec"]["structureDefinition"]["childComponents"]:
        fragments = {"imagePath": ".spec.image"}
        each["specDefinition"] = {"fragmentedPodSpecDefinition": fragments}
        each.pop("instanceIdPath", None)
        each.pop("podSelector", None)
    return interface(data)


def test_a_minimal_profile_has_safe_defaults() -> None:
    profile = parsed()
    assert profile.workload_type is None
    assert profile.uncovered == "deny"
    assert profile.open_subtrees is None
    assert not profile.built_in
    anybody = profile.component("anybody")
    assert anybody.roles("x") == ("worker",)
    assert anybody.main == MainConvention()
    assert anybody.children == "derived"
    assert parsed(openSubtrees=[]).open_subtrees == ()


def test_what_is_no_profile_is_refused() -> None:
    assert not is_profile([])
    assert reasons(parse_profile(document({"kind": "WorkloadProfile"}))[1]) == ["wrong-kind"]
    assert reasons(parse_profile(document({**minimal(), "spec": None}))[1]) == ["wrong-type"]


def test_roles_by_instance_are_compared_without_case() -> None:
    roles = {"byInstance": {"Master": "master", "chief": "leader"}}
    component = parsed(components={"replica": {"roles": roles}}).component("replica")
    assert component.roles("master") == ("master",)
    assert component.roles("CHIEF") == ("leader",)
    assert component.roles("Worker") == ("worker",)
    leaders = {"byInstance": {}, "otherwise": "leader"}
    component = parsed(components={"replica": {"roles": leaders}}).component("replica")
    assert component.roles("") == ("leader",)


def test_one_place_is_where_a_default_goes() -> None:
    held = parsed(fields={"backoffLimit": {"places": ".spec.a"}}).fields["backoffLimit"]
    assert [each.text for each in held.write] == [".spec.a"]


def test_several_places_say_where_a_default_goes() -> None:
    places = [".spec.a", ".spec.b[].c"]
    assert errors(fields={"f": {"places": places}}) == ["write-missing"]
    assert errors(fields={"f": {"places": places, "write": ".spec.c"}}) == ["write-unknown"]
    held = parsed(fields={"f": {"places": places, "write": ".spec.b[].c"}}).fields["f"]
    assert [each.text for each in held.places] == places
    assert [each.text for each in held.write] == [".spec.b[].c"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"places": [".a"], "scaleOf": {"component": "x"}},
        {"derived": "PyTorch", "places": [".a"]},
    ],
)
def test_a_field_has_one_source(body: dict[str, Any]) -> None:
    assert errors(fields={"f": body}) == ["field-source"]


def test_every_path_is_compiled_and_every_fault_told() -> None:
    bad = "del(.x)"
    found = errors(
        components={
            "a": {"scale": {"minimum": bad, "maximum": bad, "maximumOnlyWith": bad}},
        },
        fields={"f": {"places": [bad], "onlyWith": bad}},
        priorityClass={"secondPlaces": [bad]},
        extraContainers=[{"component": "a", "place": bad}],
        notPods=[{"place": bad, "reason": "r"}],
        shadowDefaults=[{"path": bad, "value": 1, "by": "crd"}],
        immutable=[{"place": bad, "except": [bad]}],
        references=[{"place": bad, "group": "", "kind": "K", "kindPlace": bad}],
        openSubtrees=[bad],
    )
    assert found == ["not-native"] * 14


def test_places_are_not_computed_but_bounds_may_be() -> None:
    sum_of = ".spec.a + .spec.b"
    scale = {"minimum": sum_of, "maximum": sum_of}
    assert errors(components={"a": {"scale": scale}}) == []
    assert errors(fields={"f": {"places": [sum_of]}}) == ["not-a-place"]


def test_groups_have_their_numbers_beside_their_lists() -> None:
    def told(**row: str) -> list[str]:
        return errors(components={"replica": {"scale": {"groups": [row]}}})

    lists = ".spec.groups[].names[]"
    assert told(lists=lists, replicas=".spec.groups[].n", maximum=".spec.groups[].most") == []
    assert told(lists=".spec.names[]", replicas=".spec.n") == []
    assert told(lists=lists, replicas=".spec.n") == ["groups-differ"]
    assert told(lists=lists, replicas=".spec.others[].n", minimum=lists) == ["groups-differ"] * 2


def test_scale_sets_a_component_or_a_field_that_the_profile_has() -> None:
    places = {"replicas": {"places": [".spec.replicas"]}}
    assert errors(fields=places, scaleSubresource={"field": "replicas"}) == []
    assert errors(fields=places, scaleSubresource={"field": "workers"}) == ["field-unknown"]
    assert errors(scaleSubresource={}) == ["scale-target"]
    both = {"component": "replica", "field": "replicas"}
    assert errors(fields=places, scaleSubresource=both) == ["scale-target"]


def test_a_component_has_one_role_and_one_convention() -> None:
    both = {"role": "worker", "roles": {"byInstance": {"a": "master"}}}
    assert errors(components={"a": both}) == ["two-roles"]
    for main in ({}, {"name": "x", "index": 0}):
        assert errors(components={"a": {"mainContainer": main}}) == ["main-container"]
    assert errors(components={"a": {"mainContainer": {"index": -1}}}) == ["bad-value"]
    assert errors(components={"a": {"mainContainer": {"name": ""}}}) == ["empty-value"]


def test_values_outside_an_enum_are_told_with_the_allowed_ones() -> None:
    _, problems = parse_profile(document(minimal(workloadType="batch", uncovered="maybe")))
    assert reasons(problems) == ["unknown-value"] * 2
    assert "`training`" in problems[0].fix
    assert problems[0].path == "spec.workloadType"


def test_unknown_keys_are_warned_about_and_required_ones_named() -> None:
    data = minimal(colour="blue", components={"a": {"rol": "worker"}})
    del data["spec"]["resource"]
    profile, problems = parse_profile(document(data))
    assert profile is None
    assert reasons(problems) == ["missing-field"]
    warned = [each for each in problems if each.severity == "warning"]
    assert {each.path for each in warned} == {"spec.colour", "spec.components.a.rol"}
    assert "did you mean `role`?" in {each.fix for each in warned}


def test_problems_have_lines() -> None:
    text = yaml.safe_dump(minimal(fields={"f": {"places": ["now"]}}), sort_keys=False)
    (problem,) = parse_profile(yaml_document(text))[1]
    line = next(i for i, each in enumerate(text.splitlines(), 1) if "now" in each)
    assert problem.line == line
    assert problem.path == "spec.fields.f.places[0]"


def test_a_nested_document_is_a_problem_and_no_exception() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    assert errors(fields=deep) == ["too-deep"]


def test_a_profile_agrees_with_the_interface_of_its_kind() -> None:
    good = {"root": {"role": "leader"}, "worker": {}}
    assert check_profile(parsed(components=good), interface()) == ()
    other = parsed(components=good, versions=["v2"], kind="StatefulSet")
    assert reasons(check_profile(other, interface())) == ["kind-differs", "version-missing"]


def test_every_component_that_is_named_exists() -> None:
    profile = parsed(
        components={"root": {}, "worker": {"scale": {"podsOf": "d"}}, "wroker": {}},
        extraContainers=[{"component": "a", "place": ".x"}],
        fields={"numWorkers": {"scaleOf": {"component": "b"}}},
        scaleSubresource={"component": "c"},
        podParts=[{"component": "d2", "pod": ".spec.hostNetwork", "place": ".spec.host"}],
    )
    problems = check_profile(profile, interface())
    assert reasons(problems) == ["component-unknown"] * 6
    assert problems[0].fix == "did you mean `worker`?"
    assert "root" in problems[1].fix


def test_a_piece_of_a_component_that_is_misspelt_is_told_with_its_line() -> None:
    row = {"component": "wroker", "pod": ".spec.containers[0].env", "place": ".spec.env"}
    data = minimal(
        components={"root": {}, "worker": {}}, podParts=[{**row, "component": "worker"}, row]
    )
    source = SourceDocument("p.yaml", 1, data, {("spec", "podParts", 1): (9, 5)}, {})
    profile, _ = parse_profile(source)
    assert profile is not None
    found = check_profile(profile, in_pieces(), source)
    assert [(each.reason, each.path, each.line) for each in found] == [
        ("component-unknown", "spec.podParts[1].component", 9)
    ]
    assert found[0].fix == "did you mean `worker`?"


def test_pieces_of_a_component_whose_pods_are_whole_are_told_to_be_ignored() -> None:
    parts = [{"component": "worker", "pod": ".spec.hostNetwork", "place": ".spec.host"}]
    profile = parsed(components={"root": {}, "worker": {}}, podParts=parts)
    problems = check_profile(profile, interface())
    assert reasons(problems) == []
    assert reasons(problems, "warning") == ["parts-ignored"]


def test_roles_by_instance_need_instances_and_pods_should_be_named() -> None:
    profile = parsed(components={"worker": {"roles": {"byInstance": {"a": "master"}}}})
    problems = check_profile(profile, interface())
    assert reasons(problems) == ["no-instances"]
    assert reasons(problems, "warning") == ["component-unnamed"]


def test_field_names_are_checked_against_the_catalogue_when_it_is_given() -> None:
    profile = parsed(
        components={"root": {}, "worker": {}},
        fields={name: {"places": ".a"} for name in ("backofLimit", "zzz", "backoffLimit")},
    )
    assert check_profile(profile, interface()) == ()
    known = frozenset({"backoffLimit"})
    first, second = check_profile(profile, interface(), document({}), known)
    assert (first.reason, first.fix) == ("field-unknown", "did you mean `backoffLimit`?")
    assert second.path == "spec.fields.zzz"


def test_without_a_profile_all_are_workers_and_everything_is_walked() -> None:
    profile = without_profile(interface())
    assert profile.versions == ("v1",)
    assert profile.open_subtrees is None
    assert profile.fields == {}
    assert profile.component("root").role == "worker"


@pytest.mark.parametrize("more", [{}, {"value": 1, "sameAs": ".spec.b"}])
def test_a_shadow_default_has_one_source(more: dict[str, Any]) -> None:
    default = {"path": ".spec.a", "by": "operator", **more}
    assert errors(shadowDefaults=[default]) == ["default-source"]


@pytest.mark.parametrize("key", ["name", "origin", "others", "parts", "undefinedKinds"])
def test_what_the_program_sets_is_no_member_of_the_document(key: str) -> None:
    _, problems = parse_profile(document(minimal(**{key: {}})))
    (problem,) = problems
    assert (problem.reason, problem.severity) == ("unknown-field", "warning")


@pytest.mark.parametrize(
    "spec",
    [
        {"notPods": [{"place": "", "reason": "r"}]},
        {"reserved": [{"place": "", "writer": "w"}]},
        {"podParts": [{"component": "a", "pod": "", "place": ".a"}]},
    ],
)
def test_an_entry_with_an_empty_path_is_not_left_out_in_silence(spec: dict[str, Any]) -> None:
    assert errors(**spec) == ["empty-value"]


def test_an_optional_path_may_be_empty_and_is_then_absent() -> None:
    assert parsed(components={"a": {"mergedWith": ""}}).components["a"].merged_with is None
    assert (
        parsed(openSubtrees=["", ".a"]).open_subtrees == parsed(openSubtrees=[".a"]).open_subtrees
    )


def test_faults_of_types_and_of_paths_are_reported_at_once() -> None:
    spec = {"builtIn": "yes", "notPods": [{"place": "now", "reason": "r"}], "resource": ""}
    adds = {"containers": [{"name": "a"}], "items": [{"field": "labels"}]}
    _, problems = parse_profile(document(minimal(**spec, adds=adds)))
    assert {(each.path, each.reason) for each in problems} == {
        ("spec.resource", "empty-value"),
        ("spec.builtIn", "wrong-type"),
        ("spec.notPods[0].place", "not-native"),
        ("spec.adds.containers[0]", "injected-items"),
        ("spec.adds.items[0]", "injected-items"),
    }
