"""Pod locations and scales: where they are, and what makes an object unreadable."""
# ruff: noqa: N802 - tests bear the ids of the conformance list

from __future__ import annotations

import dataclasses
import pickle
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.definitions import base, children, document, grouped, root, shipped
from webhook.access.object import bind
from webhook.interface.interface import parse_interface
from webhook.interface.profile import ScaleOf
from webhook.pods.coverage import find_uncovered
from webhook.pods.definition import Definition, union
from webhook.pods.fragment_locations import TakenPaths
from webhook.pods.locate import locate
from webhook.pods.location import MAX_LOCATIONS, LocationError, PodLocation
from webhook.pods.replicas import UNLIMITED, Scale, read_scales, total

SPEC = {"containers": [{"name": "main", "image": "a"}]}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": SPEC}
MAP = {
    "specDefinition": {"podTemplateSpecPath": ".spec.groups | .[] | .template"},
    "instanceIdPath": ".spec.groups | to_entries[] | .key",
}
LIST = {
    "specDefinition": {"podTemplateSpecPath": ".spec.jobs[].template"},
    "instanceIdPath": ".spec.jobs[].name",
    "scaleDefinition": {"replicasPath": ".spec.jobs[].replicas"},
}


def refused(definition: Definition, data: Any) -> LocationError:
    with pytest.raises(LocationError) as caught:
        locate(definition, data)
    return caught.value


def ray(**spec: Any) -> dict[str, Any]:
    groups = [{"groupName": name, "template": TEMPLATE} for name in ("a", "b")]
    return {"spec": {"headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": groups, **spec}}


def test_a_template_is_located_with_its_own_maps() -> None:
    data = {"spec": {"template": TEMPLATE}}
    (found,) = locate(shipped("job.batch"), data)
    assert found.place == ("spec", "template")
    assert found.spec_path == ("spec", "template", "spec")
    assert found.metadata_path == ("spec", "template", "metadata")
    assert found.spec is SPEC
    assert found.metadata is TEMPLATE["metadata"]
    assert (found.component, found.instance, found.roles) == ("job", "", ("worker",))
    assert (found.extra, found.children) == ((), "derived")


def test_a_location_is_frozen_comparable_and_can_be_replaced() -> None:
    data = {"spec": {"template": TEMPLATE}}
    (found,) = locate(shipped("job.batch"), data)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.instance = "x"  # type: ignore[misc]
    assert type(found) is PodLocation
    assert dataclasses.replace(found, instance="x").instance == "x"
    assert locate(shipped("job.batch"), data) == [found]


def test_a_pod_is_its_own_template() -> None:
    (found,) = locate(shipped("pod"), {"metadata": {}, "spec": SPEC})
    assert (found.place, found.spec_path, found.metadata_path) == ((), ("spec",), ("metadata",))


def test_absent_metadata_and_spec_are_empty_maps_with_a_place() -> None:
    (found,) = locate(shipped("job.batch"), {"spec": {"template": {}}})
    assert (found.spec, found.metadata) == ({}, {})
    assert found.metadata_path == ("spec", "template", "metadata")


def test_keys_of_a_map_are_instances_in_sorted_order_with_roles_in_any_case() -> None:
    specs = {key: {"template": TEMPLATE} for key in ("worker", "MASTER", "odd")}
    found = locate(shipped("pytorchjob.kubeflow.org"), {"spec": {"pytorchReplicaSpecs": specs}})
    assert [(each.instance, *each.roles) for each in found] == [
        ("MASTER", "master"),
        ("odd", "worker"),
        ("worker", "worker"),
    ]
    assert {each.main.name for each in found} == {"pytorch"}
    assert found[0].place == ("spec", "pytorchReplicaSpecs", "MASTER", "template")


def test_containers_outside_the_templates_belong_to_the_first_pod() -> None:
    collector = {"image": "c"}
    data = ray(
        autoscalerOptions={"image": "x"}, historyServerOptions={"collectorOptions": collector}
    )
    head, *workers = locate(shipped("raycluster.ray.io"), data)
    assert head.extra == (
        (("spec", "autoscalerOptions"), {"image": "x"}),
        (("spec", "historyServerOptions", "collectorOptions"), collector),
    )
    assert head.roles == ("master",)
    assert head.main.index == 0
    assert [(each.instance, each.extra) for each in workers] == [("a", ()), ("b", ())]


