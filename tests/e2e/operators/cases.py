"""The workloads that operators are tried with, and what is expected of each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.operators.argo import ARGO
from tests.e2e.operators.jobset import JOBSET
from tests.e2e.operators.knative import KNATIVE
from tests.e2e.operators.kserve import KSERVE
from tests.e2e.operators.kuberay import KUBERAY
from tests.e2e.operators.lws import LWS
from tests.e2e.operators.mpi_operator import MPI_OPERATOR
from tests.e2e.operators.operator import Operator
from tests.e2e.operators.spark_operator import SPARK_OPERATOR
from tests.e2e.operators.trainer import TRAINER
from tests.e2e.operators.training_operator import TRAINING_OPERATOR
from tests.e2e.testbed import upstream
from tests.e2e.testbed.programs import OPERATORS_IN_CI

HERE = Path(__file__).parent
Json = dict[str, Any]
PRIVILEGED = {"securityContext": {"privileged": True}}
CONTROLLERS = (
    "job-controller",
    "statefulset-controller",
    "deployment-controller",
    "replicaset-controller",
)
BUILT_IN = tuple(f"system:serviceaccount:kube-system:{each}" for each in CONTROLLERS)


@dataclass(frozen=True, slots=True)
class Case:
    """One workload: a file in workloads/, how many pods come of it, what it is broken with.

    `resource` is what kubectl calls the kind. `mains` are names of main containers, `added` of
    those that the operator puts in itself. `breaks` is what breaks `rule` in what stands at `broken`.
    `scaled` is a place that `kubectl scale` changes, and how many pods there are at 1 more.
    `done` is a condition or phase in the status when every pod of `ends` has succeeded. `again`: a
    pod that is deleted comes again; else the next step waits until one of the pods has ended.
    `restless`: the operator itself writes into the workload at every update, with podgate or
    without, so that its generation tells nothing. It `spreads` when labels of the workload become
    labels of its pods. `without` is what the kind has no place for, in the oracle's words. A file of
    its name in beside/ is applied to the namespace first. One in smuggled/ has a workload that is
    fine but for what its operator gets from elsewhere, which breaks the rule `smuggles`.
    Pods are `completed` by podgate where it sees them before their owner is known.
    `state` is what `podgate interface tree` says of it while its pods run. It `suspends` when its
    operator takes the pods of one away that is suspended.
    """

    name: str
    operator: Operator
    resource: str
    pods: int
    broken: str
    breaks: Mapping[str, Any] = field(default_factory=lambda: PRIVILEGED)
    rule: str = "security.privileged"
    mains: tuple[str, ...] = ("main",)
    added: tuple[str, ...] = ()
    scaled: tuple[int, int] | None = None
    done: str = ""
    ends: str = ""
    again: bool = True
    restless: bool = False
    spreads: bool = False
    without: tuple[str, ...] = ()
    smuggles: str = "security.privileged"
    completed: bool = False
    state: str = "Running"
    suspends: bool = False
    others: tuple[Operator, ...] = ()

    @property
    def file(self) -> Path:
        """The file of the workload."""
        return HERE / "workloads" / f"{self.name}.yaml"

    @property
    def beside(self) -> Path:
        """The file of what must be there before it."""
        return HERE / "beside" / f"{self.name}.yaml"

    @property
    def smuggled(self) -> Path:
        """The file of a workload that is fine but for what its operator gets from elsewhere."""
        return HERE / "smuggled" / f"{self.name}.yaml"

    @property
    def document(self) -> Json:
        """The workload."""
        return dict(yaml.safe_load(self.file.read_text("utf-8")))

    @property
    def workload(self) -> str:
        """The workload's name."""
        return str(self.document["metadata"]["name"])

    @property
    def users(self) -> tuple[str, ...]:
        """Everybody who makes something of it."""
        return (self.operator.user, *(each.user for each in self.others), *BUILT_IN)


