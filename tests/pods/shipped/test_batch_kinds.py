"""What is particular to single batch and distributed kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.pods.shipped import batch
from tests.pods.shipped.batch import DISAGGREGATED, MINICLUSTER, TEMPLATE
from tests.pods.test_shipped_workloads import (
    at,
    crd,
    crd_of,
    definition,
    placed,
    simple_paths,
    texts,
)
from webhook.pods.assemblers.flux_operator import REQUIRED
from webhook.pods.coverage import find_uncovered
from webhook.pods.locate import locate
from webhook.pods.location import LocationError
from webhook.pods.replicas import UNLIMITED, Scale, read_scales

JOBFLOW = "jobflow.flow.volcano.sh"
SPARK_CONNECT = "sparkconnect.sparkoperator.k8s.io"


def scales(name: str, spec: dict[str, Any]) -> dict[tuple[str, str], Scale]:
    return {
        (each.component, each.instance): each
        for each in read_scales(definition(name), {"spec": spec})
    }


def role(name: str, replicas: int | None, size: int | None, **more: Any) -> dict[str, Any]:
    template = {"size": size, "workerTemplate": TEMPLATE}
    return {"name": name, "spec": {"replicas": replicas, "leaderWorkerTemplate": template}, **more}


@pytest.mark.parametrize("slices", [None, 3])
def test_every_slice_has_the_groups_of_every_role(slices: int | None) -> None:
    roles = [role("prefill", 2, 4), role("decode", None, None)]
    found = scales(DISAGGREGATED, {"slices": slices, "roles": roles})
    times = slices or 1
    assert {key: each.replicas for key, each in found.items()} == {
        ("leader", "prefill"): 2 * times,
        ("leader", "decode"): times,
        ("worker", "prefill"): 6 * times,
        ("worker", "decode"): 0,
    }
    assert {each.maximum for each in found.values()} == {None}


def test_a_role_that_others_scale_has_no_bound() -> None:
    roles = [role("a", 1, 2, scaling={"mode": "External"}), role("b", 1, 2)]
    found = scales(DISAGGREGATED, {"roles": roles})
    assert {key: each.maximum for key, each in found.items()} == {
        ("leader", "a"): UNLIMITED,
        ("worker", "a"): UNLIMITED,
        ("leader", "b"): None,
        ("worker", "b"): None,
    }


def test_leaders_are_made_of_the_workers_template_role_by_role() -> None:
    first, second = role("a", 1, 2), role("b", 1, 2)
    first["spec"]["leaderWorkerTemplate"]["leaderTemplate"] = TEMPLATE
    data = {"spec": {"roles": [first, second]}}
    roles = {
        (each.component, each.instance): each.roles
        for each in locate(definition(DISAGGREGATED), data)
    }
    assert roles == {
        ("leader", "a"): ("leader",),
        ("worker", "a"): ("worker",),
        ("worker", "b"): ("leader", "worker"),
    }


def test_what_a_flow_changes_of_a_job_is_read_and_never_written() -> None:
    (first, second) = locate(definition(JOBFLOW), {"spec": batch.FULL_OBJECTS[JOBFLOW]})
    assert (first.instance, second.instance) == ("b/0", "b/1")
    assert {first.children, second.children} == {"merged"}
    assert first.fragments is not None
    assert first.fragments.report(("spec", "containers", 0, "image")) == (
        *("spec", "flows", 1, "patch", "jobSpec", "tasks", 0, "template", "spec"),
        *("containers", 0, "image"),
    )
    assert first.fragments.writable(("spec", "containers", 0, "image")) is None
    assert first.fragments.writes(("spec", "hostNetwork"), True) == []


def test_a_change_without_containers_has_none_and_one_that_is_no_pod_is_refused() -> None:
    def flow(template: Any) -> dict[str, Any]:
        task = {"name": "a", "template": template}
        return {"spec": {"flows": [{"name": "a", "patch": {"jobSpec": {"tasks": [task]}}}]}}

    (found,) = locate(definition(JOBFLOW), flow({"spec": {"hostNetwork": True}}))
    assert found.spec == {"hostNetwork": True, "containers": []}
    with pytest.raises(LocationError, match="metadata must be a map"):
        locate(definition(JOBFLOW), flow({"metadata": "x", "spec": {}}))


def test_containers_of_flux_are_read_at_their_own_places() -> None:
    found = placed(MINICLUSTER, batch.FULL_OBJECTS[MINICLUSTER])
    cluster, services = found["cluster"], found["services"]
    first, second = cluster.spec["containers"]
    assert second == {"name": "b", "image": "b"}
    assert first == {
        "name": "a",
        "image": "a",
        "env": [
            {"name": "A", "value": "b"},
            {"name": "C", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ],
        "securityContext": {
            "privileged": True,
            "addCapabilities": ["SYS_PTRACE"],
            "capabilities": {"add": ["SYS_PTRACE"]},
        },
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    assert services.spec["containers"] == [first]
    assert cluster.spec["initContainers"] == [{"image": "view", "securityContext": {}}]
    for each in (cluster, services):
        assert each.spec["volumes"] == [{"name": "data", "hostPath": {"path": "/srv"}}]
        assert each.spec["imagePullSecrets"] == [{"name": "p"}]
        assert each.children == "merged"
    assert (cluster.spec["hostPID"], services.spec.get("hostPID")) == (True, None)
    parts = services.fragments
    assert parts is not None
    at = ("spec", "services", 0)
    assert parts.report(("spec", "volumes", 0)) == (*at, "volumes", "data")
    assert parts.report(("spec", "containers", 0, "image")) == (*at, "image")
    assert parts.report(("spec", "containers", 0, "command")) == (*at, "command")


def test_a_cluster_without_services_has_no_pod_for_them() -> None:
    assert set(placed(MINICLUSTER, {"containers": [{"image": "a"}]})) == {"cluster"}


@pytest.mark.parametrize(
    ("volume", "wanted"),
    [
        ({"claimName": "c"}, [{"persistentVolumeClaim": {"claimName": "c"}}]),
        ({"secretName": "s"}, [{"secret": {"secretName": "s"}}]),
        ({"configMapName": "m"}, [{"configMap": {"name": "m"}}]),
        (
            {"configMapName": "m", "items": {"k": "p"}},
            [{"configMap": {"name": "m", "items": [{"key": "k", "path": "p"}]}}],
        ),
        ({"emptyDir": True}, [{"emptyDir": {}}]),
        (
            {"emptyDir": True, "emptyDirMedium": "Memory", "emptyDirSizeLimit": "1Gi"},
            [{"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}],
        ),
        ({"csiDriver": "d"}, [{"csi": {"driver": "d"}}]),
        (
            {"csiDriver": "d", "csiDriverAttributes": {"a": "b"}},
            [{"csi": {"driver": "d", "volumeAttributes": {"a": "b"}}}],
        ),
        (
            {"secretName": "s", "hostPath": "/"},
            [{"hostPath": {"path": "/"}}, {"secret": {"secretName": "s"}}],
        ),
        ({"path": "/x"}, None),
    ],
)
def test_every_source_of_a_volume_of_flux_is_one_of_the_pod(
    volume: dict[str, Any], wanted: list[dict[str, Any]] | None
) -> None:
    containers = [{"volumes": {"v": volume}}, {"volumes": {"v": volume}}]
    (found,) = locate(definition(MINICLUSTER), {"spec": {"containers": containers}})
    made = [{"name": "v", **each} for each in wanted] if wanted else None
    assert found.spec.get("volumes") == made
    mounts = [each["volumeMounts"] for each in found.spec["containers"]]
    assert mounts == [[{"name": "v", "mountPath": volume.get("path", "")}]] * 2


def test_volumes_of_one_name_and_another_source_are_both_there() -> None:
    volumes = [{"v": {"path": "/a", "claimName": "c"}}, {"v": {"path": "/a", "hostPath": "/"}}]
    spec = {"containers": [{"volumes": each} for each in volumes]}
    (found,) = locate(definition(MINICLUSTER), {"spec": spec})
    assert [set(each) - {"name"} for each in found.spec["volumes"]] == [
        {"persistentVolumeClaim"},
        {"hostPath"},
    ]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"containers": [{"volumes": ["/"]}]}, "volumes must be a map of volumes by name"),
        ({"containers": [{"volumes": {"v": "/"}}]}, "volumes.v must be a volume"),
        ({"containers": [{}], "pod": {"nodeAffinity": ["a"]}}, "must be a map of values by label"),
    ],
)
def test_what_flux_would_not_take_is_refused(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(LocationError, match=message):
        locate(definition(MINICLUSTER), {"spec": spec})


def test_values_of_node_labels_are_an_affinity_that_is_required() -> None:
    spec = {"containers": [{}], "pod": {"nodeAffinity": {"zone": ["a", "b"], "arch": ["x"]}}}
    (found,) = locate(definition(MINICLUSTER), {"spec": spec})
    (term,) = found.spec["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "arch", "operator": "In", "values": ["x"]},
        {"key": "zone", "operator": "In", "values": ["a", "b"]},
    ]


def test_a_container_that_flux_does_not_know_is_found() -> None:
    data = {"spec": {"containers": [{"image": "a"}], "sidecars": [{"image": "b", "command": "x"}]}}
    found = find_uncovered(data, locate(definition(MINICLUSTER), data), definition(MINICLUSTER))
    assert found == [(("spec", "sidecars", 0), "container")]


def test_a_cluster_of_flux_may_grow_to_its_largest_size() -> None:
    found = scales(MINICLUSTER, {"size": 4, "minSize": 2, "maxSize": 9})["cluster", ""]
    assert (found.replicas, found.minimum, found.maximum) == (4, 2, 9)
    assert scales(MINICLUSTER, {})["cluster", ""].replicas == 1


@pytest.mark.parametrize(
    ("spec", "minimum", "maximum"),
    [
        ({"minExecutors": 1, "maxExecutors": 9}, 1, None),
        ({"enabled": True, "minExecutors": 1, "maxExecutors": 9}, 1, 9),
        ({"enabled": True}, None, UNLIMITED),
    ],
)
def test_executors_scale_only_where_that_is_switched_on(
    spec: dict[str, Any], minimum: int | None, maximum: int | None
) -> None:
    found = scales(SPARK_CONNECT, {"server": {}, "executor": {}, "dynamicAllocation": spec})
    executor = found["executor", ""]
    assert (executor.replicas, executor.minimum, executor.maximum) == (2, minimum, maximum)
    assert set(found) == {("server", ""), ("executor", "")}


def test_settings_of_spark_are_beside_the_templates_of_a_connect_server() -> None:
    executor = {"cores": 2, "memory": "4g", "template": TEMPLATE}
    found = placed(SPARK_CONNECT, {"image": "a", "server": {}, "executor": executor})
    assert set(found) == {"executor", "server-settings", "executor-settings"}
    (container,) = found["executor-settings"].spec["containers"]
    memory = str(4 * 2**30 + 4 * 2**30 // 10)
    assert container == {
        "image": "a",
        "resources": {"requests": {"cpu": 2, "memory": memory}, "limits": {"memory": memory}},
    }
    assert found["server-settings"].roles == ("master",)


def test_containers_beside_a_pod_spec_in_a_template_of_spark_are_found() -> None:
    hidden = {**TEMPLATE, "more": {"image": "x", "command": []}}
    data = {"spec": {"server": {"template": hidden}, "executor": {}}}
    found = find_uncovered(data, locate(definition(SPARK_CONNECT), data), definition(SPARK_CONNECT))
    assert found == [(("spec", "server", "template", "more"), "container")]


def test_a_schedule_in_a_cluster_that_is_there_has_merged_children() -> None:
    job = {"submitterPodTemplate": TEMPLATE}
    assert placed("raycronjob.ray.io", {"jobTemplate": job})["submitter"].children == "derived"
    shared = {**job, "clusterSelector": {"ray.io/cluster": "a"}}
    assert placed("raycronjob.ray.io", {"jobTemplate": shared})["submitter"].children == "merged"


@pytest.mark.parametrize("version", ["v1", "v2beta1"])
def test_an_mpi_job_has_one_launcher_and_no_worker_unless_it_says_so(version: str) -> None:
    spec = {"mpiReplicaSpecs": {"Launcher": {"template": TEMPLATE}, "worker": {}}}
    found = scales(f"mpijob.kubeflow.org@{version}", spec)
    assert {key: each.replicas for key, each in found.items()} == {
        ("replica", "Launcher"): 1,
        ("replica", "worker"): 0,
    }


TRAIN_JOB = "trainjob.trainer.kubeflow.org"
OVERRIDES = ("podSpecOverrides", "podTemplateOverrides", "runtimePatches")


def test_every_place_of_a_train_job_is_one_of_some_release(upstream_data: Path) -> None:
    name = "trainjobs.trainer.kubeflow.org"
    found = [
        crd(upstream_data, "trainjobs", "trainer.kubeflow.org", "v1alpha1"),
        crd_of("trainer-older", name),
        crd_of("trainer", name),
    ]
    schemas = [each["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for each in found]
    paths = {path for text in texts(definition(TRAIN_JOB)) for path in simple_paths(text)}
    for word, schema in zip(OVERRIDES, schemas, strict=True):
        own = {path for path in paths if f".{word}[]" in path}
        assert own
        assert {path for path in own if at(schema, path) is None} == set()
        others = [each for each in OVERRIDES if each != word]
        assert all(at(schema, f".spec.{each}") is None for each in others)
    assert {path for path in paths if all(at(each, path) is None for each in schemas)} == set()


@pytest.mark.parametrize("word", OVERRIDES)
def test_overrides_of_every_release_are_judged_and_never_completed(word: str) -> None:
    pod = {"volumes": [{"name": "a"}], "containers": [{"name": "b"}], "serviceAccountName": "c"}
    job = {"name": "node", "template": {"spec": {"template": {"spec": pod}}}}
    patch = {"trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}}}
    override = {"podSpecOverrides": pod, "podTemplateOverrides": {"spec": pod}}.get(word, patch)
    (found,) = locate(definition(TRAIN_JOB), {"spec": {word: [override]}})
    assert found.spec["volumes"] == pod["volumes"]
    assert found.spec["serviceAccountName"] == "c"
    assert {"name": "b"} in found.spec["containers"]
    parts = found.fragments
    assert parts is not None
    assert parts.report(("spec", "serviceAccountName"))[1:3] == (word, 0)
    for place in (("volumes", 0), ("serviceAccountName",)):
        assert parts.writable(("spec", *place)) is None
