"""What is particular to single batch and distributed kinds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.shipped import batch
from tests.core.shipped.batch import DISAGGREGATED, TEMPLATE
from tests.core.test_shipped_workloads import definition, placed
from webhook.core.workload.coverage import uncovered
from webhook.core.workload.locations import LocationError, locate
from webhook.core.workload.scale import UNLIMITED, Scale, read_scales

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
    assert first.parts is not None
    assert first.parts.real(("spec", "containers", 0, "image")) == (
        *("spec", "flows", 1, "patch", "jobSpec", "tasks", 0, "template", "spec"),
        *("containers", 0, "image"),
    )
    assert not first.parts.holds(("spec", "containers", 0, "image"))
    assert first.parts.writes(("spec", "hostNetwork"), True) == []


def test_a_change_without_containers_has_none_and_one_that_is_no_pod_is_refused() -> None:
    def flow(template: Any) -> dict[str, Any]:
        task = {"name": "a", "template": template}
        return {"spec": {"flows": [{"name": "a", "patch": {"jobSpec": {"tasks": [task]}}}]}}

    (found,) = locate(definition(JOBFLOW), flow({"spec": {"hostNetwork": True}}))
    assert found.spec == {"hostNetwork": True, "containers": []}
    with pytest.raises(LocationError, match="metadata must be a map"):
        locate(definition(JOBFLOW), flow({"metadata": "x", "spec": {}}))


@pytest.mark.parametrize(
    ("spec", "minimum", "maximum"),
    [
        ({"minExecutors": 1, "maxExecutors": 9}, 1, None),
        ({"enabled": True, "minExecutors": 1, "maxExecutors": 9}, 1, 9),
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
    found = uncovered(data, locate(definition(SPARK_CONNECT), data), definition(SPARK_CONNECT))
    assert found == [(("spec", "server", "template", "more"), "container")]


def test_a_schedule_in_a_cluster_that_is_there_has_merged_children() -> None:
    job = {"submitterPodTemplate": TEMPLATE}
    assert placed("raycronjob.ray.io", {"jobTemplate": job})["submitter"].children == "derived"
    shared = {**job, "clusterSelector": {"ray.io/cluster": "a"}}
    assert placed("raycronjob.ray.io", {"jobTemplate": shared})["submitter"].children == "merged"