def test_a_container_outside_without_its_pod_is_refused() -> None:
    data = ray(autoscalerOptions={"image": "x"}, headGroupSpec={})
    error = refused(shipped("raycluster.ray.io"), data)
    assert (error.reason, error.path) == ("container-without-pod", ("spec", "autoscalerOptions"))


@pytest.mark.parametrize("data", [{}, {"spec": None}, {"spec": {}}, {"spec": {"jobs": None}}])
def test_N23_N24_W5_what_is_absent_gives_no_location(data: Any) -> None:
    assert locate(grouped(**LIST), data) == []
    assert locate(grouped(**MAP), data) == []


def test_W5_a_null_template_gives_no_location_and_shifts_nobody() -> None:
    jobs = [{"name": "a", "template": None}, {"name": "b", "template": TEMPLATE}, {"name": "c"}]
    (found,) = locate(grouped(**LIST), {"spec": {"jobs": jobs}})
    assert (found.instance, found.place) == ("b", ("spec", "jobs", 1, "template"))


@pytest.mark.parametrize("names", [("a", "a"), ("a", ""), ("a", None), ("a", []), ("a", True)])
def test_N25_ids_that_are_empty_or_given_twice_are_refused(names: tuple[Any, Any]) -> None:
    jobs = [{"name": name, "template": TEMPLATE} for name in names]
    error = refused(grouped(**LIST), {"spec": {"jobs": jobs}})
    assert error.reason == "instance-ids"
    assert ".spec.jobs[1]" in error.text


@pytest.mark.parametrize("wrong", [[], 5, "text", True, [TEMPLATE]])
def test_a_template_that_is_no_map_is_refused_with_its_place(wrong: Any) -> None:
    definition = grouped(**LIST)
    for template, place in (
        (wrong, ("spec", "jobs", 0, "template")),
        ({"spec": wrong}, ("spec", "jobs", 0, "template", "spec")),
        ({"spec": SPEC, "metadata": wrong}, ("spec", "jobs", 0, "template", "metadata")),
    ):
        error = refused(definition, {"spec": {"jobs": [{"name": "a", "template": template}]}})
        assert (error.reason, error.path) == ("wrong-type", place)
        assert "spec.jobs[0].template" in error.text


def test_a_container_outside_that_is_no_map_is_refused() -> None:
    error = refused(shipped("raycluster.ray.io"), ray(autoscalerOptions=[{"image": "x"}]))
    assert (error.reason, error.path) == ("wrong-type", ("spec", "autoscalerOptions"))


def test_a_place_that_cannot_be_read_is_refused() -> None:
    error = refused(shipped("raycluster.ray.io"), ray(historyServerOptions=5))
    assert error.reason == "path-failed"
    assert "historyServerOptions" in error.text


@pytest.mark.parametrize("data", [[], 5, "x", True, {"spec": 5}, {"spec": {"jobs": "x"}}])
def test_objects_of_another_shape_are_refused(data: Any) -> None:
    assert refused(grouped(**LIST), data).reason == "path-failed"


def test_unnamed_pods_are_numbered_when_there_are_several() -> None:
    definition = grouped(specDefinition={"podSpecPath": ".spec.pods[]"})
    (single,) = locate(definition, {"spec": {"pods": [SPEC]}})
    assert single.instance == ""
    found = locate(definition, {"spec": {"pods": [SPEC, SPEC]}})
    assert [each.instance for each in found] == ["0", "1"]


def test_pod_specs_have_the_metadata_of_the_same_element() -> None:
    definition = grouped(
        specDefinition={"podSpecPath": ".spec.jobs[].spec", "metadataPath": ".spec.jobs[].meta"},
        instanceIdPath=".spec.jobs[].name",
    )
    jobs = [
        {"name": "a", "meta": {"labels": {}}},
        {"name": "b", "spec": SPEC, "meta": {"labels": {"b": "b"}}},
        {"name": "c", "spec": SPEC},
    ]
    second, third = locate(definition, {"spec": {"jobs": jobs}})
    assert second.metadata == {"labels": {"b": "b"}}
    assert (second.place, second.spec_path) == (("spec", "jobs", 1, "spec"),) * 2
    assert third.metadata == {}
    assert third.metadata_path == ("spec", "jobs", 2, "meta")


