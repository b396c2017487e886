"""States of shipped kinds: what controllers write into the status, in the order they write it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from tests.conformance.fixtures import evaluator
from tests.definitions import POLICIES, read_file
from tests.definitions import shipped as shipped_definition
from webhook.access.object import bind
from webhook.access.status import UNDEFINED
from webhook.access.tree import DEEPEST, Node, child_kinds, has_states, trees, walk
from webhook.cli import definitions
from webhook.pods.definition import Definition


def condition(text: str) -> dict[str, str]:
    """A condition from `Type=Status`, or `Type=Status:Reason`."""
    kind, _, rest = text.partition("=")
    status, _, reason = rest.partition(":")
    return {"type": kind, "status": status, **({"reason": reason} if reason else {})}


def matching(
    kind: str, status: dict[str, Any] | None, spec: dict[str, Any], **metadata: Any
) -> tuple[str, ...]:
    """The states of an object of a shipped kind, the one that counts first."""
    interface, _, _ = read_file(POLICIES / f"{kind}.yaml")
    body: dict[str, Any] = {"metadata": {"name": "a", **metadata}, "spec": spec}
    if status is not None:
        body["status"] = status
    found = bind(interface, body, evaluator()).root.status()
    assert found is not None
    return (found.state, *(each for each in found.matching if each != found.state))


def conditions(*texts: str, **more: Any) -> dict[str, Any]:
    """A status with these conditions."""
    return {"conditions": [condition(each) for each in texts], **more}


def models(active: str, target: str) -> dict[str, Any]:
    """The model status of an InferenceService."""
    return {"states": {"activeModelState": active, "targetModelState": target}}


LWS = "leaderworkerset.leaderworkerset.x-k8s.io"
ISVC = "inferenceservice.serving.kserve.io"
LLM = "llminferenceservice.serving.kserve.io"
SANDBOX = "sandbox.agents.x-k8s.io"
JOBSET = "jobset.jobset.x-k8s.io"
RAY = "raycluster.ray.io"
RAYJOB = "rayjob.ray.io"
RAYSERVICE = "rayservice.ray.io"
SET = "statefulset.apps"
CRON = "cronjob.batch"
ARGO_CRON = "cronworkflow.argoproj.io"
WORKFLOW = "workflow.argoproj.io"
PIPELINE = "pipelinerun.tekton.dev"
NOTEBOOK = "notebook.kubeflow.org"
RESUMED = "RayClusterSuspended=False"
SUSPENDED = {"operatingMode": "Suspended"}
RUNNING = {"operatingMode": "Running"}


@pytest.mark.parametrize(
    "kind, expected, status, spec",
    [
        (LWS, ["Initializing"], conditions("Progressing=True:GroupsProgressing"), {}),
        (LWS, ["Initializing"], conditions("Progressing=True", "Available=False"), {}),
        (LWS, ["Running"], conditions("Progressing=False", "Available=True"), {}),
        (LWS, ["Degraded"], conditions("Progressing=False", "Available=False"), {}),
        ("deployment.apps", ["Initializing"], conditions("Progressing=True"), {}),
        ("deployment.apps", ["Running"], conditions("Progressing=True", "Available=True"), {}),
        ("job.batch", ["Initializing"], {"active": 1, "ready": 0}, {}),
        ("job.batch", ["Running"], {"active": 1, "ready": 1}, {}),
        ("job.batch", ["Running"], {"active": 1}, {}),
        ("job.batch", ["Completed"], conditions("SuccessCriteriaMet=True", ready=0), {}),
        (
            "job.batch",
            ["Completed", "Running"],
            conditions("SuccessCriteriaMet=True", active=1, ready=1),
            {},
        ),
        (
            "job.batch",
            ["Completed"],
            conditions("SuccessCriteriaMet=True", "Complete=True", completionTime="t"),
            {},
        ),
        ("job.batch", ["Failed"], conditions("FailureTarget=True:BackoffLimitExceeded"), {}),
        ("job.batch", ["Failed"], conditions("FailureTarget=True", "Failed=True"), {}),
        ("job.batch", ["Suspended"], conditions("Suspended=True"), {}),
        (
            ISVC,
            ["Initializing"],
            conditions("Ready=Unknown", modelStatus=models("", "Pending")),
            {},
        ),
        (ISVC, ["Initializing"], conditions("Ready=False"), {}),
        (ISVC, ["Failed"], conditions("Ready=False", modelStatus=models("", "FailedToLoad")), {}),
        (ISVC, ["Failed"], conditions("Ready=False", modelStatus=models("FailedToLoad", "")), {}),
        (
            ISVC,
            ["Running"],
            conditions("Ready=True", modelStatus=models("Loaded", "FailedToLoad")),
            {},
        ),
        (ISVC, ["Suspended"], conditions("Ready=False", "Stopped=True"), {}),
        (LLM, ["Failed"], conditions("PresetsCombined=False:ConfigNotFound", "Ready=Unknown"), {}),
        (LLM, ["Initializing"], conditions("PresetsCombined=True", "Ready=Unknown"), {}),
        (
            LLM,
            ["Initializing"],
            conditions("PresetsCombined=True", "Ready=False:Progressing"),
            {},
        ),
        (LLM, ["Running"], conditions("PresetsCombined=True", "Ready=True"), {}),
        (
            SANDBOX,
            ["Initializing"],
            conditions("Suspended=False:NotSuspended", "PodScheduled=True", "Ready=False"),
            RUNNING,
        ),
        (
            SANDBOX,
            ["Running"],
            conditions("Suspended=False", "PodScheduled=True", "Ready=True"),
            RUNNING,
        ),
        (SANDBOX, ["Suspending"], conditions("Suspended=False", "Ready=True"), SUSPENDED),
        (
            SANDBOX,
            ["Suspending"],
            conditions("Suspended=False:PodTerminating", "Ready=False", "Finished=True:PodFailed"),
            SUSPENDED,
        ),
        (SANDBOX, ["Suspended"], conditions("Suspended=True", "Ready=False"), SUSPENDED),
        (SANDBOX, ["Resuming"], conditions("Suspended=True", "Ready=False"), RUNNING),
        (SANDBOX, ["Failed"], conditions("Ready=False", "Finished=True:PodFailed"), RUNNING),
        (SANDBOX, ["Completed"], conditions("Ready=False:SandboxExpired"), RUNNING),
        (
            "sandboxclaim.extensions.agents.x-k8s.io",
            ["Initializing"],
            conditions("PodScheduled=True", "Ready=False"),
            {},
        ),
    ],
)
def test_the_state_of_an_object(
    kind: str, expected: list[str], status: dict[str, Any], spec: dict[str, Any]
) -> None:
    assert list(matching(kind, status, spec)) == expected


def jobs(**counts: int) -> dict[str, Any]:
    """The counts of one replicated job of a JobSet; the operator writes all of them."""
    zero = dict.fromkeys(("active", "ready", "succeeded", "failed", "suspended"), 0)
    return {"replicatedJobsStatus": [{"name": "a", **zero, **counts}]}


def pods(replicas: int, ready: int, updated: int, **more: Any) -> dict[str, Any]:
    """The status of a StatefulSet."""
    counts = {"replicas": replicas, "readyReplicas": ready, "updatedReplicas": updated}
    return {"currentRevision": "a", "updateRevision": "a", **counts, **more}


THREE = {"replicas": 3}
ONE = {"replicas": 1}
STOPPED = {"suspend": True}
PARTITION = {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}}


# What operators write, by their own source; upstream's recordings of the same agree where it has
# any. Named is the file that says it where no recording does.
@pytest.mark.parametrize(
    "kind, expected, status, spec",
    [
        # JobSet writes these in pkg/controllers/jobset_controller.go
        (JOBSET, ["Initializing"], jobs(), {}),
        (JOBSET, ["Running"], jobs(active=1), {}),
        (JOBSET, ["Initializing"], jobs(succeeded=1), {}),
        (JOBSET, ["Suspended"], jobs(suspended=1) | conditions("Suspended=True"), STOPPED),
        (JOBSET, ["Initializing"], jobs(suspended=1) | conditions("Suspended=False"), {}),
        (JOBSET, ["Failed"], jobs(failed=1) | conditions("Failed=True"), {}),
        # StatefulSet and Deployment: pkg/controller of Kubernetes
        (SET, ["Initializing"], pods(0, 0, 0), THREE),
        (SET, ["Initializing"], pods(3, 0, 3), THREE),
        (SET, ["Initializing"], pods(2, 2, 2), THREE),
        (SET, ["Degraded"], pods(3, 1, 3), THREE),
        (SET, ["Running"], pods(3, 3, 3), THREE),
        (SET, ["Initializing"], pods(3, 3, 1, updateRevision="b"), THREE),
        (SET, ["Running"], pods(3, 3, 1, updateRevision="b"), PARTITION),
        (SET, ["Initializing"], pods(2, 2, 1), ONE),
        (SET, ["Running"], pods(0, 0, 0), {"replicas": 0}),
        ("statefulset.apps.kruise.io", ["Degraded"], pods(3, 1, 3), THREE),
        ("deployment.apps", ["Initializing"], conditions("Available=False"), {}),
        (
            "deployment.apps",
            ["Initializing"],
            conditions("Progressing=Unknown:DeploymentPaused", "Available=False"),
            {"paused": True},
        ),
        (
            "deployment.apps",
            ["Failed"],
            conditions("Progressing=False:ProgressDeadlineExceeded", "Available=False"),
            {},
        ),
        # Schedules between two runs
        (CRON, ["Running"], {"lastScheduleTime": "t"}, {}),
        (CRON, ["Suspended"], {"lastScheduleTime": "t"}, STOPPED),
        (CRON, ["Suspending", "Running"], {"active": [{}]}, STOPPED),
        ("cronjob.batch.volcano.sh", ["Running"], {"lastScheduleTime": "t"}, {}),
        ("raycronjob.ray.io", ["Running"], {"lastScheduleTime": "t"}, {}),
        (ARGO_CRON, ["Running"], {"lastScheduledTime": "t", "phase": "Active"}, {}),
        (ARGO_CRON, ["Completed"], {"lastScheduledTime": "t", "phase": "Stopped"}, {}),
        (ARGO_CRON, ["Suspended"], {"lastScheduledTime": "t"}, STOPPED),
        (ARGO_CRON, ["Suspending", "Running"], {"active": [{}]}, STOPPED),
        (
            "scheduledworkflow.kubeflow.org",
            ["Running"],
            conditions("Enabled=True", trigger={"lastTriggeredTime": "t"}),
            {},
        ),
        # KubeRay: apis/ray/v1, controllers/ray
        (RAY, ["Initializing"], conditions("RayClusterProvisioned=False"), {}),
        (RAY, ["Suspending"], conditions("RayClusterSuspending=True"), STOPPED),
        (
            RAY,
            ["Suspended", "Suspending"],
            conditions("RayClusterSuspending=True", state="suspended"),
            STOPPED,
        ),
        (RAY, ["Suspended"], conditions("RayClusterSuspended=True", state="suspended"), STOPPED),
        (RAY, ["Suspended"], {}, STOPPED),
        (RAY, ["Resuming"], conditions("RayClusterSuspended=True", state="suspended"), {}),
        (RAY, ["Resuming"], conditions(RESUMED, state="suspended"), {"suspend": False}),
        (RAY, ["Running"], conditions(RESUMED, state="ready"), {}),
        (RAYJOB, ["Initializing"], {"jobDeploymentStatus": "Running", "jobStatus": "PENDING"}, {}),
        (RAYJOB, ["Running"], {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}, {}),
        (RAYJOB, ["Completed"], {"jobDeploymentStatus": "Complete", "jobStatus": "STOPPED"}, {}),
        (RAYJOB, ["Failed"], {"jobDeploymentStatus": "ValidationFailed"}, {}),
        (RAYSERVICE, ["Initializing"], conditions("Ready=False:Initializing"), {}),
        (RAYSERVICE, ["Initializing"], {"serviceStatus": ""}, {}),
        (RAYSERVICE, ["Degraded"], conditions("Ready=False:ZeroServeEndpoints"), {}),
        (RAYSERVICE, ["Failed"], conditions("Ready=False:InitializingTimeout"), {}),
        # KServe writes these in pkg/controller/v1alpha2/llmisvc
        (LLM, ["Initializing"], conditions("Ready=False:MinimumReplicasUnavailable"), {}),
        (LLM, ["Suspended"], conditions("PresetsCombined=True", "Ready=False:Stopped"), {}),
        (LLM, ["Failed"], conditions("PresetsCombined=True", "Ready=False:RefsInvalid"), {}),
        # training-operator: pkg/apis/kubeflow.org/v1/common_types.go; mpi-operator has the same
        ("pytorchjob.kubeflow.org", ["Initializing"], {}, {}),
        (
            "pytorchjob.kubeflow.org",
            ["Initializing"],
            conditions("Created=True", "Running=False", "Restarting=True"),
            {},
        ),
        ("mpijob.kubeflow.org", ["Initializing"], conditions("Suspended=False"), {}),
        ("trainjob.trainer.kubeflow.org", ["Initializing"], conditions("Created=True"), {}),
        # Argo: workflow/controller/operator.go leaves the phase; Tekton: pkg/apis/pipeline/v1
        (WORKFLOW, ["Suspended", "Running"], {"phase": "Running"}, STOPPED),
        (WORKFLOW, ["Completed"], {"phase": "Succeeded"}, STOPPED),
        (PIPELINE, ["Initializing"], conditions("Succeeded=Unknown:ResolvingPipelineRef"), {}),
        (PIPELINE, ["Running"], conditions("Succeeded=Unknown:Running"), {}),
        (PIPELINE, ["Suspended"], conditions("Succeeded=Unknown:PipelineRunPending"), {}),
        (
            "taskrun.tekton.dev",
            ["Initializing"],
            conditions("Succeeded=Unknown:ResolvingTaskRef"),
            {},
        ),
        # Grove writes it in reconcilestatus.go of the controller of sets
        ("podcliqueset.grove.io", ["Initializing"], {"availableReplicas": 1}, THREE),
        ("podcliqueset.grove.io", ["Running"], {"availableReplicas": 3}, THREE),
        ("podcliqueset.grove.io", ["Running"], {}, {"replicas": 0}),
        (
            "podcliqueset.grove.io",
            ["Failed", "Initializing"],
            conditions("TopologyLevelsUnavailable=True"),
            ONE,
        ),
        # slurm-operator: internal/controller/*/*_sync_status.go, newer versions
        ("restapi.slinky.slurm.net", ["Running"], conditions("Available=True"), {}),
        ("accounting.slinky.slurm.net", ["Initializing"], conditions("Available=False"), {}),
        ("controller.slinky.slurm.net", ["Running"], conditions("SlurmReachable=True"), {}),
        ("controller.slinky.slurm.net", [UNDEFINED], {}, {}),
        # Phases: devworkspace-operator controllers/workspace/status.go, KubeVirt api/core/v1,
        # AppWrapper api/v1beta2, Spark operator api/v1beta2, Milvus operator apis/milvus.io/v1beta1
        ("devworkspace.workspace.devfile.io", ["Suspending"], {"phase": "Terminating"}, {}),
        (
            "virtualmachine.kubevirt.io",
            ["Initializing"],
            {"printableStatus": "WaitingForReceiver"},
            {},
        ),
        ("virtualmachineinstance.kubevirt.io", ["Initializing"], {"phase": "WaitingForSync"}, {}),
        ("appwrapper.workload.codeflare.dev", ["Suspending"], {"phase": "Terminating"}, {}),
        (
            "sparkapplication.sparkoperator.k8s.io",
            ["Degraded"],
            {"applicationState": {"state": "UNKNOWN"}},
            {},
        ),
        ("milvus.milvus.io", ["Suspending"], {"status": "Deleting"}, {}),
    ],
)
def test_the_state_that_an_operator_writes(
    kind: str, expected: list[str], status: dict[str, Any], spec: dict[str, Any]
) -> None:
    assert list(matching(kind, status, spec)) == expected


def test_counts_of_an_older_generation_say_nothing_of_a_stateful_set() -> None:
    status = pods(1, 1, 1, observedGeneration=1)
    assert matching(SET, status, ONE, generation=2) == ("Initializing",)
    assert matching(SET, status, ONE, generation=1) == ("Running",)


def test_a_notebook_that_is_being_stopped() -> None:
    stopped = {"annotations": {"kubeflow-resource-stopped": "t"}}
    assert matching(NOTEBOOK, {"readyReplicas": 1}, {}, **stopped) == ("Suspending", "Running")
    assert matching(NOTEBOOK, {"readyReplicas": 0}, {}, **stopped) == ("Suspended",)


@cache
def shipped() -> dict[str, list[Definition]]:
    """The shipped definitions of all versions that say anything of states, by kind.group."""
    return {
        f"{kind}.{group}".lower().rstrip("."): [each for each in listed if has_states(each)]
        for (group, kind), listed in definitions.all_of([]).items()
    }


EACH_KIND = pytest.mark.parametrize("kind", sorted(each.stem for each in POLICIES.glob("*.yaml")))


# Slurm's operator has no condition in older versions.
WITHOUT = {"Accounting", "Controller", "RestApi"}


@EACH_KIND
def test_an_object_that_was_just_made_has_a_state(kind: str) -> None:
    body = {"metadata": {"name": "a", "generation": 1}, "spec": {"replicas": 1}}
    for definition in shipped()[kind]:
        status = bind(definition, body, evaluator()).root.status()
        assert status is not None
        expected = UNDEFINED if definition.interface.kind in WITHOUT else "Initializing"
        assert status.state == expected


@EACH_KIND
def test_what_can_be_suspended_has_a_state_for_it(kind: str) -> None:
    for definition in shipped()[kind]:
        root = definition.interface.spec.structure_definition.root_component
        assert root.status_definition is not None
        if root.suspend_definition is not None:
            assert root.status_definition.status_mappings.suspended


def find_shipped(body: Any) -> Definition | None:
    """The definition of a JobSet; nothing else has one here."""
    return shipped_definition(JOBSET) if body["kind"] == "JobSet" else None


def node(kind: str, name: str, owner: str = "", **more: Any) -> dict[str, Any]:
    """An object whose uid is its name."""
    owners = [{"uid": owner, "controller": True}] if owner else []
    metadata = {"name": name, "uid": name, "ownerReferences": owners, **more.pop("metadata", {})}
    version = "jobset.x-k8s.io/v1alpha2" if kind == "JobSet" else "v1"
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def names_of(root: Node) -> list[str]:
    """The names of a tree, from the top."""
    return [each.body["metadata"]["name"] for each in walk(root)]


def test_pods_lie_below_their_owners_and_are_named_by_what_selects_them() -> None:
    labels = {"jobset.sigs.k8s.io/replicatedjob-name": "master"}
    spec = {"replicatedJobs": [{"name": "master"}, {"name": "worker"}]}
    objects = [
        node("Pod", "pod", "job", metadata={"labels": labels}),
        node("JobSet", "set", spec=spec),
        node("Job", "job", "set"),
        node("Pod", "alone", metadata={"labels": labels}),
    ]
    top, alone = trees(objects, find_shipped, evaluator())
    assert (names_of(top), names_of(alone)) == (["set", "job", "pod"], ["alone"])
    assert [(each.component, each.instance) for each in walk(top)][1:] == [
        ("", ""),
        ("replicatedjob", "master"),
    ]
    assert alone.component == ""


def test_a_circle_of_owners_is_cut_once_and_a_long_chain_at_its_limit() -> None:
    circle = [node("Pod", "a", "c"), node("Pod", "b", "a"), node("Pod", "c", "b")]
    (found,) = trees(circle, find_shipped, evaluator())
    assert sorted(names_of(found)) == ["a", "b", "c"]
    chain = [node("Pod", f"p{n}", f"p{n + 1}") for n in range(DEEPEST + 1)]
    assert sorted(map(len, map(names_of, trees(chain, find_shipped, evaluator())))) == [1, DEEPEST]


def test_the_kinds_below_one_are_those_that_its_definition_names_in_any_of_its_lists() -> None:
    definition = shipped_definition(JOBSET)
    below = child_kinds(
        ("jobset.x-k8s.io", "JobSet"), {("jobset.x-k8s.io", "JobSet"): [definition]}
    )
    assert {("batch", "Job"), ("", "Pod")} <= below
    named = replace(definition.profile, intermediate_kinds=frozenset({("example.com", "Task")}))
    listed = Definition(definition.interface, named)
    assert ("example.com", "Task") in child_kinds(("a", "A"), {("a", "A"): [listed]})
