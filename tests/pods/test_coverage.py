"""Coverage: containers and pod specs outside the known pod locations are found."""

from __future__ import annotations

from typing import Any

import pytest

from tests.definitions import document, grouped, shipped
from webhook.interface.crd_schema import Spot, expression, spots
from webhook.interface.profile_document import parse_profile
from webhook.pods.coverage import MAX_NODES, find_uncovered
from webhook.pods.definition import Definition
from webhook.pods.locate import locate
from webhook.pods.location import LocationError
from webhook.pods.schema_proof import find_gaps, is_covered

CONTAINER = {"name": "main", "image": "a"}
SPEC = {"containers": [CONTAINER], "volumes": [{"name": "v", "image": {"reference": "x"}}]}
TEMPLATE = {"metadata": {"name": "x", "labels": {"image": "x"}}, "spec": SPEC}
KNOWN = grouped(specDefinition={"podTemplateSpecPath": ".spec.template"})


def found(data: Any, definition: Definition = KNOWN) -> list[tuple[tuple[str | int, ...], str]]:
    return list(find_uncovered(data, locate(definition, data), definition))


def with_profile(**spec: Any) -> Definition:
    body = {"group": "batch.example.com", "kind": "Group", "versions": ["v1"], "resource": "groups"}
    profile, problems = parse_profile(
        document(
            {
                "apiVersion": "podgate.dev/v1alpha1",
                "kind": "WorkloadProfile",
                "spec": {**body, **spec},
            }
        )
    )
    assert profile is not None, problems
    return Definition(KNOWN.interface, profile)


def test_known_locations_leave_nothing() -> None:
    assert (
        found({"metadata": {"a": CONTAINER}, "status": SPEC, "spec": {"template": TEMPLATE}}) == []
    )


def test_pods_beside_the_known_ones_are_found_in_order() -> None:
    data = {
        "spec": {
            "before": {"spec": SPEC},
            "template": TEMPLATE,
            "sidecars": [CONTAINER, {"image": "b", "resources": {}}],
        },
        "template": TEMPLATE,
    }
    assert found(data) == [
        (("spec", "before", "spec"), "pod spec"),
        (("spec", "sidecars", 0), "container"),
        (("spec", "sidecars", 1), "container"),
        (("template", "spec"), "pod spec"),
    ]


def test_pods_hidden_inside_a_known_pod_spec_are_found() -> None:
    spec = {
        "containers": [CONTAINER],
        "Containers": [{"name": "odd", "image": "b"}],
        "workerSpec": SPEC,
    }
    assert found({"spec": {"template": {"spec": spec}}}) == [
        (("spec", "template", "spec", "Containers", 0), "container"),
        (("spec", "template", "spec", "workerSpec"), "pod spec"),
    ]


@pytest.mark.parametrize(
    "node",
    [
        {"containers": []},
        {"containers": ["a"]},
        {"containers": {"a": CONTAINER["name"]}},
        {"image": "a"},
        {"image": {"name": "a"}, "command": []},
        {"name": "a", "command": ["x"]},
    ],
)
def test_what_only_resembles_a_pod_is_not_found(node: Any) -> None:
    assert found({"spec": {"other": node}}) == []


def test_keys_of_a_known_pod_in_other_letter_case_are_found_where_nothing_prunes_them() -> None:
    context = {"Privileged": True, "capabilities": {"Add": ["ALL"], "add": []}}
    volume = {"name": "v", "HostPath": {"path": "/"}}
    spec = {
        "HOSTPID": True,
        "containers": [{**CONTAINER, "env": [{"Name": "x"}], "securityContext": context}],
        "volumes": [volume],
        "securityContext": {"Sysctls": []},
    }
    data = {"spec": {"template": {"metadata": {"labels": {"HostPID": "x"}}, "spec": spec}}}
    places = {path[3:] for path, _ in found(data)}
    assert places == {
        ("HOSTPID",),
        ("containers", 0, "securityContext", "Privileged"),
        ("containers", 0, "securityContext", "capabilities", "Add"),
        ("volumes", 0, "HostPath"),
        ("securityContext", "Sysctls"),
    }
    assert found(data, with_profile(openSubtrees=[])) == []


@pytest.mark.parametrize(
    "node",
    [
        {"Containers": [CONTAINER]},
        {"INITCONTAINERS": [{}]},
        {"ephemeralcontainers": [{"Image": "x"}]},
    ],
)
def test_letter_case_is_ignored_without_a_schema(node: Any) -> None:
    assert found({"spec": {"other": node}}) == [(("spec", "other"), "pod spec")]
    assert found({"spec": {"c": {"IMAGE": "a", "Command": []}}}) == [(("spec", "c"), "container")]


def test_with_a_profile_only_open_subtrees_are_walked() -> None:
    data = {"spec": {"template": TEMPLATE, "open": {"pod": SPEC}, "closed": SPEC}}
    assert found(data, with_profile(openSubtrees=[])) == []
    assert found(data, with_profile(openSubtrees=[".spec.open"])) == [
        (("spec", "open", "pod"), "pod spec")
    ]
    assert [path for path, _ in found(data, with_profile())] == [
        ("spec", "open", "pod"),
        ("spec", "closed"),
    ]


def test_places_that_are_no_pods_are_passed_over_whole() -> None:
    data = {"spec": {"template": TEMPLATE, "body": {"pod": SPEC}, "list": [CONTAINER]}}
    not_pods = [{"place": ".spec.body", "reason": "r"}, {"place": ".spec.list[]", "reason": "r"}]
    assert found(data, with_profile(notPods=not_pods)) == []


