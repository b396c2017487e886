"""Documents as upstream prints and ships them load; what is doubtful in them is a warning."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.conformance.fixtures import evaluator
from tests.definitions import children, document, root
from webhook.access.errors import AccessError
from webhook.access.object import bind
from webhook.interface.interface import Interface, parse_interface
from webhook.jq.external import evaluate
from webhook.pods.definition import Definition
from webhook.pods.locate import locate
from webhook.pods.replicas import read_scales

JOBSET = {"group": "jobset.x-k8s.io", "version": "v1alpha2", "kind": "JobSet"}


def quick_start() -> dict[str, Any]:
    """A definition with what upstream's quick start has, and without what that leaves out."""
    return {
        "apiVersion": "run.ai/v1alpha1",
        "kind": "Karta",
        "spec": {
            "structureDefinition": {
                "rootComponent": {
                    "name": "set",
                    "kind": dict(JOBSET),
                    "statusDefinition": {
                        "conditionsDefinition": {
                            "path": ".status.conditions",
                            "typeFieldName": "type",
                            "statusFieldName": "status",
                        },
                        "statusMappings": {
                            "completed": [{"byConditions": [{"type": "Done", "status": "True"}]}]
                        },
                    },
                },
                "childComponents": [
                    {
                        "name": "job",
                        "kind": {"group": "batch", "version": "v1", "kind": "Job"},
                        "ownerRef": "set",
                        "specDefinition": {
                            "podTemplateSpecPath": ".spec.replicatedJobs[].template.spec.template"
                        },
                        "scaleDefinition": {"replicasPath": ".spec.replicatedJobs[].replicas"},
                        "instanceIdPath": ".spec.replicatedJobs[].name",
                    }
                ],
            }
        },
    }


def components(*components: dict[str, Any]) -> dict[str, Any]:
    """The quick start with other children."""
    data = quick_start()
    data["spec"]["structureDefinition"]["childComponents"] = copy.deepcopy(list(components))
    return data


def loaded(data: dict[str, Any], *expected: str) -> Interface:
    """The definition, after a look at its problems: warnings with these reasons."""
    interface, problems = parse_interface(document(data))
    assert [(each.severity, each.reason) for each in problems] == [
        ("warning", reason) for reason in expected
    ]
    assert interface is not None
    return interface


def job(name: str, replicas: int) -> dict[str, Any]:
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main"}]}}
    return {"name": name, "replicas": replicas, "template": {"spec": {"template": pod}}}


def jobset() -> dict[str, Any]:
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "training"},
        "spec": {"replicatedJobs": [job("master", 1), job("worker", 3)]},
    }


def test_the_quick_start_loads_and_finds_its_pods() -> None:
    interface = loaded(quick_start(), "instance-selector-missing")
    found = locate(Definition(interface), jobset())
    assert [each.instance for each in found] == ["master", "worker"]


def test_a_child_without_owner_belongs_to_the_root() -> None:
    data = quick_start()
    del children(data)[0]["ownerRef"]
    del children(data)[0]["kind"]
    interface = loaded(data, "owner-missing", "instance-selector-missing")
    assert interface.components[1].owner == "set"
    root(data)["name"] = ""
    assert parse_interface(document(data))[0] is None


def test_several_components_of_one_kind_are_no_warning() -> None:
    pods = [
        {
            "name": name,
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "ownerRef": "set",
            "specDefinition": {"podTemplateSpecPath": f".spec.{name}.template"},
            "podSelector": {"componentTypeSelector": {"matchLabels": {"role": name}}},
        }
        for name in ("head", "worker")
    ]
    data = components(*pods)
    listed = [{"group": "", "version": "v1", "kind": "Pod"}, dict(JOBSET)]
    data["spec"]["structureDefinition"]["additionalChildKinds"] = listed
    loaded(data)
    listed.append(dict(JOBSET))
    loaded(data, "kind-repeated")


