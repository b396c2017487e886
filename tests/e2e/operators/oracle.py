"""What policies/everything.yaml promises of a running pod, checked with no code of podgate."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tests.e2e.objects import Json, at
from tests.e2e.persistence import amount

IMAGES = {
    "registry.example.com/base/python:3.12",
    "registry.example.com/base/proxy:1",
    "registry.example.com/base/tools:1",
}
SPOT = {"key": "example.com/spot", "operator": "Exists", "effect": "NoSchedule"}
DATASETS = {
    "name": "datasets",
    "nfs": {"server": "nfs.example.com", "path": "/exports/datasets", "readOnly": True},
}
MOUNT = {"name": "datasets", "mountPath": "/datasets", "readOnly": True}
VOLUMES = {"emptyDir", "configMap", "secret", "projected", "downwardAPI", "nfs"}
HOST = ("hostIPC", "hostNetwork", "hostPID")
AMOUNTS = {
    "requests.cpu": ("0.05", "4"),
    "requests.memory": ("0", "8Gi"),
    "limits.cpu": ("0", "8"),
    "limits.memory": ("0", "16Gi"),
}


def lacking(
    pod: Json, main: str, added: Collection[str] = (), without: Collection[str] = ()
) -> list[str]:
    """What a pod lacks of what is promised of it, or has against it.

    `main` is the container that defaults are for; `added` are names of containers that the operator
    itself puts in, which nobody wrote: of those only what endangers others is asked. `without` is
    what the kind has no place for: `datasets`, and `users` of a whole pod.
    """
    spec = pod["spec"]
    containers = [*spec["containers"], *spec.get("initContainers", ())]
    ours = [each for each in containers if each["name"] not in added]
    theirs = [each for each in containers if each["name"] in added]
    mains = [each for each in ours if each["name"] == main]
    found = [*of_metadata(pod["metadata"]), *of_pod(spec)]
    found += [told for each in ours for told in (*of_container(each), *of_user(each, spec))]
    found += [told for each in (*ours, *theirs) for told in of_safety(each, spec)]
    found += [told for each in mains for told in of_main(each)]
    if "users" not in without:
        found += [told for each in theirs for told in of_user(each, spec)]
    if "datasets" not in without:
        found += [*of_datasets(spec), *(told for each in mains for told in of_mount(each))]
    if len(mains) != 1:
        found.append(f"containers are {[each['name'] for each in containers]}, none is {main}")
    return found


def of_metadata(metadata: Json) -> Iterator[str]:
    """Labels and annotations."""
    if metadata.get("labels", {}).get("example.com/managed") != "true":
        yield f"labels are {metadata.get('labels')}"
    if metadata.get("annotations", {}).get("example.com/contact") != "platform":
        yield f"annotations are {metadata.get('annotations')}"


def of_pod(spec: Json) -> Iterator[str]:
    """What stands once in a pod."""
    if spec["schedulerName"] != "default-scheduler":
        yield f"schedulerName is {spec['schedulerName']}"
    if spec.get("runtimeClassName"):
        yield f"runtimeClassName is {spec['runtimeClassName']}"
    if spec.get("nodeSelector", {}).get("run.ai/type") != "cpu":
        yield f"nodeSelector is {spec.get('nodeSelector')}"
    if not 0 < spec["terminationGracePeriodSeconds"] <= 120:
        yield f"terminationGracePeriodSeconds is {spec['terminationGracePeriodSeconds']}"
    if {"name": "registry"} not in spec.get("imagePullSecrets", ()):
        yield f"imagePullSecrets are {spec.get('imagePullSecrets')}"
    if SPOT not in spec.get("tolerations", ()):
        yield f"tolerations are {spec.get('tolerations')}"
    for volume in spec.get("volumes", ()):
        if not VOLUMES & set(volume):
            yield f"volume {volume} is of no allowed type"
    yield from (f"{each} is set" for each in HOST if spec.get(each))
    if at(spec, "securityContext.sysctls"):
        yield "sysctls are set"
    if 2000 not in (at(spec, "securityContext.supplementalGroups") or ()):
        yield f"securityContext is {spec.get('securityContext')}"


def of_container(container: Json) -> Iterator[str]:
    """What is promised of every container that somebody wrote."""
    name = container["name"]
    if container["image"] not in IMAGES:
        yield f"image of {name} is {container['image']}"
    if container.get("imagePullPolicy") != "Always":
        yield f"imagePullPolicy of {name} is {container.get('imagePullPolicy')}"
    if at(container, "securityContext.allowPrivilegeEscalation") is not False:
        yield f"{name} may gain privileges"


def of_safety(container: Json, spec: Json) -> Iterator[str]:
    """What must hold in every container, whoever put it there."""
    name = container["name"]
    own, pod = container.get("securityContext") or {}, spec.get("securityContext") or {}
    if own.get("privileged"):
        yield f"{name} is privileged"
    if at(own, "capabilities.add"):
        yield f"{name} adds capabilities"
    if own.get("procMount", "Default") != "Default":
        yield f"procMount of {name} is {own['procMount']}"
    if own.get("runAsNonRoot", pod.get("runAsNonRoot")) is not True:
        yield f"{name} may run as root"
    if at({**pod, **own}, "seccompProfile.type") != "RuntimeDefault":
        yield f"{name} has no seccomp profile"
    if any(each.get("hostPort") for each in container.get("ports", ())):
        yield f"{name} uses ports of the node"


def of_user(container: Json, spec: Json) -> Iterator[str]:
    """The user and group that a container runs as."""
    own, pod = container.get("securityContext") or {}, spec.get("securityContext") or {}
    for place in ("runAsUser", "runAsGroup"):
        found = own.get(place, pod.get(place))
        if found is None or found < 1000:
            yield f"{place} of {container['name']} is {found}"


def of_datasets(spec: Json) -> Iterator[str]:
    """The volume of the imposed asset."""
    if DATASETS not in spec.get("volumes", ()):
        yield f"volumes are {spec.get('volumes')}"


def of_mount(container: Json) -> Iterator[str]:
    """Where the main container finds it."""
    if MOUNT not in container.get("volumeMounts", ()):
        yield f"mounts are {container.get('volumeMounts')}"


def of_main(container: Json) -> Iterator[str]:
    """What is promised of the main container."""
    if container.get("workingDir") != "/workspace":
        yield f"workingDir is {container.get('workingDir')}"
    variables = {each["name"]: each.get("value") for each in container.get("env", ())}
    if variables.get("CLUSTER") != "e2e" or "OMP_NUM_THREADS" not in variables:
        yield f"env is {variables}"
    for place, (least, most) in AMOUNTS.items():
        found = amount(at(container, f"resources.{place}"))
        bounds = amount(least), amount(most)
        assert bounds[0] is not None
        assert bounds[1] is not None
        if found is None or not bounds[0] <= found <= bounds[1]:
            yield f"{place} is {at(container, f'resources.{place}')}"
    if not any(each["mountPath"] == "/dev/shm" for each in container.get("volumeMounts", ())):
        yield "no large /dev/shm"
