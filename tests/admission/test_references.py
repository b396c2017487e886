"""Pods from elsewhere: an object that refers to others passes with a warning, its children are judged."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.building import catalog, container, pod_spec, request, shell
from webhook.admission.judge import decide_review
from webhook.admission.request_class import classify_request, has_no_pods
from webhook.catalog.catalog import Catalog
from webhook.controller.registration import Target, configurations
from webhook.decision.messages import warning_text
from webhook.evaluation.outcome import Allowed, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import RequestClass, Stage

RULES = """
defaults: {workingDir: /w, security: {privileged: false}}
rules: {security: {privileged: {canEdit: false}}}
"""
BAD = container(securityContext={"privileged": True})
KSERVE = "system:serviceaccount:kserve:kserve-controller-manager"
ARGO = "system:serviceaccount:argo:argo"
KUBERAY = "system:serviceaccount:default:kuberay-operator"
TEKTON = "system:serviceaccount:tekton-pipelines:tekton-pipelines-controller"
AGENTS = "system:serviceaccount:agent-sandbox-system:agent-sandbox-controller"
VOLCANO = "system:serviceaccount:volcano-system:volcano-controllers"


def pods(*containers: Any) -> dict[str, Any]:
    return {"spec": pod_spec(*containers)}


def pod(*containers: Any) -> dict[str, Any]:
    return shell("v1", "Pod", pod_spec(*containers))


def deployment(*containers: Any) -> dict[str, Any]:
    return shell("apps/v1", "Deployment", {"template": pods(*containers)})


def replicaset(*containers: Any) -> dict[str, Any]:
    return shell("apps/v1", "ReplicaSet", {"template": pods(*containers)})


def job(*containers: Any) -> dict[str, Any]:
    return shell("batch/v1", "Job", {"template": pods(*containers)})


def jobset(*containers: Any) -> dict[str, Any]:
    jobs = [{"name": "node", "template": {"spec": {"template": pods(*containers)}}}]
    return shell("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs})


def volcano_job(*containers: Any) -> dict[str, Any]:
    tasks = [{"name": "a", "replicas": 1, "template": pods(*containers)}]
    return shell("batch.volcano.sh/v1alpha1", "Job", {"tasks": tasks})


def workflow(*containers: Any) -> dict[str, Any]:
    steps = [{"name": f"t{at}", "container": each} for at, each in enumerate(containers)]
    return shell("argoproj.io/v1alpha1", "Workflow", {"templates": steps or [one_template()]})


def one_template() -> dict[str, Any]:
    return {"name": "a", "container": container()}


def taskrun(*containers: Any) -> dict[str, Any]:
    return shell(
        "tekton.dev/v1", "TaskRun", {"taskSpec": {"steps": list(containers) or [container()]}}
    )


def sandbox(*containers: Any) -> dict[str, Any]:
    return shell("agents.x-k8s.io/v1beta1", "Sandbox", {"podTemplate": pods(*containers)})


@dataclass(frozen=True)
class Row:
    """An object that refers to others, what is told of it, and what its controller makes."""

    name: str
    api_version: str
    kind: str
    spec: dict[str, Any]
    told: str
    child: Any
    user: str
    reason: str = "referred-pods"
    owner: tuple[str, str] | None = field(default=None)

    def __str__(self) -> str:
        return self.name

    def object(self) -> dict[str, Any]:
        return shell(self.api_version, self.kind, copy.deepcopy(self.spec))

    def made(self, *containers: Any) -> dict[str, Any]:
        document = self.child(*containers)
        api_version, kind = self.owner or (self.api_version, self.kind)
        owner = {"apiVersion": api_version, "kind": kind, "name": "web", "uid": "1"}
        document["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
        return document


STEPS = [[{"name": "s", "templateRef": {"name": "shared", "template": "t"}}]]
TASKS = {"tasks": [{"name": "s", "templateRef": {"name": "shared", "template": "t"}}]}
V = "argoproj.io/v1alpha1"
ROWS = [
    Row(
        "train-job",
        "trainer.kubeflow.org/v1alpha1",
        "TrainJob",
        {"runtimeRef": {"name": "torch", "kind": "TrainingRuntime"}},
        "TrainingRuntime torch",
        jobset,
        "system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager",
    ),
    Row(
        "train-job-of-a-cluster-runtime",
        "trainer.kubeflow.org/v1alpha1",
        "TrainJob",
        {"runtimeRef": {"name": "torch"}, "trainer": {"image": "a", "numNodes": 2}},
        "ClusterTrainingRuntime torch",
        jobset,
        "system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager",
    ),
    Row(
        "ray-job-in-a-cluster",
        "ray.io/v1",
        "RayJob",
        {"clusterSelector": {"ray.io/cluster": "big"}, "entrypoint": "python a.py"},
        "RayCluster big",
        job,
        KUBERAY,
    ),
    Row(
        "workflow-of-a-template",
        V,
        "Workflow",
        {"workflowTemplateRef": {"name": "shared"}},
        "WorkflowTemplate shared",
        pod,
        ARGO,
    ),
    Row(
        "workflow-step",
        V,
        "Workflow",
        {"templates": [{"name": "a", "steps": STEPS}]},
        "WorkflowTemplate shared",
        pod,
        ARGO,
    ),
    Row(
        "workflow-task",
        V,
        "Workflow",
        {"templates": [{"name": "a", "dag": TASKS}]},
        "WorkflowTemplate shared",
        pod,
        ARGO,
    ),
    Row(
        "cron-workflow",
        V,
        "CronWorkflow",
        {"schedule": "* * * * *", "workflowSpec": {"workflowTemplateRef": {"name": "shared"}}},
        "WorkflowTemplate shared",
        workflow,
        ARGO,
    ),
    Row(
        "inference-service-with-a-runtime",
        "serving.kserve.io/v1beta1",
        "InferenceService",
        {"predictor": {"model": {"modelFormat": {"name": "onnx"}, "runtime": "triton"}}},
        "ServingRuntime triton",
        deployment,
        KSERVE,
    ),
    Row(
        "inference-service-by-format",
        "serving.kserve.io/v1beta1",
        "InferenceService",
        {"predictor": {"model": {"modelFormat": {"name": "onnx"}}}},
        "ServingRuntime chosen by its controller",
        deployment,
        KSERVE,
    ),
    Row(
        "llm-inference-service",
        "serving.kserve.io/v1alpha1",
        "LLMInferenceService",
        {"baseRefs": [{"name": "preset"}]},
        "LLMInferenceServiceConfig preset",
        deployment,
        KSERVE,
    ),
    Row(
        "job-flow",
        "flow.volcano.sh/v1alpha1",
        "JobFlow",
        {"flows": [{"name": "prepare"}]},
        "JobTemplate prepare",
        volcano_job,
        VOLCANO,
    ),
    Row(
        "rollout",
        V,
        "Rollout",
        {"workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"}},
        "Deployment app",
        replicaset,
        "system:serviceaccount:argo-rollouts:argo-rollouts",
    ),
    Row(
        "task-run",
        "tekton.dev/v1",
        "TaskRun",
        {"taskRef": {"name": "build"}},
        "Task build",
        pod,
        TEKTON,
    ),
    Row(
        "task-run-of-a-step-action",
        "tekton.dev/v1",
        "TaskRun",
        {"taskSpec": {"steps": [{"name": "s", "ref": {"name": "clone"}}]}},
        "StepAction clone",
        pod,
        TEKTON,
    ),
    Row(
        "pipeline-run",
        "tekton.dev/v1",
        "PipelineRun",
        {"pipelineRef": {"name": "release"}},
        "Pipeline release",
        taskrun,
        TEKTON,
    ),
    Row(
        "devworkspace",
        "workspace.devfile.io/v1alpha2",
        "DevWorkspace",
        {"template": {"parent": {"kubernetes": {"name": "base"}}}},
        "DevWorkspaceTemplate base",
        deployment,
        "system:serviceaccount:devworkspace-controller:devworkspace-controller-serviceaccount",
    ),
    Row(
        "virtual-machine",
        "kubevirt.io/v1",
        "VirtualMachine",
        {"instancetype": {"name": "big"}, "template": {"spec": {"domain": {"devices": {}}}}},
        "VirtualMachineClusterInstancetype big",
        pod,
        "system:serviceaccount:kubevirt:kubevirt-controller",
        owner=("kubevirt.io/v1", "VirtualMachineInstance"),
    ),
    Row(
        "sandbox-claim",
        "extensions.agents.x-k8s.io/v1beta1",
        "SandboxClaim",
        {"warmPoolRef": {"name": "warm"}},
        "SandboxWarmPool warm",
        sandbox,
        AGENTS,
    ),
    Row(
        "sandbox-warm-pool",
        "extensions.agents.x-k8s.io/v1beta1",
        "SandboxWarmPool",
        {"sandboxTemplateRef": {"name": "python"}, "replicas": 1},
        "SandboxTemplate python",
        sandbox,
        AGENTS,
    ),
    Row(
        "workflow-with-a-patch",
        V,
        "Workflow",
        {"templates": [one_template()], "podSpecPatch": "hostNetwork: true"},
        "a patch of pods",
        pod,
        ARGO,
        "pods-as-text",
    ),
    Row(
        "workflow-that-makes-objects",
        V,
        "Workflow",
        {"templates": [{"name": "a", "resource": {"action": "create", "manifest": "kind: Pod"}}]},
        "an object that a pod makes",
        pod,
        ARGO,
        "pods-as-text",
    ),
    Row(
        "spark-conf",
        "sparkoperator.k8s.io/v1beta2",
        "SparkApplication",
        {
            "driver": {"image": "a"},
            "executor": {"image": "a"},
            "sparkConf": {"spark.kubernetes.container.image": "evil", "spark.ui.port": "1"},
        },
        "spark.kubernetes.container.image",
        pod,
        "",
        "pods-as-text",
    ),
    Row(
        "dynamo-by-a-kind-in-between",
        "nvidia.com/v1alpha1",
        "DynamoGraphDeployment",
        {"services": {}},
        "",
        deployment,
        "",
        "pods-unseen",
        ("nvidia.com/v1alpha1", "DynamoComponentDeployment"),
    ),
]


@pytest.fixture(scope="module")
def rules() -> Catalog:
    return catalog(RULES)


def user_of(row: Row, rules: Catalog) -> str:
    """The exact name of a controller, as the profile has it."""
    group = row.api_version.rpartition("/")[0]
    known = rules.definitions[group, row.kind][0].profile.controllers
    if row.user:
        assert row.user in known
        return row.user
    return min(each for each in known if "operator" in each)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_an_object_whose_pods_are_elsewhere_passes_and_says_so(row: Row, rules: Catalog) -> None:
    for stage in Stage:
        decision = decide_review(request(row.object(), stage=stage), rules, References())
        assert isinstance(decision, Allowed), decision
        told = [each for each in decision.warnings if each.reason == row.reason]
        assert [" ".join(each.facts) for each in told] == [row.told]
        text = warning_text(told[0], 120)
        assert row.told in text
        assert "podgate evaluates" in text


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_what_its_controller_makes_is_held_to_rules_of_safety(row: Row, rules: Catalog) -> None:
    user = user_of(row, rules)
    bad = request(row.made(BAD), user=user)
    assert classify_request(bad, rules) is RequestClass.CHILD
    for stage in Stage:
        asked = request(row.made(BAD), user=user, stage=stage)
        decision = decide_review(asked, rules, References())
        assert isinstance(decision, Denied)
        assert {each.field for each in decision.violations} == {"security.privileged"}
        fine = decide_review(request(row.made(), user=user, stage=stage), rules, References())
        assert isinstance(fine, Allowed), fine
        assert not fine.patch, "what controllers make is never written"


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_an_update_that_refers_to_the_same_is_not_told_again(row: Row, rules: Catalog) -> None:
    old = row.object()
    new = copy.deepcopy(old)
    new["metadata"]["labels"] = {"a": "b"}
    decision = decide_review(request(new, old), rules, References())
    assert isinstance(decision, Allowed)
    assert not [each for each in decision.warnings if each.reason == row.reason]


def test_every_shipped_kind_that_refers_to_pods_leaves_its_children_open(rules: Catalog) -> None:
    """Kinds that make nothing by themselves may have no children; the rest are judged again."""
    tried = {(row.api_version.rpartition("/")[0], row.kind) for row in ROWS}
    inert = {
        ("argoproj.io", "WorkflowTemplate"),
        ("argoproj.io", "ClusterWorkflowTemplate"),
        ("serving.kserve.io", "LLMInferenceServiceConfig"),
        ("workspace.devfile.io", "DevWorkspaceTemplate"),
    }
    # Their children are the objects of kinds that are tried.
    through = {("ray.io", "RayCronJob"), ("kubeflow.org", "ScheduledWorkflow")}
    through |= {("sparkoperator.k8s.io", "ScheduledSparkApplication")}
    through |= {("sparkoperator.k8s.io", "SparkConnect")}
    through |= {("pool.kubevirt.io", "VirtualMachinePool")}
    through |= {("grove.io", "PodCliqueScalingGroup")}
    for key, definitions in rules.definitions.items():
        for each in definitions:
            profile = each.profile
            if any(one.pods for one in profile.references) or profile.pod_texts:
                assert has_no_pods(each) or any(
                    component.children == "merged" or component.merged_with
                    for component in profile.components.values()
                ), key
                same = {
                    ("sparkoperator.k8s.io", kind)
                    for kind in ("ScheduledSparkApplication", "SparkConnect")
                }
                assert key in tried | inert | through | same


def test_what_a_ray_job_states_itself_is_not_judged_again(rules: Catalog) -> None:
    """A later policy cannot keep a job's cluster from being made again."""
    body = {"headGroupSpec": {"rayStartParams": {}, "template": pods(BAD)}}
    cluster = shell("ray.io/v1", "RayCluster", body)
    owner = {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "name": "j",
        "uid": "1",
        "controller": True,
    }
    cluster["metadata"]["ownerReferences"] = [owner]
    assert classify_request(request(cluster, user=KUBERAY), rules) is RequestClass.EXEMPT
    run = shell("ray.io/v1", "RayJob", {"clusterSelector": {"ray.io/cluster": "big"}})
    run["metadata"]["ownerReferences"] = [{**owner, "kind": "RayCronJob"}]
    assert classify_request(request(run, user=KUBERAY), rules) is RequestClass.EXEMPT


def test_kinds_without_a_namespace_are_in_no_webhook() -> None:
    found = configurations(catalog(RULES).definitions, Target(url="https://127.0.0.1:1"))
    named = {
        resource
        for each in found
        for hook in each["webhooks"]
        for rule in hook["rules"]
        for resource in rule["resources"]
    }
    assert "trainingruntimes" in named
    kinds = ("trainingruntimes", "servingruntimes", "workflowtemplates")
    assert not named & {f"cluster{each}" for each in kinds}
