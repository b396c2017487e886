"""G, I and S: pod groups, scales of whole subtrees, the component of a pod, structure summaries."""
# ruff: noqa: N802 - tests bear the ids of the conformance list

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.conformance.fixtures import QUERIER_POD, bound, jobgroup, pod, spec_of
from webhook.access.errors import AccessError
from webhook.access.gang import (
    Candidate,
    Summary,
    component_of,
    direct_first,
    effective_component,
    instance_of,
    summarize,
)
from webhook.access.pod_count import subtree_scale
from webhook.interface.document import InterfaceSpec, Member

COMPONENT = ".metadata.labels.component"
TEMPLATE = {"podTemplateSpecPath": ".spec.template"}
PODS = {"podSpecPath": ".spec.pods"}
PIECES = {"fragmentedPodSpecDefinition": {"imagePath": ".spec.image"}}


def by_component(value: str) -> dict[str, Any]:
    return {"componentTypeSelector": {"keyPath": COMPONENT, "value": value}}


def part(name: str, owner: str = "", form: Any = None, **rest: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, **rest}
    if owner:
        found["ownerRef"] = owner
    if form:
        found["specDefinition"] = form
    return found


def member(name: str, *filters: str) -> dict[str, Any]:
    return {"componentName": name, "filters": list(filters)}


def groups(**named: list[Any]) -> dict[str, Any]:
    """A gang section; underscores in names stand for hyphens."""
    listed = [{"name": key.replace("_", "-"), "members": each} for key, each in named.items()]
    return {"podGroups": listed}


def labelled(**labels: str) -> dict[str, Any]:
    document: dict[str, Any] = copy.deepcopy(QUERIER_POD)
    document["metadata"]["labels"] = labels
    return document


def candidate_of(spec: InterfaceSpec, document: Any) -> Candidate | None:
    """The pod group of a pod, after the component was found."""
    summary, query = summarize(spec, "parity"), pod(document)
    return effective_component(summary, query, component_of(summary, query))


def shown(found: Candidate | None) -> tuple[str, str] | None:
    if found is None:
        return None
    assert found.member.component_name == found.component
    return found.component, found.group


WORKER = part("worker", "pytorch-job", TEMPLATE, podSelector=by_component("worker"))
MASTER = part("master", "pytorch-job", TEMPLATE, podSelector=by_component("master"))
TRAINING = groups(pytorch_training=[member("worker"), member("master")])
TIER = '.metadata.labels.tier == "{}"'.format


def test_G1_one_component_one_group() -> None:
    spec = spec_of(
        part("simple-job", form=TEMPLATE), gang=groups(simple_group=[member("simple-job")])
    )
    assert shown(candidate_of(spec, labelled())) == ("simple-job", "simple-group")


def test_G2_components_by_selector() -> None:
    spec = spec_of(part("pytorch-job"), WORKER, MASTER, gang=TRAINING)
    for name in ("worker", "master"):
        found = candidate_of(spec, labelled(component=name))
        assert shown(found) == (name, "pytorch-training")


def test_G3_groups_by_filter() -> None:
    gang = groups(
        gpu_group=[member("worker-set", TIER("gpu"))],
        cpu_group=[member("worker-set", TIER("cpu"))],
    )
    spec = spec_of(part("worker-set", form=TEMPLATE), gang=gang)
    for tier in ("gpu", "cpu"):
        assert shown(candidate_of(spec, labelled(tier=tier))) == ("worker-set", f"{tier}-group")
    assert candidate_of(spec, labelled(tier="other")) is None


def test_G4_the_group_of_what_it_belongs_to() -> None:
    gang = groups(
        specific_group=[member("worker", '.metadata.labels.version == "v2"')],
        fallback_group=[member("pytorch-job")],
    )
    spec = spec_of(part("pytorch-job"), WORKER, gang=gang)
    found = candidate_of(spec, labelled(component="worker", version="v1"))
    assert shown(found) == ("pytorch-job", "fallback-group")


def test_G5_no_gang_section() -> None:
    assert candidate_of(spec_of(part("job", form=TEMPLATE)), labelled()) is None


def replicas(at: str, **bounds: str) -> dict[str, Any]:
    return {"scaleDefinition": {"replicasPath": at, **bounds}}


SCALE = {"replicasPath": ".spec.replicas", "minReplicasPath": ".spec.min"}
LEAF = spec_of(part("leaf", form=TEMPLATE, scaleDefinition=SCALE))


