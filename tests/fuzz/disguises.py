"""Ways to send a violation so that it might pass for something else; none of them excuses it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.fuzz.places import Place, at
from tests.fuzz.ways import Breach, Way

NAMESPACE = "team"
ALICE = "alice@example.com"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
TENANTS = (
    ALICE,
    "",
    "system:serviceaccount:team:default",
    "system:serviceaccount:team:deployment-controller",
    "system:serviceaccount:team:replicaset-controller",
    "system:serviceaccount:team:training-operator",
    "system:serviceaccount:team-b:controller",
    "system:serviceaccount:kube-system-team:job-controller",
    "SYSTEM:SERVICEACCOUNT:KUBE-SYSTEM:REPLICASET-CONTROLLER",
    "system:serviceaccount:kube-system:replicaset-controller2",
    " system:kube-controller-manager",
    "system:kube-controller-manager:x",
    "system:node:node-a",
    "system:evil",
    "kube-controller-manager",
)
OWNERS = (
    "apps/v1 Deployment",
    "apps/v1 ReplicaSet",
    "apps/v1 StatefulSet",
    "batch/v1 Job",
    "batch/v1 CronJob",
    "kubeflow.org/v1 PyTorchJob",
    "ray.io/v1 RayCluster",
    "jobset.x-k8s.io/v1alpha2 JobSet",
    "serving.kserve.io/v1beta1 InferenceService",
    "argoproj.io/v1alpha1 Workflow",
    "apps.nvidia.com/v1alpha1 NIMService",
    "trainer.kubeflow.org/v1alpha1 TrainJob",
    "grove.io/v1alpha1 PodClique",
    "v1 Node",
    "example.com/v1 Nobody",
)


@dataclass(slots=True)
class Attempt:
    """One object on its way: what is sent, and what it was made of."""

    place: Place
    breach: Breach
    way: Way
    target: tuple[str, int]
    base: Any
    object: Any
    old: Any = None
    user: str = ALICE
    groups: tuple[str, ...] = ("system:authenticated",)
    manager: str = "kubectl-client-side-apply"
    dry_run: bool = False
    subresource: str = ""
    disguises: list[str] = field(default_factory=list)
    harmless: bool = False

    @property
    def operation(self) -> str:
        """CREATE, or UPDATE where there is an old object."""
        return "CREATE" if self.old is None else "UPDATE"


def pod_of(place: Place, document: Any) -> Any:
    """The pod spec, or what stands for one, at the place."""
    node = at(document, place.slot)
    return node["spec"] if place.what == "template" else node


def container_at(attempt: Attempt, document: Any, target: tuple[str, int]) -> Any:
    """The container that is meant: the place itself, or one of a list."""
    key, index = target
    pod = pod_of(attempt.place, document)
    return pod if key == "" else pod[key][index]


def metadata_of(document: Any) -> Any:
    """The metadata of an object."""
    return document.setdefault("metadata", {})


def annotate(document: Any, key: str, value: str) -> None:
    """Set an annotation of the object."""
    metadata = metadata_of(document)
    metadata["annotations"] = {**(metadata.get("annotations") or {}), key: value}


def name_later(attempt: Attempt, random: Random) -> bool:
    """Leave the name to the API server."""
    if attempt.old is not None or attempt.place.kind.endswith("Cluster"):
        return False
    metadata = metadata_of(attempt.object)
    metadata["generateName"] = f"{metadata.pop('name', 'a')}-"
    return True


def forge_owner(attempt: Attempt, random: Random) -> bool:
    """Claim to be made by a controller of something else, as anybody may write it."""
    owner = random.choice(OWNERS)
    version, kind = owner.split()
    reference = {
        "apiVersion": version,
        "kind": kind,
        "name": "owner",
        "uid": "11111111-1111-4111-8111-111111111111",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    for document in filter(None, (attempt.object, random.choice((None, attempt.old)))):
        metadata_of(document)["ownerReferences"] = [reference]
    attempt.user = random.choice(TENANTS)
    return True


def forge_user(attempt: Attempt, random: Random) -> bool:
    """Come as somebody with a name that is almost a controller's."""
    attempt.user = random.choice(TENANTS)
    attempt.groups = random.choice(
        (("system:masters",), ("system:serviceaccounts",), (), ("system:nodes",))
    )
    if random.random() < 0.3 and attempt.breach.holds is None:  # nobody completes mirror pods
        annotate(attempt.object, "kubernetes.io/config.mirror", "a")
    return True


