"""Scenes of the built-in controllers, and of what people do to the objects that these look after."""

from __future__ import annotations

import json

import yaml

from tests.e2e.objects import Json
from tests.e2e.operators.played import succeed
from tests.reviews.recording.scene import ALICE, WORKLOADS, Kept, Place, Scene, controller

DEPLOYMENTS = controller("deployment-controller")
REPLICAS = controller("replicaset-controller")
AUTOSCALER = controller("horizontal-pod-autoscaler")
COLLECTOR = controller("generic-garbage-collector")
JOBS = controller("job-controller")
CRON_JOBS = controller("cronjob-controller")
NODE = "system:node:node-a"
RESIZER = controller("vpa-updater")
AUTOSCALED = Kept("UPDATE", "Scale", AUTOSCALER, "scale")
TAKEN_UP = Kept("UPDATE", "Pod", REPLICAS, text='"app":"bare"', by="replicaset-controller-adopts")
RESIZED = {"limits": {"cpu": "500m", "memory": "64Mi"}, "requests": {"cpu": "500m"}}


def rollout(place: Place) -> None:
    """A Deployment through all that people and controllers do to one."""
    place.apply(WORKLOADS / "deployment.yaml")
    place.running(2)
    place.kubectl("scale", "deployment/web", "--replicas=3")
    place.kubectl("label", "deployment/web", "example.com/tier=a")
    place.kubectl("set", "image", "deployment/web", "main=registry.example.com/team/web:2")
    place.items("replicasets", 2)
    place.kubectl("rollout", "restart", "deployment/web")
    place.items("replicasets", 3)
    place.apply(WORKLOADS / "autoscaler.yaml")
    place.seen(AUTOSCALED)
    place.kubectl("delete", "deployment/web", "--cascade=orphan")


ROLLOUT = (
    Kept("CREATE", "Deployment", ALICE),
    Kept("CREATE", "ReplicaSet", DEPLOYMENTS),
    Kept("CREATE", "Pod", REPLICAS),
    Kept("UPDATE", "Scale", ALICE, "scale"),
    Kept("UPDATE", "Deployment", ALICE, text='"example.com/tier":"a"', by="alice-label"),
    Kept("UPDATE", "Deployment", ALICE, text="team/web:2", by="alice-image"),
    Kept("UPDATE", "ReplicaSet", DEPLOYMENTS),
    Kept("UPDATE", "Deployment", ALICE, text="kubernetes.io/restartedAt", by="alice-restart"),
    AUTOSCALED,
    Kept("UPDATE", "ReplicaSet", COLLECTOR),
    Kept("UPDATE", "Deployment", COLLECTOR),
)


def adopted(place: Place) -> None:
    """A ReplicaSet of nobody takes up a Pod, and lets go of one."""
    document = yaml.safe_load((WORKLOADS / "pod.yaml").read_text("utf-8"))
    document["metadata"]["labels"] = {"app": "bare"}
    place.create(document)
    place.apply(WORKLOADS / "replicaset.yaml")
    place.seen(TAKEN_UP)
    place.kubectl("scale", "replicaset/bare", "--replicas=2")
    place.items("pods", 2)
    place.kubectl("label", "pod/notebook", "app=other", "--overwrite")


ADOPTED = (
    Kept("CREATE", "Pod", ALICE),
    Kept("CREATE", "ReplicaSet", ALICE),
    TAKEN_UP,
    Kept("UPDATE", "Scale", ALICE, "scale"),
    Kept("UPDATE", "Pod", REPLICAS, text='"app":"other"', by="replicaset-controller-releases"),
)


def batch(place: Place) -> None:
    """A CronJob that its schedule runs, and somebody by hand."""
    place.apply(WORKLOADS / "cronjob.yaml")
    for pod in place.running(3):
        succeed(place.bed, pod)
    place.kubectl("patch", "cronjob/report", "--type=merge", '--patch={"spec":{"suspend":true}}')
    place.kubectl("create", "job", "now", "--from=cronjob/report")
    place.kubectl("patch", "job/now", "--type=merge", '--patch={"spec":{"suspend":true}}')


BATCH = (
    Kept("CREATE", "CronJob", ALICE),
    Kept("CREATE", "Job", CRON_JOBS),
    Kept("CREATE", "Pod", JOBS),
    Kept("UPDATE", "Pod", JOBS),
    Kept("UPDATE", "CronJob", ALICE),
    Kept("CREATE", "Job", ALICE),
    Kept("UPDATE", "Job", ALICE),
)


def sets(place: Place) -> None:
    """The other built-in kinds."""
    files = ("statefulset", "daemonset", "replicationcontroller")
    place.apply(*(WORKLOADS / f"{each}.yaml" for each in files))
    place.running(4)
    place.kubectl("scale", "statefulset/store", "--replicas=2")


SETS = (
    Kept("CREATE", "StatefulSet", ALICE),
    Kept("CREATE", "Pod", controller("statefulset-controller")),
    Kept("UPDATE", "Scale", ALICE, "scale"),
    Kept("CREATE", "DaemonSet", ALICE),
    Kept("CREATE", "Pod", controller("daemon-set-controller")),
    Kept("CREATE", "ReplicationController", ALICE),
    Kept("CREATE", "Pod", controller("replication-controller")),
)


def pods(place: Place) -> None:
    """A Pod of somebody's own, its subresources, and what kubelets send."""
    place.apply(WORKLOADS / "pod.yaml")
    resize = {"spec": {"containers": [{"name": "main", "resources": RESIZED}]}}
    patch = ("patch", "pod/notebook", f"--patch={json.dumps(resize)}", "--subresource=resize")
    place.kubectl(*patch)
    place.kubectl(*patch[:2], patch[2].replace("500m", "750m"), patch[3], user=RESIZER)
    place.kubectl("debug", "pod/notebook", "--image=registry.example.com/team/debug:1")
    place.kubectl("annotate", "pod/notebook", "example.com/seen=true", user=NODE)
    place.kubectl("set", "image", "pod/notebook", "main=registry.example.com/team/web:1")
    node = json.loads(place.bed.gate.kubectl("get", "node/node-a", "--output=json").stdout)
    place.create(mirror(node["metadata"]["uid"]), user=NODE)


def mirror(uid: str) -> Json:
    """What a kubelet sends for a pod of a file on its node."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": "node-a", "uid": uid, "controller": True}
    container = {"name": "main", "image": "registry.example.com/team/static:1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "static-node-a",
            "annotations": {"kubernetes.io/config.mirror": uid},
            "ownerReferences": [owner],
        },
        "spec": {
            "nodeName": "node-a",
            "enableServiceLinks": True,
            "automountServiceAccountToken": False,
            "containers": [container],
        },
    }


PODS = (
    Kept("CREATE", "Pod", ALICE),
    Kept("UPDATE", "Pod", ALICE, "resize"),
    Kept("UPDATE", "Pod", RESIZER, "resize"),
    Kept("UPDATE", "Pod", ALICE, "ephemeralcontainers"),
    Kept("UPDATE", "Pod", NODE),
    Kept("UPDATE", "Pod", ALICE, text="team/web:1", by="alice-image"),
    Kept("CREATE", "Pod", NODE),
)

SCENES = (
    Scene("rollout", rollout, ROLLOUT),
    Scene("adopted", adopted, ADOPTED),
    Scene("batch", batch, BATCH),
    Scene("sets", sets, SETS),
    Scene("pods", pods, PODS),
)
