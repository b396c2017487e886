"""The scene of those who pass for a controller, by what they write or by a name that is almost right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.e2e.objects import Json
from tests.e2e.operators.cases import CASES
from tests.reviews.recording.built_in import DEPLOYMENTS, JOBS, REPLICAS
from tests.reviews.recording.scene import ALICE, WORKLOADS, Kept, Place, Scene, controller

SPACE = "forged"
OWN = f"system:serviceaccount:{SPACE}:default"
TRAINING = next(case.operator.user for case in CASES if case.name == "pytorchjob")
KSERVE = next(case.operator.user for case in CASES if case.name == "inferenceservice")
MANAGER = "system:kube-controller-manager"
IMAGE = "registry.example.com/team/web:1"


@dataclass(frozen=True, slots=True)
class Forgery:
    """What `user` creates, with `owner` (None: nobody) as the controller that has made it."""

    name: str
    user: str
    owner: tuple[str, str] | None
    kind: str = "Pod"
    controls: bool = True

    def kept(self) -> Kept:
        """The review of it."""
        by = self.user.rpartition(":")[2]
        return Kept("CREATE", self.kind, self.user, text=f'"{self.name}"', by=f"{by}-{self.name}")

    def document(self, owners: dict[str, Json]) -> Json:
        """What is sent; an owner that is not there has a uid all the same."""
        metadata: dict[str, Any] = {"name": self.name, "labels": {"app": "forged"}}
        if self.owner is not None:
            version, kind = self.owner
            found = owners.get(
                kind, {"name": "model", "uid": "00000000-0000-4000-8000-000000000000"}
            )
            owner = {"apiVersion": version, "kind": kind, "name": found["name"]}
            metadata["ownerReferences"] = [
                {**owner, "uid": found["uid"], "controller": self.controls}
            ]
        version, spec = BODIES[self.kind]
        return {"apiVersion": version, "kind": self.kind, "metadata": metadata, "spec": spec}


POD: Json = {"restartPolicy": "Never", "containers": [{"name": "main", "image": IMAGE}]}
LASTING: Json = {"containers": [{"name": "main", "image": IMAGE}]}
SELECTED: Json = {
    "replicas": 1,
    "selector": {"matchLabels": {"app": "other"}},
    "template": {"metadata": {"labels": {"app": "other"}}, "spec": LASTING},
}
BODIES: dict[str, tuple[str, Json]] = {
    "Pod": ("v1", POD),
    "Job": ("batch/v1", {"template": {"spec": POD}}),
    "ReplicaSet": ("apps/v1", SELECTED),
    "Deployment": ("apps/v1", SELECTED),
}
SET = ("apps/v1", "ReplicaSet")
MODEL = ("serving.kserve.io/v1beta1", "InferenceService")

FORGERIES = (
    Forgery("owned", ALICE, SET),
    Forgery("owned-loosely", ALICE, SET, controls=False),
    Forgery("owned-by-model", ALICE, MODEL),
    Forgery("owned-by-stranger", ALICE, ("example.com/v1", "Thing")),
    Forgery("owned-by-own-account", OWN, SET),
    Forgery("same-name-here", f"system:serviceaccount:{SPACE}:replicaset-controller", SET),
    Forgery("name-and-more", controller("replicaset-controller-2"), SET),
    Forgery("name-without-prefix", "replicaset-controller", SET),
    Forgery("name-in-capitals", controller("ReplicaSet-Controller"), SET),
    Forgery("true-name-no-owner", REPLICAS, None),
    Forgery("true-name-other-owner", JOBS, SET),
    Forgery("operator-other-owner", TRAINING, SET),
    Forgery("manager", MANAGER, SET),
    Forgery("set-by-person", ALICE, ("apps/v1", "Deployment"), "ReplicaSet"),
    Forgery("set-by-controller", DEPLOYMENTS, ("apps/v1", "Deployment"), "ReplicaSet"),
    Forgery("model-by-person", ALICE, MODEL, "Deployment"),
    Forgery("model-by-account", OWN, MODEL, "Deployment"),
    Forgery("model-by-operator", KSERVE, MODEL, "Deployment"),
    Forgery("job-by-person", ALICE, ("batch/v1", "CronJob"), "Job"),
)


def forged(place: Place) -> None:
    """Everybody tries, then the true controller does what no exemption is for."""
    place.apply(WORKLOADS / "deployment.yaml", WORKLOADS / "cronjob.yaml")
    pod = f"pod/{place.running(2)[0]['metadata']['name']}"
    owners = {
        kind: place.items(kind.lower())[0]["metadata"]
        for kind in ("Deployment", "ReplicaSet", "CronJob")
    }
    for each in FORGERIES:
        place.create(each.document(owners), user=each.user)
    place.kubectl("set", "image", pod, "main=registry.example.com/team/evil:1", user=REPLICAS)
    place.kubectl("debug", pod, "--image=registry.example.com/team/evil:1", user=REPLICAS)
    place.kubectl("scale", "deployment/web", "--replicas=3", user=DEPLOYMENTS)


SCENES = (
    Scene(
        SPACE,
        forged,
        (
            *(each.kept() for each in FORGERIES),
            Kept("UPDATE", "Pod", REPLICAS, text="team/evil:1", by="replicaset-controller-image"),
            Kept("UPDATE", "Pod", REPLICAS, "ephemeralcontainers"),
            Kept("UPDATE", "Scale", DEPLOYMENTS, "scale"),
        ),
    ),
)
