"""Scenes of real operators, each with the workload that the tests of operators have for it."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.e2e.operators.cases import CASES, Case
from tests.reviews.recording.built_in import DEPLOYMENTS, JOBS, REPLICAS
from tests.reviews.recording.scene import ALICE, Kept, Place, Scene, controller

OF = {case.name: case for case in CASES}
STATEFUL_SETS = controller("statefulset-controller")
SMUGGLED = "-of-the-cluster"


def case_of(place: Place) -> Case:
    """The case that a scene is named after."""
    return OF[place.space.removesuffix(SMUGGLED)]


def applied(place: Place) -> None:
    """The workload with all of its pods."""
    case = case_of(place)
    place.apply(*filter(lambda file: file.exists(), (case.beside, case.file)))
    place.running(case.pods)


def scaled(place: Place) -> None:
    """The workload, and more of it."""
    applied(place)
    case = case_of(place)
    assert case.scaled
    place.kubectl("scale", f"{case.resource}/{case.workload}", f"--replicas={case.scaled[0]}")


def suspended(place: Place) -> None:
    """A set that somebody holds."""
    applied(place)
    place.kubectl("patch", "jobset/set", "--type=merge", '--patch={"spec":{"suspend":true}}')


def changed(place: Place) -> None:
    """A model that gets another image."""
    applied(place)
    place_of_image = "/spec/predictor/containers/0/image"
    patch = [
        {"op": "replace", "path": place_of_image, "value": "registry.example.com/team/model:1"}
    ]
    command = ("patch", "inferenceservice/model", "--type=json", f"--patch={json.dumps(patch)}")
    place.kubectl(*command)


def smuggled(place: Place) -> None:
    """A workload that is fine but for what its operator gets from elsewhere."""
    place.apply(case_of(place).smuggled)


def scene(name: str, play: Callable[[Place], None], *keeps: Kept, smuggles: bool = False) -> Scene:
    """A scene of the case of this name."""
    case = OF[name]
    space = f"{name}{SMUGGLED}" if smuggles else name
    return Scene(space, play, keeps, (case.operator, *case.others))


TRAINING, JOBSETS, RAY, LWS, MPI, TRAINER, ARGO, KSERVE = (
    OF[name].operator.user
    for name in (
        "pytorchjob",
        "jobset",
        "raycluster",
        "leaderworkerset",
        "mpijob",
        "trainjob",
        "workflow",
        "inferenceservice",
    )
)

SCENES = (
    scene(
        "pytorchjob",
        scaled,
        Kept("CREATE", "PyTorchJob", ALICE),
        Kept("CREATE", "Pod", TRAINING, text="train-master-0"),
        Kept("CREATE", "Pod", TRAINING, text='"name":"init-pytorch"', by="training-operator-gpu"),
        Kept("UPDATE", "Scale", ALICE, "scale"),
    ),
    scene(
        "jobset",
        suspended,
        Kept("CREATE", "JobSet", ALICE),
        Kept("CREATE", "Job", JOBSETS, text='"name":"proxy"'),
        Kept("CREATE", "Pod", JOBS, text='"name":"proxy"'),
        Kept("UPDATE", "JobSet", ALICE),
        Kept("UPDATE", "Job", JOBSETS, text='"suspend":true', by="jobset-suspends"),
    ),
    scene(
        "raycluster",
        applied,
        Kept("CREATE", "RayCluster", ALICE),
        Kept("CREATE", "Pod", RAY, text='"name":"ray-head"'),
        Kept("CREATE", "Pod", RAY, text='"nvidia.com/gpu"', by="kuberay-operator-gpu"),
    ),
    scene(
        "leaderworkerset",
        scaled,
        Kept("CREATE", "LeaderWorkerSet", ALICE),
        Kept("CREATE", "StatefulSet", LWS),
        Kept("CREATE", "Pod", STATEFUL_SETS),
        Kept("CREATE", "StatefulSet", LWS, text='"nvidia.com/gpu"', by="lws-gpu"),
        Kept("CREATE", "Pod", STATEFUL_SETS, text='"nvidia.com/gpu"', by="statefulset-gpu"),
        Kept("UPDATE", "Scale", ALICE, "scale"),
        Kept("UPDATE", "StatefulSet", LWS, text='"replicas":3'),
    ),
    scene(
        "mpijob",
        applied,
        Kept("CREATE", "MPIJob", ALICE),
        Kept("CREATE", "Pod", MPI),
        Kept("CREATE", "Job", MPI),
        Kept("CREATE", "Pod", JOBS),
    ),
    scene(
        "trainjob",
        applied,
        Kept("CREATE", "TrainingRuntime", ALICE),
        Kept("CREATE", "TrainJob", ALICE),
        Kept("CREATE", "JobSet", TRAINER),
        Kept("CREATE", "Job", JOBSETS),
        Kept("CREATE", "Pod", JOBS),
    ),
    scene(
        "trainjob",
        smuggled,
        Kept("CREATE", "TrainJob", ALICE),
        Kept("CREATE", "JobSet", TRAINER, by="trainer-privileged"),
        smuggles=True,
    ),
    scene(
        "workflow",
        applied,
        Kept("CREATE", "Workflow", ALICE),
        Kept("CREATE", "Pod", ARGO),
        Kept("UPDATE", "Workflow", ARGO),
    ),
    scene(
        "workflow",
        smuggled,
        Kept("CREATE", "Workflow", ALICE),
        Kept("CREATE", "Pod", ARGO, by="argo-privileged"),
        smuggles=True,
    ),
    scene(
        "inferenceservice",
        changed,
        Kept("CREATE", "InferenceService", ALICE),
        Kept("CREATE", "Deployment", KSERVE),
        Kept("CREATE", "ReplicaSet", DEPLOYMENTS),
        Kept("CREATE", "Pod", REPLICAS),
        Kept("UPDATE", "InferenceService", KSERVE),
        Kept("UPDATE", "InferenceService", ALICE, text="team/model:1", by="alice-image"),
        Kept("UPDATE", "Deployment", KSERVE, text="team/model:1"),
    ),
    scene(
        "inferenceservice",
        smuggled,
        Kept("CREATE", "InferenceService", ALICE),
        Kept("CREATE", "Deployment", KSERVE, by="kserve-privileged"),
        smuggles=True,
    ),
)