def lie_applied(attempt: Attempt, random: Random) -> bool:
    """An annotation of client-side apply that says something else."""
    said = random.choice((json.dumps(attempt.base), json.dumps(attempt.object), "{", "null", "{}"))
    annotate(attempt.object, LAST_APPLIED, said)
    if attempt.old is not None and random.random() < 0.5:
        annotate(attempt.old, LAST_APPLIED, said)
    return True


def lie_managed(attempt: Attempt, random: Random) -> bool:
    """Entries of managedFields that give the violation to somebody else."""
    manager = random.choice(("kubelet", "kube-controller-manager", attempt.manager, ""))
    entry = {
        "manager": manager,
        "operation": random.choice(("Apply", "Update")),
        "apiVersion": attempt.object["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": random.choice(({}, {"f:spec": {}}, {"f:metadata": {"f:labels": {}}})),
    }
    metadata_of(attempt.object)["managedFields"] = [entry]
    attempt.manager = random.choice(("kubectl", "kubectl-patch", "kubectl-edit", "argocd", manager))
    return True


def exclude(attempt: Attempt, random: Random) -> bool:
    """The annotation that leaves default items out names everything there is."""
    keys = ["*", "evil", "EVIL", "MODE", "main", "example.com/fpga"]
    said = random.choice(
        (
            {attempt.breach.field: keys},
            {attempt.breach.field.rpartition(".")[0]: keys},
        )
    )
    annotate(attempt.object, "podgate.dev/exclude", json.dumps(said))
    return True


def steer(attempt: Attempt, random: Random) -> bool:
    """Name another container as the one that counts."""
    annotate(attempt.object, "kubectl.kubernetes.io/default-container", "side")
    if attempt.place.what == "template" and attempt.place.slot:
        node = at(attempt.object, attempt.place.slot)
        annotate(node, "kubectl.kubernetes.io/default-container", "side")
    return True


def try_dry(attempt: Attempt, random: Random) -> bool:
    """Only ask what would happen."""
    attempt.dry_run = True
    return True


def update(attempt: Attempt, random: Random) -> bool:
    """Change a compliant object into this one."""
    attempt.old = copy.deepcopy(attempt.base)
    if random.random() < 0.2:
        metadata_of(attempt.object)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        metadata_of(attempt.object)["finalizers"] = ["example.com/kept"]
        attempt.old["metadata"] |= {
            key: attempt.object["metadata"][key] for key in ("deletionTimestamp", "finalizers")
        }
    return True


def broken(attempt: Attempt, target: tuple[str, int], random: Random) -> Any:
    """The compliant object with the same violation in another container."""
    document = copy.deepcopy(attempt.base)
    attempt.way.apply(container_at(attempt, document, target), random)
    return document


def move(attempt: Attempt, random: Random) -> bool:
    """The violation was in another container before."""
    key, index = attempt.target
    if attempt.way.of_pod or attempt.breach.total or key == "":
        return False
    others = range(len(pod_of(attempt.place, attempt.base).get(key) or ()))
    other = next((each for each in others if each != index), None)
    if other is None:
        return False
    attempt.old = broken(attempt, (key, other), random)
    return True


def rename(attempt: Attempt, random: Random) -> bool:
    """The violation was in a container of another name before."""
    if attempt.way.of_pod or attempt.breach.total or attempt.target[0] == "":
        return False
    if attempt.breach.field in ("environmentVariables",):
        return False  # an item of the pod, whichever container has it
    attempt.old = copy.deepcopy(attempt.object)
    container = container_at(attempt, attempt.object, attempt.target)
    if "name" not in container:
        attempt.old = None
        return False
    container["name"] = "renamed"
    return True


def touch(attempt: Attempt, random: Random) -> bool:
    """The violation was there before, and the container does something else now."""
    if attempt.way.of_pod or not attempt.breach.field.startswith("security."):
        return False
    offers = attempt.place.containers.get(attempt.target[0], frozenset())
    if not {"args", "env"} <= offers:
        return False
    attempt.old = copy.deepcopy(attempt.object)
    container = container_at(attempt, attempt.object, attempt.target)
    if random.random() < 0.5:
        container["args"] = ["--evil"]
    else:
        container["env"] = [{"name": "EVIL", "value": "1"}]
    return True


UNGROWN = {
    "compute.migProfile": "its value is a name, which stays",
    "total.gpuDevices": "without a bound on replicas it was infinite before",
}
"""Fields whose value does not grow with the amount, with the reason."""


def grow(attempt: Attempt, random: Random) -> bool:
    """There was less of it before, but too much already."""
    if not attempt.breach.total or attempt.way.spelling != "plain" or attempt.way.of_pod:
        return False
    if attempt.breach.field in UNGROWN:
        return False
    attempt.old = copy.deepcopy(attempt.object)
    container = container_at(attempt, attempt.object, attempt.target)
    for amounts in container["resources"].values():
        for key, value in amounts.items():
            digits = str(value).rstrip("GMim")
            amounts[key] = f"{int(digits) + 100}{str(value)[len(digits) :]}"
    return True


def wrap(attempt: Attempt, random: Random) -> bool:
    """Put it into an AppWrapper, or into several."""
    if attempt.place.cluster or attempt.subresource or attempt.breach.total:
        return False
    for level in range(random.randrange(1, 4)):
        attempt.object = wrapped(attempt.object, level)
        if attempt.old is not None:
            attempt.old = wrapped(attempt.old, level)
    return True


def wrapped(document: Any, level: int) -> Any:
    """An AppWrapper around an object."""
    return {
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "metadata": {"name": f"wrapper-{level}", "namespace": NAMESPACE},
        "spec": {"components": [{"template": document}]},
    }


def add_nothing(attempt: Attempt, random: Random) -> bool:
    """Nulls and empty values beside the violation."""
    pod = pod_of(attempt.place, attempt.object)
    offers = attempt.place.pod
    for key, value in (
        ("volumes", random.choice((None, []))),
        ("tolerations", random.choice((None, []))),
        ("imagePullSecrets", []),
        ("securityContext", random.choice((None, {}))),
        ("nodeSelector", random.choice((None, {}))),
        ("affinity", {}),
    ):
        known = any(each.partition(".")[0] == key for each in offers)
        if known and key not in pod and random.random() < 0.5:
            pod[key] = value
    for each in pod.get("containers") or ():
        for key in ("env", "ports", "volumeMounts", "args"):
            if key not in each and random.random() < 0.3:
                each[key] = random.choice((None, []))
    return True


def reorder(attempt: Attempt, random: Random) -> bool:
    """Other orders of keys, containers and volumes."""
    pod = pod_of(attempt.place, attempt.object)
    for key in ("initContainers", "volumes", "tolerations"):
        if isinstance(pod.get(key), list) and key != attempt.target[0]:
            random.shuffle(pod[key])
    attempt.object = shuffled(attempt.object, random)
    return True


def shuffled(value: Any, random: Random) -> Any:
    """The same value with its maps in another order."""
    if isinstance(value, dict):
        keys = list(value)
        random.shuffle(keys)
        return {key: shuffled(value[key], random) for key in keys}
    if isinstance(value, list):
        return [shuffled(each, random) for each in value]
    return value


Disguise = Callable[[Attempt, Random], bool]
DISGUISES: dict[str, Disguise] = {
    "generate-name": name_later,
    "forged-owner": forge_owner,
    "forged-user": forge_user,
    "last-applied": lie_applied,
    "managed-fields": lie_managed,
    "exclude": exclude,
    "main-container": steer,
    "dry-run": try_dry,
    "update": update,
    "moved": move,
    "renamed": rename,
    "touched": touch,
    "grown": grow,
    "nothing-beside": add_nothing,
    "reordered": reorder,
    "wrapped": wrap,
}
HARMLESS = frozenset(DISGUISES) - {"exclude", "moved", "renamed", "touched", "grown"}
"""Disguises that a compliant object may have and stay compliant."""
OF_UPDATES = ("update", "moved", "renamed", "touched", "grown")
LAST = "wrapped"


def chosen(random: Random) -> Iterator[str]:
    """None to three disguises: at most one about what was before, wrapping at the end."""
    names = random.sample(list(DISGUISES), random.choice((0, 1, 1, 1, 2, 3)))
    updates = [each for each in names if each in OF_UPDATES][:1]
    yield from updates
    yield from (each for each in names if each not in OF_UPDATES and each != LAST)
    if LAST in names:
        yield LAST