CASES = (
    Case(
        name="pytorchjob",
        operator=TRAINING_OPERATOR,
        resource="pytorchjobs.kubeflow.org",
        pods=3,
        broken="spec.pytorchReplicaSpecs.Worker.template.spec.containers.0",
        mains=("pytorch",),
        added=("init-pytorch",),
        scaled=(3, 4),
        done="Succeeded",
        ends="training.kubeflow.org/replica-type=master",
        suspends=True,
    ),
    Case(
        name="jobset",
        operator=JOBSET,
        resource="jobsets.jobset.x-k8s.io",
        pods=5,
        broken="spec.replicatedJobs.1.template.spec.template.spec.containers.1",
        done="Completed",
        restless=True,
        suspends=True,
    ),
    Case(
        name="raycluster",
        operator=KUBERAY,
        resource="rayclusters.ray.io",
        pods=4,
        broken="spec.workerGroupSpecs.1.template.spec.containers.0",
        mains=("ray-head", "ray-worker"),
        added=("wait-gcs-ready",),
        suspends=True,
    ),
    Case(
        name="leaderworkerset",
        operator=LWS,
        resource="leaderworkersets.leaderworkerset.x-k8s.io",
        pods=4,
        broken="spec.leaderWorkerTemplate.workerTemplate.spec.containers.0",
        restless=True,
        scaled=(3, 6),
    ),
    Case(
        name="mpijob",
        operator=MPI_OPERATOR,
        resource="mpijobs.kubeflow.org",
        pods=3,
        broken="spec.mpiReplicaSpecs.Launcher.template.spec.containers.0",
        mains=("launcher", "worker"),
        done="Succeeded",
        ends="training.kubeflow.org/job-role=launcher",
        suspends=True,
    ),
    Case(
        name="trainjob",
        operator=TRAINER,
        others=(JOBSET,),
        resource="trainjobs.trainer.kubeflow.org",
        pods=2,
        broken="spec.trainer",
        breaks={"image": "evil/miner:1"},
        rule="image",
        mains=("node",),
        done="Complete",
        suspends=True,
        # Its version writes no more than conditions.
        state="Initializing",
    ),
    Case(
        name="workflow",
        operator=ARGO,
        resource="workflows.argoproj.io",
        pods=2,
        broken="spec.templates.1.container",
        added=("init", "wait"),
        done="Succeeded",
        again=False,
        restless=True,
    ),
    Case(
        name="inferenceservice",
        operator=KSERVE,
        resource="inferenceservices.serving.kserve.io",
        pods=1,
        broken="spec.predictor.containers.0",
        mains=("kserve-container",),
        # Not privileged: the API server refuses that beside the policy's allowPrivilegeEscalation,
        # before the validating pass is asked.
        smuggles="security.volumeTypes",
        spreads=True,
    ),
    Case(
        name="service",
        operator=KNATIVE,
        resource="services.serving.knative.dev",
        pods=2,
        broken="spec.template.spec.containers.0",
        breaks={"image": "evil/miner:1"},
        rule="image",
        added=("queue-proxy",),
        without=("datasets", "users"),
        # Without a network in front it never becomes ready.
        state="Initializing",
    ),
    Case(
        name="sparkapplication",
        operator=SPARK_OPERATOR,
        resource="sparkapplications.sparkoperator.k8s.io",
        pods=1,
        broken="spec.driver",
        breaks={"image": "evil/miner:1"},
        rule="image",
        mains=("spark-kubernetes-driver", "spark-kubernetes-executor"),
        smuggles="storage.hostPath",
        completed=True,
        done="COMPLETED",
    ),
)

TABLE_HEAD = (
    "kind",
    "operator",
    "as",
    "pods",
    "scales",
    "suspends",
    "ends",
    "merged",
    "outage",
    "in CI",
)


def table() -> Iterator[tuple[str, ...]]:
    """What is tried of each kind, for docs/operators.md: a row of cells for each case."""
    for case in CASES:
        name = case.operator.name
        document = case.document
        yield (
            f"`{document['kind']}` {document['apiVersion']}",
            f"{name} {upstream.version(f'operators/{name}')}",
            f"`{case.operator.user}`",
            str(case.pods),
            f"{case.pods} to {case.scaled[1]}" if case.scaled else "",
            "yes" if case.suspends else "",
            case.done,
            "refused" if case.smuggled.exists() else "",
            "recovers" if case.again else "at the next event",
            "yes" if name in OPERATORS_IN_CI else "",
        )


def how_to_run(name: str) -> str:
    """What to do to have an operator tried that is not asked for."""
    return (
        f"{name} is not among the operators of `make test`; "
        f"run `make test-operators`, or set PODGATE_OPERATORS={name}"
    )


def wanted(case: Case) -> bool:
    """Whether the environment asks for this case: `PODGATE_OPERATORS` is `all` or some names."""
    return asked(case.operator.name, *OPERATORS_IN_CI)


def asked(name: str, *unless_set: str) -> bool:
    """Whether `PODGATE_OPERATORS` is `all` or has the name; where it is not set, those given are."""
    found = os.environ.get("PODGATE_OPERATORS", "")
    names = found.split(",") if found else unless_set
    return found == "all" or name in names
