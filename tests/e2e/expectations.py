"""What policies/platform.yaml promises of every pod, checked with no code of podgate."""

from __future__ import annotations

from collections.abc import Iterator

from tests.e2e.objects import Json, at, pods_in

PROMISED_MAIN = {
    "workingDir": "/workspace",
    "command": ["/bin/run", "--watch"],
    "args": ["--log-level=info"],
}
PROMISED_POD = {
    "nodeSelector": {"run.ai/type": "cpu"},
    "terminationGracePeriodSeconds": 45,
    "securityContext": {"runAsUser": 1000, "runAsNonRoot": True},
}
SPOT = {"key": "example.com/spot", "operator": "Exists", "effect": "NoSchedule"}
DATASETS = {
    "name": "datasets",
    "nfs": {"server": "nfs.example.com", "path": "/exports/datasets", "readOnly": True},
}
MOUNT = {"name": "datasets", "mountPath": "/datasets", "readOnly": True}


def lacking(stored: Json, pods: int) -> list[str]:
    """What the stored object lacks of what is promised, at each of its `pods` places."""
    found = list(pods_in(stored))
    complaints = [f"{place}: {each}" for place, *pod in found for each in lacking_in(*pod)]
    if len(found) != pods:
        complaints.append(f"{len(found)} pods instead of {pods}")
    if at(stored, "metadata.labels.priorityClassName") != "low":
        complaints.append("no priority class label")
    return complaints


def lacking_in(metadata: Json, spec: Json) -> Iterator[str]:
    """What one pod lacks."""
    for key in ("containers", "initContainers"):
        for container in spec.get(key, ()):
            if container.get("imagePullPolicy") != "Always":
                yield f"{container['name']} has no imagePullPolicy Always"
    main = spec["containers"][0]
    for key, value in PROMISED_MAIN.items():
        if main.get(key) != value:
            yield f"{key} is {main.get(key)}"
    for key, promised in PROMISED_POD.items():
        if spec.get(key) != promised:
            yield f"{key} is {spec.get(key)}"
    variables = {each["name"]: each.get("value") for each in main.get("env", ())}
    if variables.get("CLUSTER") != "e2e" or "OMP_NUM_THREADS" not in variables:
        yield f"env is {variables}"
    for place in ("requests.cpu", "requests.memory", "limits.cpu", "limits.memory"):
        if at(main, f"resources.{place}") is None:
            yield f"no {place}"
    if SPOT not in spec.get("tolerations", ()):
        yield f"tolerations are {spec.get('tolerations')}"
    if DATASETS not in spec.get("volumes", ()):
        yield f"volumes are {spec.get('volumes')}"
    if MOUNT not in main.get("volumeMounts", ()):
        yield f"mounts are {main.get('volumeMounts')}"
    if metadata.get("labels", {}).get("example.com/managed") != "true":
        yield f"labels are {metadata.get('labels')}"