def test_containers_outside_the_templates_are_known_but_what_they_hide_is_not() -> None:
    definition = with_profile(extraContainers=[{"component": "group", "place": ".spec.sidecar"}])
    sidecar = {"image": "a", "command": ["x"]}
    data = {"spec": {"template": TEMPLATE, "sidecar": sidecar}}
    assert found(data, definition) == []
    sidecar["inner"] = CONTAINER  # type: ignore[assignment]
    assert found(data, definition) == [(("spec", "sidecar", "inner"), "container")]


def test_walking_is_bounded() -> None:
    deep: Any = {"x": {}}
    for _ in range(10_000):
        deep = {"a": deep}
    for data, reason in (
        ({"spec": {"deep": deep}}, "too-deep"),
        ({"spec": {"wide": [{} for _ in range(MAX_NODES)]}}, "too-large"),
    ):
        with pytest.raises(LocationError) as caught:
            found(data)
        assert caught.value.reason == reason


@pytest.mark.parametrize("data", [[], None, 5, "x"])
def test_what_is_no_object_has_nothing_to_walk(data: Any) -> None:
    assert find_uncovered(data, [], KNOWN) == []


def objects(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


TEXT = {"type": "string"}
ITEM = objects(name=TEXT, image=TEXT, command={"type": "array", "items": TEXT})
POD = objects(containers={"type": "array", "items": ITEM}, nodeName=TEXT)
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def places(**spec: Any) -> list[tuple[str, str]]:
    schema = objects(metadata=OPEN, status=objects(pod=POD), spec=objects(**spec))
    return [(expression(each.steps), each.what) for each in spots(schema)]


def test_a_schema_tells_where_pods_can_be() -> None:
    found_places = places(
        template=objects(metadata=OPEN, spec=POD),
        jobs={"type": "array", "items": objects(pod=POD)},
        roles={"type": "object", "additionalProperties": objects(sidecar=ITEM)},
        plain=objects(image=TEXT),
        picture=objects(image=objects(a=TEXT), name=TEXT),
    )
    assert found_places == [
        (".spec.template", "pod template"),
        (".spec.jobs[].pod", "pod spec"),
        (".spec.roles[].sidecar", "container"),
    ]


def test_a_schema_tells_what_it_leaves_open() -> None:
    assert places(
        a=OPEN,
        b={"type": "object", "additionalProperties": True},
        c={"type": "object", "x-kubernetes-embedded-resource": True},
        d={"type": "object", "additionalProperties": TEXT},
        e={"type": "object"},
        f=7,
    ) == [(".spec.a", "open"), (".spec.b", "open"), (".spec.c", "open")]


def test_pods_beside_the_keys_of_a_pod_are_told_too() -> None:
    wider = objects(**POD["properties"], workerSpec=POD, model=ITEM)
    assert places(predictor=wider) == [
        (".spec.predictor", "pod spec"),
        (".spec.predictor.workerSpec", "pod spec"),
        (".spec.predictor.model", "container"),
    ]


def test_what_a_definition_does_not_reach_is_unproven() -> None:
    schema = objects(
        spec=objects(
            template=objects(metadata=OPEN, spec=POD),
            other=objects(metadata=OPEN, spec=POD),
            open=OPEN,
            body=objects(pod=POD, list={"type": "array", "items": objects(c=ITEM)}),
        )
    )
    missing = find_gaps(schema, with_profile(openSubtrees=[]))
    assert [expression(each.steps) for each in missing] == [
        ".spec.other",
        ".spec.open",
        ".spec.body.pod",
        ".spec.body.list[].c",
    ]
    definition = with_profile(
        openSubtrees=[".spec.open"], notPods=[{"place": ".spec.body", "reason": "r"}]
    )
    assert [expression(each.steps) for each in find_gaps(schema, definition)] == [".spec.other"]


def test_without_a_profile_everything_is_walked_and_thereby_proven() -> None:
    assert find_gaps(objects(spec=objects(x=OPEN, y=POD)), KNOWN) == []


def test_a_template_is_proven_by_its_spec_and_the_other_way_round() -> None:
    by_spec = Definition(
        grouped(specDefinition={"podSpecPath": ".spec.template.spec"}).interface,
        with_profile(openSubtrees=[]).profile,
    )
    template = Spot(("spec", "template"), "pod template", {})
    spec = Spot(("spec", "template", "spec"), "pod spec", {})
    odd = Spot(("spec", "template", "spec", "worker"), "pod spec", {})
    for each in (by_spec, with_profile(openSubtrees=[])):
        assert [is_covered(spot, each, ()) for spot in (template, spec, odd)] == [True, True, False]


def test_a_pod_spec_in_pieces_is_reached_when_each_of_its_lists_is_a_piece() -> None:
    parts = [{"component": "group", "pod": ".spec.containers", "place": ".spec.set.containers"}]
    definition = Definition(
        grouped(specDefinition={"fragmentedPodSpecDefinition": {"imagePath": ".spec.x"}}).interface,
        with_profile(openSubtrees=[], podParts=parts).profile,
    )
    assert [each.what for each in find_gaps(objects(spec=objects(set=POD)), definition)] == []
    wider = objects(**POD["properties"], initContainers=POD["properties"]["containers"])
    missing = find_gaps(objects(spec=objects(set=wider)), definition)
    assert [expression(each.steps) for each in missing] == [".spec.set"]


def test_shipped_kinds_without_open_subtrees_cost_nothing() -> None:
    definition = shipped("job.batch")
    data = {"spec": {"template": TEMPLATE, "elsewhere": SPEC}}
    assert found(data, definition) == []