def test_without_a_metadata_path_there_is_no_place_for_metadata() -> None:
    (found,) = locate(grouped(specDefinition={"podSpecPath": ".spec.pod"}), {"spec": {"pod": SPEC}})
    assert (found.metadata_path, found.metadata) == (None, {})


def test_fragments_are_one_pod() -> None:
    paths = {"containersPath": ".spec.main", "labelsPath": ".spec.tags", "imagePath": ".spec.img"}
    definition = grouped(specDefinition={"fragmentedPodSpecDefinition": paths})
    assert locate(definition, {"spec": {}}) == []
    (found,) = locate(definition, {"spec": {"main": [{"name": "a"}], "tags": {"b": "c"}}})
    assert found.spec["containers"] == [{"name": "a"}]
    assert found.metadata == {"labels": {"b": "c"}}
    place = (*found.spec_path, "containers", 0, "name")
    assert found.at(place).report == ("spec", "main", 0, "name")


def test_an_object_has_a_bounded_number_of_locations() -> None:
    jobs = [{"name": str(each), "template": TEMPLATE} for each in range(MAX_LOCATIONS + 1)]
    definition = grouped(**LIST)
    assert refused(definition, {"spec": {"jobs": jobs}}).reason == "too-many-locations"
    assert len(locate(definition, {"spec": {"jobs": jobs[1:]}})) == MAX_LOCATIONS
    data = ray(workerGroupSpecs=[{"groupName": each["name"], **each} for each in jobs[1:]])
    assert refused(shipped("raycluster.ray.io"), data).reason == "too-many-locations"


@pytest.mark.parametrize("key", ["k" * 513, "/" * 10**6, "\u00e9" * 600])
def test_a_key_on_the_way_to_a_pod_is_short_enough_to_be_repeated(key: str) -> None:
    job = shipped("pytorchjob.kubeflow.org")

    def specs(*keys: str) -> dict[str, Any]:
        return {"spec": {"pytorchReplicaSpecs": {each: {"template": TEMPLATE} for each in keys}}}

    found = refused(job, specs("Worker", key))
    assert (found.reason, found.path) == ("too-long-key", ("spec", "pytorchReplicaSpecs"))
    assert len(found.text) < 200
    assert len(locate(job, specs("Worker", key[:512]))) == 2


def test_several_definitions_give_each_place_once() -> None:
    first = grouped(specDefinition={"podTemplateSpecPath": ".spec.a"})
    same = grouped(specDefinition={"podSpecPath": ".spec.a.spec"})
    more = grouped(specDefinition={"podTemplateSpecPath": ".spec.b"})
    both = union([first, same, more])
    found = locate(both, {"spec": {"a": TEMPLATE, "b": TEMPLATE}})
    assert [each.spec_path for each in found] == [("spec", "a", "spec"), ("spec", "b", "spec")]
    assert found[0].place == ("spec", "a")
    assert both.interface is first.interface
    assert not both.profiled
    assert list(both.everyone) == [both, same, more]
    assert union([first]).others == ()


def test_a_definition_survives_being_published() -> None:
    definition = pickle.loads(pickle.dumps(shipped("raycluster.ray.io")))
    assert len(locate(definition, ray())) == 3
    assert definition.versions == ("v1", "v1alpha1")
    assert "RayCluster" in repr(definition)