def of_spec(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x"}, "spec": spec}


def total(spec: InterfaceSpec, document: Any, name: str, instance: str | None = None) -> int:
    """The scale of a subtree, the same in both modes."""
    found = subtree_scale(bound(spec, document), name, instance)
    assert subtree_scale(bound(spec, document, "admission"), name, instance) == found
    return found


@pytest.mark.parametrize(
    "numbers, expected",
    [
        pytest.param({"replicas": 5, "min": 3}, 3, id="G6"),
        pytest.param({"replicas": 10, "min": 2}, 2, id="G12"),
        pytest.param({"replicas": 5, "min": 0}, 5, id="G13"),
        pytest.param({"replicas": None, "min": None}, 0, id="G14"),
    ],
)
def test_the_scale_of_a_leaf(numbers: Any, expected: int) -> None:
    assert total(LEAF, of_spec(**numbers), "leaf") == expected


def tree(*, root: bool = True, worker: bool = True, master: bool = True) -> InterfaceSpec:
    """Root, worker and master, with a scale where asked for."""
    return spec_of(
        part("root", **(replicas(".spec.replicas") if root else {})),
        part("worker", "root", PODS, **(replicas(".spec.worker") if worker else {})),
        part("master", "root", PODS, **(replicas(".spec.master") if master else {})),
    )


NUMBERS = of_spec(replicas=2, worker=4, master=1)


@pytest.mark.parametrize(
    "spec, expected",
    [
        pytest.param(tree(), {"root": 10, "worker": 4, "master": 1}, id="G7"),
        pytest.param(tree(root=False), {"root": 5, "worker": 4, "master": 1}, id="G8"),
        pytest.param(
            tree(root=False, worker=False, master=False),
            {"root": 2, "worker": 1, "master": 1},
            id="G15",
        ),
    ],
)
def test_the_scale_of_a_tree(spec: InterfaceSpec, expected: dict[str, int]) -> None:
    assert {name: total(spec, NUMBERS, name) for name in expected} == expected


def test_G9_instances_are_summed() -> None:
    array = part(
        "worker-array",
        "root",
        {"podSpecPath": ".spec.workers[].pods"},
        instanceIdPath=".spec.workers[].name",
        **replicas(".spec.workers[].replicas"),
    )
    spec = spec_of(part("root", **replicas(".spec.replicas")), array)
    workers = [{"name": "a", "replicas": 3}, {"name": "b", "replicas": 2}]
    document = of_spec(replicas=2, workers=workers)
    assert total(spec, document, "worker-array") == 5
    assert total(spec, document, "root") == 10


def test_G10_a_root_without_a_scale() -> None:
    spec = spec_of(part("root"), part("worker", "root", PODS, **replicas(".spec.worker")))
    assert total(spec, NUMBERS, "root") == 4


def test_G11_a_leaf_without_a_scale() -> None:
    spec = spec_of(part("root", **replicas(".spec.size")), part("worker", "root", PODS))
    assert total(spec, of_spec(size=3), "root") == 3


def test_G16_leaves_are_counted_without_any_scale() -> None:
    spec = spec_of(
        part("cluster"),
        part("job-group", "cluster"),
        part("worker", "job-group", PODS),
        part("master", "job-group", PODS),
        part("storage", "cluster", PODS),
    )
    expected = {"cluster": 3, "job-group": 2, "worker": 1, "storage": 1}
    assert {name: total(spec, of_spec(), name) for name in expected} == expected


def jobs(way: str, *, scaled: bool = True) -> InterfaceSpec:
    """A component over a list or a map."""
    ids = f"{way}.name" if way.endswith("[]") else ".spec.replicatedJobs | to_entries[] | .key"
    scale = {"replicasPath": f"{way}.replicas", "minReplicasPath": f"{way}.min"}
    keys: dict[str, Any] = {"instanceIdPath": ids}
    if scaled:
        keys["scaleDefinition"] = scale
    return spec_of(part("job", form={"podSpecPath": f"{way}.spec"}, **keys))


def listed() -> dict[str, Any]:
    document = jobgroup()
    indexer, processor = document["spec"]["replicatedJobs"]
    indexer["replicas"], processor["min"] = 3, 2
    return document


def mapped() -> dict[str, Any]:
    document = listed()
    document["spec"]["replicatedJobs"] = {
        each["name"]: each for each in document["spec"]["replicatedJobs"]
    }
    return document


LIST, MAP = ".spec.replicatedJobs[]", ".spec.replicatedJobs | .[] | "


@pytest.mark.parametrize(
    "spec, document, expected",
    [
        pytest.param(jobs(LIST), listed(), {None: 5, "indexer": 3, "processor": 2}, id="G17"),
        pytest.param(jobs(MAP), mapped(), {None: 5, "indexer": 3, "processor": 2}, id="G18"),
        pytest.param(
            jobs(LIST, scaled=False),
            listed(),
            {None: 2, "indexer": 1, "processor": 1},
            id="G19",
        ),
    ],
)
def test_the_scale_of_instances(
    spec: InterfaceSpec, document: Any, expected: dict[str | None, int]
) -> None:
    assert {each: total(spec, document, "job", each) for each in expected} == expected


@pytest.mark.parametrize("scaled", [True, False])
def test_G20_an_instance_that_does_not_exist(scaled: bool) -> None:
    with pytest.raises(AccessError, match="non-existent") as error:
        total(jobs(LIST, scaled=scaled), listed(), "job", "non-existent")
    assert error.value.reason == "instance-unknown"


def test_G21_an_instance_without_a_name() -> None:
    with pytest.raises(AccessError) as error:
        total(jobs(LIST), listed(), "no-such-component", "")
    assert error.value.reason == "instance-empty"


ONE = spec_of(part("only", form=TEMPLATE, podSelector=by_component("other")))
TWO = spec_of(part("pytorch-job"), WORKER, MASTER)


@pytest.mark.parametrize(
    "spec, document, expected",
    [
        pytest.param(spec_of(part("only", form=TEMPLATE)), labelled(), "only", id="I1"),
        pytest.param(ONE, labelled(component="x"), "only", id="I2"),
        pytest.param(TWO, labelled(component="worker"), "worker", id="I3"),
        pytest.param(TWO, labelled(component="master"), "master", id="I4"),
    ],
)
def test_the_component_of_a_pod(spec: InterfaceSpec, document: Any, expected: str) -> None:
    assert component_of(summarize(spec), pod(document)) == expected


def test_I5_no_component_of_a_pod() -> None:
    with pytest.raises(AccessError) as error:
        component_of(summarize(TWO), pod(labelled()))
    assert error.value.reason == "pod-unmatched"
    assert error.value.facts == {"pod": "test-pod"}


GROUPS = {"groups": [{"name": "gpu-workers"}, {"name": "cpu-workers"}]}
GROUP = {"componentInstanceSelector": {"idPath": ".metadata.labels.group"}}
NAMES = ".spec.groups[].name"


def instance_in(document: Any, group: str | None = None, **keys: Any) -> str | None:
    spec = spec_of(part("job", form=PODS, **keys))
    labels = {"group": group} if group else {}
    return instance_of(bound(spec, document), pod(labelled(**labels)), "job")


def test_I6_an_instance_of_an_unknown_component() -> None:
    with pytest.raises(AccessError) as error:
        instance_of(bound(TWO, of_spec()), pod(labelled()), "non-existent")
    assert error.value.reason == "component-unknown"


def test_I7_no_instances() -> None:
    assert instance_in(of_spec(**GROUPS), podSelector=by_component("x")) is None


def test_I8_the_instance_of_a_pod() -> None:
    found = instance_in(of_spec(**GROUPS), "gpu-workers", instanceIdPath=NAMES, podSelector=GROUP)
    assert found == "gpu-workers"


def test_I9_one_instance_without_a_name() -> None:
    assert instance_in(of_spec(**GROUPS), instanceIdPath="", podSelector={}) is None


def test_I10_an_instance_that_the_object_has_not() -> None:
    with pytest.raises(AccessError) as error:
        instance_in(of_spec(**GROUPS), "invalid-group", instanceIdPath=NAMES, podSelector=GROUP)
    assert error.value.reason == "instance-unmatched"
    assert error.value.facts["id"] == "invalid-group"


def test_I11_ids_that_cannot_be_read() -> None:
    with pytest.raises(AccessError) as error:
        instance_in(of_spec(groups=7), "x", instanceIdPath=NAMES, podSelector=GROUP)
    assert error.value.reasons == ("ids-failed", "path-failed")


def test_I12_instances_without_their_selector() -> None:
    with pytest.raises(AccessError) as error:
        instance_in(of_spec(**GROUPS), instanceIdPath=NAMES, podSelector=by_component("x"))
    assert error.value.reason == "instance-selector-missing"


def test_I13_no_selector_at_all() -> None:
    assert instance_in(of_spec(**GROUPS), instanceIdPath=NAMES) is None


def test_S1_no_definition() -> None:
    with pytest.raises(AccessError) as error:
        summarize(None)
    assert error.value.reason == "no-definition"


def test_S2_a_root_alone() -> None:
    spec = spec_of(part("root", form=TEMPLATE))
    assert summarize(spec, "parity") == Summary(
        spec, {"root": spec.structure_definition.root_component}, ("root",), {}, {}, False
    )


def test_S3_two_children() -> None:
    spec = spec_of(part("root"), part("worker", "root", TEMPLATE), part("master", "root", PODS))
    found = summarize(spec)
    assert found.parents == {"worker": "root", "master": "root"}
    assert found.leaves == ("worker", "master")
    assert list(found.components) == ["root", "worker", "master"]


def test_S4_a_deeper_tree() -> None:
    spec = spec_of(
        part("cluster"),
        part("job-group", "cluster"),
        part("worker", "job-group", PIECES),
        part("coordinator", "cluster", TEMPLATE),
    )
    found = summarize(spec)
    assert found.leaves == ("worker", "coordinator")
    assert found.children == {
        "cluster": ("job-group", "coordinator"),
        "job-group": ("worker",),
    }


def names(found: Summary, leaf: str) -> list[tuple[str, str]]:
    return [(each.group, each.component) for each in (found.candidates or {}).get(leaf, ())]


def pair(first: str, second: str, gang: Any) -> Summary:
    spec = spec_of(
        part("root"), part(first, "root", TEMPLATE), part(second, "root", TEMPLATE), gang=gang
    )
    return summarize(spec, "parity")


def test_S5_one_group_of_two() -> None:
    found = pair("worker", "master", groups(all=[member("worker"), member("master")]))
    assert found.groups == ("all",)
    assert names(found, "worker") == [("all", "worker")]
    assert names(found, "master") == [("all", "master")]
    assert names(found, "root") == []


def test_S6_two_groups() -> None:
    gang = groups(group_pre=[member("pre-fill")], group_decode=[member("decode")])
    found = pair("pre-fill", "decode", gang)
    assert found.groups == ("group-pre", "group-decode")
    assert names(found, "pre-fill") == [("group-pre", "pre-fill")]
    assert names(found, "decode") == [("group-decode", "decode")]


def test_S7_direct_mentions_come_first() -> None:
    version = '.metadata.labels.version == "{}"'.format
    gang = groups(
        worker_group_v1=[member("worker", version("v1"))],
        parent_group=[member("root")],
        worker_group_v2=[member("worker", version("v2"))],
    )
    found = pair("worker", "other", gang)
    assert [group for group, _ in names(found, "worker")] == [
        "worker-group-v1",
        "worker-group-v2",
        "parent-group",
    ]


def test_S8_no_gang_section() -> None:
    found = summarize(spec_of(part("root", form=TEMPLATE)))
    assert (found.groups, found.candidates) == ((), None)


def candidates(*names: str) -> list[Candidate]:
    made = Member.model_validate({"componentName": "x"})
    return [Candidate(name, f"group-{at}", made) for at, name in enumerate(names)]


@pytest.mark.parametrize(
    "given, expected",
    [
        pytest.param(["parent", "worker", "grandparent", "worker"], [1, 3, 0, 2], id="S9"),
        pytest.param(["parent", "grandparent", "root"], [0, 1, 2], id="S10"),
        pytest.param([], [], id="S11"),
    ],
)
def test_the_order_of_candidates(given: list[str], expected: list[int]) -> None:
    found = candidates(*given)
    assert direct_first(found, "worker") == tuple(found[at] for at in expected)


def test_S12_S13_whether_anything_scales() -> None:
    assert summarize(tree(root=False, master=False)).scales
    assert not summarize(tree(root=False, worker=False, master=False)).scales


def test_S14_the_definition_is_kept() -> None:
    assert summarize(TWO).definition is TWO


def test_a_circle_of_owners_is_refused() -> None:
    spec = spec_of(part("root"), part("a", "b", PODS), part("b", "a", PODS))
    for name in ("root", "a"):
        with pytest.raises(AccessError) as error:
            total(spec, of_spec(), name)
        assert error.value.reason == "owner-cycle"


def test_W22_the_newer_group_counts_in_admission_only() -> None:
    near = {
        "topologyName": "t",
        "requiredTopologyLevel": "rack",
        "preferredTopologyLevel": "host",
    }
    gang = {
        "podGroup": {
            "name": "all",
            "topology": near,
            "subGroups": [{"componentName": "worker"}],
        }
    }
    spec = spec_of(part("root"), part("worker", "root", TEMPLATE), gang=gang)
    (found,) = (summarize(spec).candidates or {})["worker"]
    assert (found.group, found.component) == ("all", "worker")
    assert found.topology is not None
    assert found.topology.required_topology_level == "rack"
    assert summarize(spec, "parity").candidates == {"worker": ()}