def test_fragments_are_written_into_whole_pods() -> None:
    """What upstream's page shows: an update of fragments where a path names pod templates."""
    interface, _ = parse_interface(document(quick_start()))
    bound = bind(interface, jobset())
    values = {
        "master": {"schedulerName": "mine", "labels": {"my-label": "true"}},
        "worker": {"schedulerName": "mine", "image": "worker:1", "nodeAffinity": {"x": []}},
    }
    bound.component("job").update("fragments", values)
    first, second = (
        each["template"]["spec"]["template"] for each in bound.document["spec"]["replicatedJobs"]
    )
    assert first["spec"]["schedulerName"] == "mine"
    assert first["metadata"]["labels"] == {"my-label": "true"}
    assert second["spec"]["affinity"] == {"nodeAffinity": {"x": []}}
    assert second["spec"]["containers"] == [{"name": "main", "image": "worker:1"}]
    assert second["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize("metadata", [True, False])
def test_fragments_are_written_into_pod_specs(metadata: bool) -> None:
    paths = {"podSpecPath": ".spec.pod", **({"metadataPath": ".spec.meta"} if metadata else {})}
    interface, _ = parse_interface(
        document(components({"name": "job", "ownerRef": "set", "specDefinition": paths}))
    )
    body = {**jobset(), "spec": {"pod": {"containers": []}, "meta": {}}}
    component = bind(interface, body).component("job")
    component.update("fragments", {"": {"priorityClassName": "high"}})
    assert component.pod_specs() == {"": {"containers": [], "priorityClassName": "high"}}
    with pytest.raises(AccessError):
        component.update("fragments", {"": {"image": "a"}})  # no container
    if metadata:
        component.update("fragments", {"": {"labels": {"c": "d"}}})
        assert component.metadata() == {"": {"labels": {"c": "d"}}}
    else:
        with pytest.raises(AccessError):
            component.update("fragments", {"": {"labels": {"c": "d"}}})


INSTANCE = {"componentInstanceSelector": {"idPath": ".metadata.name"}}
PARTS = {
    "name": "part",
    "ownerRef": "set",
    "instanceIdPath": ".spec.parts[] | .name",
    "podSelector": INSTANCE,
    "scaleDefinition": {"replicasPath": ".spec.parts[] | (.replicas // 1)"},
    "specDefinition": {
        "fragmentedPodSpecDefinition": {
            "schedulerNamePath": ".spec.parts[] | .pod.schedulerName",
            "containerPath": '.spec.parts[] | .pod.containers[] | select(.name == "main")',
            "imagePath": '.spec.parts[] | .pod.containers[] | select(.name == "main") | .image',
        }
    },
}


def test_fragments_inside_an_instance_belong_to_it() -> None:
    definition = Definition(loaded(components(PARTS)))
    body = {**jobset(), "spec": {"parts": [
        {"name": "a", "pod": {"containers": [{"name": "x", "image": "x"},
                                             {"name": "main", "image": "a"}]}},
        {"name": "none", "replicas": 7},
        {"name": "b", "replicas": 2, "pod": {"containers": [{"name": "main", "image": "b"}]}},
    ]}}  # fmt: skip
    found = locate(definition, body)
    assert [(each.instance, each.spec["containers"][0]["image"]) for each in found] == [
        ("a", "a"),
        ("b", "b"),
    ]
    scales = {each.instance: each.replicas for each in read_scales(definition, body)}
    assert scales == {"a": 1, "none": 7, "b": 2}
    component = bind(definition, body).component("part")
    assert {name: held["image"] for name, held in (component.fragments() or {}).items()} == {
        "a": "a",
        "b": "b",
    }
    component.update("fragments", {"b": {"image": "c"}})
    listed = component.access.document["spec"]["parts"]
    assert [each["image"] for each in listed[0]["pod"]["containers"]] == ["x", "a"]
    assert [each["image"] for each in listed[2]["pod"]["containers"]] == ["c"]


def test_two_values_of_one_fragment_in_an_instance_are_an_error() -> None:
    twice = {"containers": [{"name": "main", "image": "a"}, {"name": "main", "image": "b"}]}
    body = {**jobset(), "spec": {"parts": [{"name": "a", "pod": twice}]}}
    component = bind(loaded(components(PARTS)), body).component("part")
    with pytest.raises(AccessError) as error:
        component.fragments()
    assert error.value.reason == "several-values"


WORKERS = {
    "name": "worker",
    "ownerRef": "set",
    "instanceIdPath": ".spec.groups[].name",
    "podSelector": INSTANCE,
    "specDefinition": {"podTemplateSpecPath": ".spec.cluster.groups[].template"},
    "scaleDefinition": {"replicasPath": ".spec.cluster.groups[].replicas // 1"},
}


def test_ids_of_another_collection_leave_pods_numbered() -> None:
    interface = loaded(components(WORKERS), "not-paired")
    groups = [{"template": {"spec": {}}, "replicas": 3}, {"template": {"spec": {}}}]
    body = {**jobset(), "spec": {"cluster": {"groups": groups}}}
    definition = Definition(interface)
    assert [each.instance for each in locate(definition, body)] == ["0", "1"]
    scales = read_scales(definition, body)
    assert [(each.instance, each.replicas) for each in scales] == [("0", 3), ("1", 1)]


@pytest.mark.parametrize(
    "changes",
    [
        {"scaleDefinition": {"replicasPath": ".spec.groups[].replicas"}},
        {"scaleDefinition": {"maxReplicasPath": ".spec.others[].most"}},
        {
            "specDefinition": {
                "podSpecPath": ".spec.cluster.groups[].pod",
                "metadataPath": ".spec.meta[].m",
            }
        },
    ],
)
def test_numbers_and_metadata_go_with_pods_where_ids_do_not(changes: dict[str, Any]) -> None:
    interface, problems = parse_interface(document(components({**WORKERS, **changes})))
    assert interface is None
    assert {each.reason for each in problems} == {"not-paired"}
    assert {each.severity for each in problems} == {"warning", "error"}


ALONE = (
    ".spec.plan as $p | $p.roles[] "
    "| select(.name as $n | ([$p.groups[]?.roles[]?] | index($n) | not))"
)


def test_instances_that_jq_chooses_are_paired_with_their_fragments_and_numbers() -> None:
    role = {
        "name": "role",
        "ownerRef": "set",
        "specDefinition": {
            "fragmentedPodSpecDefinition": {
                "containersPath": f"{ALONE} | .pod.containers",
                "labelsPath": f"{ALONE} | .labels",
            }
        },
        "instanceIdPath": f"{ALONE} | .name",
        "scaleDefinition": {
            "replicasPath": f".spec.copies as $c | {ALONE} | ($c // 1) * (.count // 1)"
        },
        "podSelector": {"componentInstanceSelector": {"idPath": ".metadata.labels.role"}},
    }
    group = {
        "name": "group",
        "ownerRef": "set",
        "instanceIdPath": ".spec.plan.groups[].name",
        "scaleDefinition": {
            "replicasPath": "(.spec.copies // 1) * (.spec.plan.groups[].count // 1)"
        },
        "podSelector": {"componentInstanceSelector": {"idPath": ".metadata.labels.group"}},
    }
    interface = loaded(components(role, group))
    roles = [
        {"name": "a", "count": 3, "pod": {"containers": [{"name": "x"}]}},
        {"name": "lead", "pod": {"containers": [{"name": "y"}]}},
        {"name": "b", "labels": {"c": "d"}, "pod": {"containers": [{"name": "z"}]}},
    ]
    groups = [{"name": "g", "roles": ["lead"], "count": 4}]
    body = {**jobset(), "spec": {"copies": 2, "plan": {"roles": roles, "groups": groups}}}
    definition = Definition(interface)
    facts = evaluate(definition.foreign, evaluator(), (body,))
    definition = definition.with_results(facts.results(body))
    found = {each.instance: each for each in locate(definition, body)}
    numbers = {each.instance: each.replicas for each in read_scales(definition, body)}
    assert {name: each.spec["containers"] for name, each in found.items()} == {
        "a": [{"name": "x"}],
        "b": [{"name": "z"}],
    }
    assert found["b"].metadata["labels"] == {"c": "d"}
    assert numbers == {"a": 6, "b": 2, "g": 8}


def test_a_component_without_pods_between_two_others_and_a_key_from_a_list() -> None:
    data = components(
        {
            "name": "group",
            "ownerRef": "set",
            "scaleDefinition": {"replicasPath": ".spec.size"},
            "podSelector": {"replicaSelector": {"keyPath": ".metadata.labels.group"}},
        },
        {
            "name": "leader",
            "kind": {"group": "apps", "version": "v1", "kind": "StatefulSet"},
            "ownerRef": "group",
            "specDefinition": {"podTemplateSpecPath": ".spec.leader"},
            "podSelector": {"componentTypeSelector": {"keyPath": ".metadata.labels.leads"}},
        },
    )
    owner = '[.metadata.ownerReferences[]? | select(.kind == "JobSet") | .uid][0]'
    member = {"componentName": "group", "groupByKeyPaths": [owner]}
    data["spec"]["optimizationInstructions"] = {
        "gangScheduling": {"podGroups": [{"name": "a", "members": [member]}]}
    }
    data["status"] = {}
    assert [each.owner for each in loaded(data).components] == ["", "set", "group"]