def test_deep_objects_are_located_or_refused_and_nothing_else() -> None:
    deep: Any = {}
    for _ in range(10_000):
        deep = {"template": deep}
    for name in ("job.batch", "pod", "raycluster.ray.io", "jobset.jobset.x-k8s.io"):
        definition = shipped(name)
        for data in (
            deep,
            {"spec": deep},
            {"spec": {"template": deep}},
            ray(autoscalerOptions=deep),
        ):
            with suppress(LocationError):
                locate(definition, data)
                read_scales(definition, data)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["template", "spec", "metadata", "groupName", "name", "replicas", "Worker"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
NAMES = ("pytorchjob.kubeflow.org", "raycluster.ray.io", "jobset.jobset.x-k8s.io", "cronjob.batch")
SHIPPED = {name: shipped(name) for name in NAMES}


@given(
    st.sampled_from(NAMES),
    st.sampled_from(
        [
            "pytorchReplicaSpecs",
            "workerGroupSpecs",
            "headGroupSpec",
            "replicatedJobs",
            "jobTemplate",
        ]
    ),
    VALUES,
)
def test_hostile_objects_raise_location_errors_only(name: str, key: str, value: Any) -> None:
    data = {"spec": {key: value}}
    with suppress(LocationError):
        locations = locate(SHIPPED[name], data)
        read_scales(SHIPPED[name], data)
        find_uncovered(data, locations, SHIPPED[name])


def test_replicas_of_one_template_with_the_profile_default() -> None:
    job = shipped("job.batch")
    place = ("spec", "parallelism")
    assert read_scales(job, {"spec": {}}) == [Scale("job", "", 1, place, None, None)]
    assert read_scales(job, {"spec": {"parallelism": 0}})[0].replicas == 0
    assert read_scales(shipped("pod"), {}) == [Scale("pod", "", 1, None, None, None)]


def test_kubeflow_workers_are_counted_in_any_case_and_bounded_by_elasticity() -> None:
    job = shipped("pytorchjob.kubeflow.org")
    specs = {"Master": {}, "Worker": {"replicas": 3}, "worker": {"template": TEMPLATE}}
    data: dict[str, Any] = {"spec": {"pytorchReplicaSpecs": specs}}
    scales = read_scales(job, data)
    assert [(each.instance, each.replicas, each.maximum) for each in scales] == [
        ("Master", 1, None),
        ("Worker", 3, None),
        ("worker", 1, None),
    ]
    assert scales[2].path == ("spec", "pytorchReplicaSpecs", "worker", "replicas")
    of = ScaleOf("replica", "Worker")
    assert total(scales, of) == 4
    data["spec"]["elasticPolicy"] = {"minReplicas": 2, "maxReplicas": 9}
    master, worker, _ = read_scales(job, data)
    assert (master.minimum, master.maximum) == (None, None)
    assert (worker.minimum, worker.maximum) == (2, 9)
    assert total(read_scales(job, {"spec": {"pytorchReplicaSpecs": {"Master": {}}}}), of) == 0


def test_ray_groups_count_hosts_and_have_a_maximum_only_while_scaled() -> None:
    cluster = shipped("raycluster.ray.io")
    groups = [
        {"groupName": "a", "replicas": 2, "numOfHosts": 4, "minReplicas": 1, "maxReplicas": 5},
        {"groupName": "b"},
    ]
    head, first, second = read_scales(cluster, ray(workerGroupSpecs=groups))
    assert head == Scale("head", "", 1, None, None, None)
    assert first == Scale("workers", "a", 8, None, 4, None)
    assert (second.replicas, second.minimum, second.maximum) == (0, 0, None)
    scaled = ray(workerGroupSpecs=groups, enableInTreeAutoscaling=True)
    assert [each.maximum for each in read_scales(cluster, scaled)] == [None, 20, 2147483647]
    assert [each.component for each in read_scales(cluster, {"spec": {}})] == ["head"]


def test_groups_multiply_what_they_list_and_no_number_of_them_is_too_many() -> None:
    cliques = [{"name": name, "spec": {"replicas": 2}} for name in ("a", "b", "c")]
    cliques[1]["spec"]["autoScalingConfig"] = {"maxReplicas": 5}
    groups = [{"cliqueNames": ["a", "b"], "replicas": 3}, {"cliqueNames": ["b"]}]
    template = {"cliques": cliques, "podCliqueScalingGroups": groups}
    cliqueset = shipped("podcliqueset.grove.io")
    first, second, third = read_scales(cliqueset, {"spec": {"replicas": 2, "template": template}})
    assert (first.replicas, first.most, first.path) == (12, 12, None)
    assert (second.replicas, second.most) == (12, 30)
    assert (third.replicas, third.most) == (4, 4)
    groups += [{"cliqueNames": ["a"] * 3, "replicas": 9}] * 2_000
    first, second, _ = read_scales(cliqueset, {"spec": {"replicas": 2, "template": template}})
    assert (first.most, second.most) == (UNLIMITED, 30)


def test_jobset_multiplies_per_element_without_dropping_any() -> None:
    jobs = [
        {"name": "a", "replicas": 2, "template": {"spec": {"parallelism": 3}}},
        {"name": "b", "template": {}},
        {"name": "c", "replicas": 0},
    ]
    scales = read_scales(shipped("jobset.jobset.x-k8s.io"), {"spec": {"replicatedJobs": jobs}})
    assert [(each.instance, each.replicas) for each in scales] == [("a", 6), ("b", 1), ("c", 0)]
    assert total(scales, ScaleOf("replicatedjob")) == 7


@pytest.mark.parametrize("wrong", ["", "x", "3 ", "1.0", "1e1", "2147483648", 1.5, True, [], {}])
def test_a_number_of_replicas_is_whole(wrong: Any) -> None:
    with pytest.raises(LocationError) as caught:
        read_scales(shipped("job.batch"), {"spec": {"parallelism": wrong}})
    assert caught.value.reason == "not-a-number"
    assert "spec.parallelism" in caught.value.text


@pytest.mark.parametrize("written", [3, 3.0, "3", "+3", "003"])
def test_a_number_of_replicas_may_be_text(written: Any) -> None:
    """Scale paths often lead to annotations, whose values are text; upstream reads them too."""
    (scale,) = read_scales(shipped("job.batch"), {"spec": {"parallelism": written}})
    assert scale.replicas == 3
    definition = shipped("job.batch")
    body = {"spec": {"parallelism": written}}
    for mode in ("admission", "parity"):
        found = bind(definition, body, mode=mode).root.scales()
        assert found is not None
        assert found[""].replicas == 3


def test_N21_W4_defaults_of_a_whole_path_work_per_element() -> None:
    scale = {"replicasPath": ".spec.jobs[].replicas // 1"}
    definition = grouped(**{**LIST, "scaleDefinition": scale})
    data = {"spec": {"jobs": [{"name": "x"}, {"name": "y", "replicas": 2}]}}
    assert [(each.instance, each.replicas) for each in read_scales(definition, data)] == [
        ("x", 1),
        ("y", 2),
    ]
    data["spec"]["jobs"][0]["replicas"] = {}  # type: ignore[index]
    with pytest.raises(LocationError):
        read_scales(definition, data)


def test_ids_of_scales_are_checked_as_those_of_pods() -> None:
    data = {"spec": {"jobs": [{"name": "a"}, {"name": "a"}]}}
    for definition in (
        grouped(**LIST),
        grouped(**{**LIST, "scaleDefinition": {"replicasPath": ".spec.jobs[].replicas // 1"}}),
    ):
        with pytest.raises(LocationError):
            read_scales(definition, data)


def test_scales_without_ids_are_numbered_and_an_unknown_one_leaves_the_sum_unknown() -> None:
    definition = grouped(
        specDefinition={"podSpecPath": ".spec.pods[].spec"},
        scaleDefinition={"replicasPath": ".spec.pods[].n", "minReplicasPath": ".spec.pods[].low"},
    )
    scales = read_scales(definition, {"spec": {"pods": [{"n": 2, "low": 1}, {}]}})
    assert [(each.instance, each.replicas, each.minimum) for each in scales] == [
        ("0", 2, 1),
        ("1", None, None),
    ]
    assert total(scales, ScaleOf("group")) is None
    assert total(scales, ScaleOf("other")) == 0


def test_components_without_a_scale_have_none() -> None:
    assert read_scales(grouped(**MAP), {}) == []


def test_a_child_without_pods_is_no_location() -> None:
    data = base()
    del children(data)[0]["specDefinition"]
    del root(data)["podSelector"]
    interface, _ = parse_interface(document(data))
    assert interface is not None
    assert len(Definition(interface).plans) == 1


def test_a_pod_is_taken_where_it_is_and_in_all_that_it_holds() -> None:
    found = TakenPaths(locate(shipped("job.batch"), {"spec": {"template": {"spec": {}}}}))
    spec = ("spec", "template", "spec")
    assert [found.is_taken(each) for each in (spec, (*spec, "containers", 0))] == [True, True]
    assert [found.is_taken(each) for each in (spec[:1], ("spec", "other"))] == [False, False]
