"""What a rule forbids, and the ways to do it all the same: the generator knows that each breaks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.fuzz.amounts import above, unreadable

Apply = Callable[[dict[str, Any], Random], None]
ALL = ("", "containers", "initContainers", "ephemeralContainers")
ORDINARY = ("", "containers")


@dataclass(frozen=True, slots=True)
class Way:
    """One way to break a rule; `needs` is what a place must offer, of a container or of the pod."""

    spelling: str
    needs: str
    apply: Apply
    of_pod: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Breach:
    """A rule as the body of a policy, the field it is about, and the ways to break it.

    `lists` are the containers that the rule binds. `total`: the rule is about a sum over the pod.
    `holds`: podgate may also write what is missing; the pod then holds it in the end.
    """

    field: str
    policy: Mapping[str, Any]
    ways: tuple[Way, ...]
    lists: tuple[str, ...] = ALL
    total: bool = False
    holds: Callable[[Any], bool] | None = None


def put(node: dict[str, Any], path: str, value: Any) -> None:
    """Set a value below maps that are made where they are missing."""
    *above_it, last = path.split(".")
    for step in above_it:
        inner = node.get(step)
        if not isinstance(inner, dict):
            inner = node[step] = {}
        node = inner
    node[last] = value


def add(node: dict[str, Any], key: str, *items: Any) -> None:
    """Append items to a list that is made where it is missing."""
    node[key] = [*(node.get(key) or ()), *items]


def sets(path: str, *values: Any, spelling: str = "plain", of_pod: bool = False) -> Way:
    """A way that sets one of some values; what it needs is the path without its last of three."""
    needs = ".".join(path.split(".")[:2])

    def apply(node: dict[str, Any], random: Random) -> None:
        put(node, path, random.choice(values))

    return Way(spelling, needs, apply, of_pod)


def adds(
    key: str, *items: Any, spelling: str = "plain", of_pod: bool = False, needs: str = ""
) -> Way:
    """A way that appends one of some items to a list; a tuple is several items at once."""

    def apply(node: dict[str, Any], random: Random) -> None:
        chosen = random.choice(items)
        add(node, key, *(chosen if isinstance(chosen, tuple) else (chosen,)))

    return Way(spelling, needs or key, apply, of_pod)


def volume(source: str, *values: Any, spelling: str = "plain", **more: Any) -> Way:
    """A way that adds a volume with a source."""

    def apply(node: dict[str, Any], random: Random) -> None:
        add(node, "volumes", {"name": "evil", source: random.choice(values), **more})

    return Way(spelling, f"volumes.[].{source}", apply, of_pod=True)


def context(name: str, *values: Any) -> tuple[Way, ...]:
    """Ways to set a field of a container's security context."""
    first = sets(f"securityContext.{name}", *values)
    return (first, both_levels(name, values[0], None))


def both_levels(name: str, bad: Any, good: Any) -> Way:
    """A container's own value with null beside it, as a CRD without pruning keeps it."""

    def apply(node: dict[str, Any], _: Random) -> None:
        node["securityContext"] = {"seLinuxOptions": None, name: bad, "windowsOptions": good}

    return Way("null", f"securityContext.{name}", apply)


def shared(name: str, bad: Any, good: Any) -> tuple[Way, ...]:
    """Ways to set a field that both pod and container have: overridden below, it counts too."""

    def above_containers(node: dict[str, Any], _: Random) -> None:
        put(node, f"securityContext.{name}", bad)
        for key in ("containers", "initContainers"):
            for each in node.get(key) or ():
                put(each, f"securityContext.{name}", good)

    needs = f"securityContext.{name.partition('.')[0]}"
    return (
        sets(f"securityContext.{name}", bad),
        sets(f"securityContext.{name}", bad, spelling="pod-level", of_pod=True),
        Way("pod-level", needs, above_containers, of_pod=True),
    )


def amounts(path: str, key: str, least: int, *, unit: str = "") -> tuple[Way, ...]:
    """Ways to ask for more than allowed, in every notation."""

    def plain(node: dict[str, Any], random: Random) -> None:
        put(
            node,
            path,
            {**(node_at(node, path) or {}), key: f"{least + random.randrange(60)}{unit}"},
        )

    def exotic(node: dict[str, Any], random: Random) -> None:
        scale = {"": 1, "Gi": 2**30}[unit]
        put(node, path, {**(node_at(node, path) or {}), key: above(least * scale, random)})

    def odd(node: dict[str, Any], random: Random) -> None:
        put(node, path, {**(node_at(node, path) or {}), key: unreadable(random)})

    return (
        Way("plain", path, plain),
        Way("amounts", path, exotic),
        Way("amounts", path, exotic),
        Way("unreadable", path, odd),
    )


def node_at(node: Any, path: str) -> Any:
    """What is below some maps, None where there is nothing."""
    for step in path.split("."):
        node = node.get(step) if isinstance(node, dict) else None
    return node


def tree(path: str, value: Any) -> dict[str, Any]:
    """A value below the sections of its dotted name."""
    for step in reversed(path.split(".")):
        value = {step: value}
    return {"rules": value}


def fixed(path: str, default: Any) -> dict[str, Any]:
    """A default that may not be edited."""
    return {"defaults": tree(path, default)["rules"], **tree(path, {"canEdit": False})}


EVIL = "registry.evil.example.com/miner:latest"
APP = "registry.example.com/app:1"
GPU = "nvidia.com/gpu"
CAPABILITIES = (["SYS_ADMIN"], ["ALL"], ["NET_BIND_SERVICE", "SYS_PTRACE"])
TOLERATION = {"key": "evil", "operator": "Exists", "effect": "NoSchedule"}
ENV = {"name": "EVIL", "value": "1"}
STORES = {
    "hostPath": ("hostPath", ({"path": "/"}, {"path": "/etc", "type": "Directory"})),
    "nfs": ("nfs", ({"server": "evil.example.com", "path": "/"},)),
    "pvc": ("persistentVolumeClaim", ({"claimName": "evil"},)),
    "configMapVolume": ("configMap", ({"name": "evil"},)),
    "secretVolume": ("secret", ({"secretName": "evil"},)),
    "emptyDirVolume": ("emptyDir", ({"medium": "Memory"}, {"sizeLimit": "9Gi"})),
}


def gpu_annotation(node: dict[str, Any], random: Random) -> None:
    """A part of a GPU by annotation of the pod."""
    metadata = node.setdefault("metadata", {})
    notes = metadata.get("annotations") or {}
    metadata["annotations"] = {**notes, "gpu-fraction": "0.5", "gpu-fraction-num-devices": "9"}


def claimed(node: dict[str, Any], _: Random) -> None:
    """Devices by a claim template that nobody can resolve here."""
    add(node, "resourceClaims", {"name": "g", "resourceClaimTemplateName": "gpus"})
    for each in (node.get("containers") or ())[:1]:
        put(each, "resources.claims", [{"name": "g"}])


def spread(node: dict[str, Any], _: Random) -> None:
    """Few GPUs in each of several containers, too many together."""
    for index in range(3):
        limits = {"limits": {GPU: "2"}}
        add(node, "containers", {"name": f"part-{index}", "image": APP, "resources": limits})


def claim_template(node: dict[str, Any], _: Random) -> None:
    """A claim that the set makes for each pod, which nothing mounts by name."""
    body = {
        "metadata": {"name": "evil"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Ti"}},
        },
    }
    add(node, "volumeClaimTemplates", body)


def repeated_env(node: dict[str, Any], _: Random) -> None:
    """A harmless variable, then the same name again."""
    add(node, "env", {"name": "MODE", "value": "fast"}, {"name": "MODE", "value": "evil"})


def leave_out_mode(node: dict[str, Any], _: Random) -> None:
    """No container has the locked variable any more."""
    for each in (node, *(node.get("containers") or ())):
        if isinstance(each.get("env"), list):
            each["env"] = [one for one in each["env"] if one.get("name") != "MODE"]


def has_mode(pod: Any) -> bool:
    """Whether some container has the locked variable as it has to be."""
    return any(
        {"name": "MODE", "value": "fast"} in (each.get("env") or ())
        for each in (pod, *(pod.get("containers") or ()))
    )


def leave_out_read_only(node: dict[str, Any], _: Random) -> None:
    """No container says that its file system is read-only."""
    for each in (*(node.get("containers") or ()), *(node.get("initContainers") or ())):
        (each.get("securityContext") or {}).pop("readOnlyRootFilesystem", None)


def is_read_only(pod: Any) -> bool:
    """Whether every container says so."""
    return all(
        (each.get("securityContext") or {}).get("readOnlyRootFilesystem") is True
        for each in (*(pod.get("containers") or ()), *(pod.get("initContainers") or ()))
    )


BREACHES: tuple[Breach, ...] = (
    Breach(
        "security.readOnlyRootFilesystem",
        fixed("security.readOnlyRootFilesystem", True),
        (Way("left-out", "containers", leave_out_read_only, of_pod=True),),
        holds=is_read_only,
    ),
    Breach(
        "environmentVariables",
        {
            "defaults": {
                "environmentVariables": {"instances": [{"name": "MODE", "value": "fast"}]}
            },
            **tree("environmentVariables", {"instances": {"locked": ["MODE"]}}),
        },
        (Way("left-out", "containers", leave_out_mode, of_pod=True),),
        ORDINARY,
        holds=has_mode,
    ),
    Breach("security.privileged", fixed("security.privileged", False), context("privileged", True)),
    Breach(
        "security.privileged",
        tree("security.privileged", {"blocked": True}),
        context("privileged", True),
    ),
    Breach(
        "security.allowPrivilegeEscalation",
        fixed("security.allowPrivilegeEscalation", False),
        context("allowPrivilegeEscalation", True),
    ),
    Breach(
        "security.readOnlyRootFilesystem",
        fixed("security.readOnlyRootFilesystem", True),
        context("readOnlyRootFilesystem", False),
    ),
    Breach(
        "security.procMount",
        tree("security.procMount", {"options": ["Default"]}),
        context("procMount", "Unmasked", "evil"),
    ),
    Breach(
        "security.runAsUid",
        tree("security.runAsUid", {"min": 1000}),
        shared("runAsUser", 0, 1000),
    ),
    Breach(
        "security.runAsUid",
        tree("security.runAsUid", {"blocked": True}),
        shared("runAsUser", 0, 0),
    ),
    Breach(
        "security.runAsGid", tree("security.runAsGid", {"min": 1}), shared("runAsGroup", 0, 1000)
    ),
    Breach(
        "security.runAsNonRoot",
        fixed("security.runAsNonRoot", True),
        shared("runAsNonRoot", False, True),
    ),
    Breach(
        "security.seccompProfileType",
        tree("security.seccompProfileType", {"options": ["RuntimeDefault", "Localhost"]}),
        shared("seccompProfile.type", "Unconfined", "RuntimeDefault"),
    ),
    Breach(
        "security.capabilities",
        tree("security.capabilities", {"options": ["NET_BIND_SERVICE"]}),
        (
            sets("securityContext.capabilities.add", *CAPABILITIES),
            sets(
                "securityContext.capabilities.add",
                ["sys_admin"],
                ["CAP_SYS_ADMIN"],
                ["cap_sys_admin"],
                ["all"],
                spelling="letter-case",
            ),
            sets(
                "securityContext.capabilities.add",
                ["NET_BIND_SERVICE", "NET_BIND_SERVICE", "SYS_ADMIN"],
                spelling="repeated",
            ),
        ),
    ),
    Breach(
        "security.hostPorts",
        tree("security.hostPorts", {"canEdit": False}),
        (
            adds("ports", {"containerPort": 80, "hostPort": 80}),
            adds(
                "ports",
                ({"containerPort": 80}, {"containerPort": 80, "hostPort": 80}),
                spelling="repeated",
            ),
        ),
    ),
    *(
        Breach(
            f"security.{field_name}",
            fixed(f"security.{field_name}", False),
            (sets(native, True, of_pod=True),),
        )
        for field_name, native in (
            ("hostNetwork", "hostNetwork"),
            ("hostPid", "hostPID"),
            ("hostIpc", "hostIPC"),
        )
    ),
    Breach(
        "security.hostNetwork",
        tree("security.hostNetwork", {"blocked": True}),
        (sets("hostNetwork", True, of_pod=True),),
    ),
    Breach(
        "security.sysctls",
        tree("security.sysctls", {"options": ["net.ipv4.tcp_syncookies"]}),
        (
            sets(
                "securityContext.sysctls",
                [{"name": "kernel.msgmax", "value": "1"}],
                [{"name": "net.ipv4.tcp_syncookies", "value": "1"}, {"name": "net.core.somaxconn"}],
                of_pod=True,
            ),
        ),
    ),
    Breach(
        "security.supplementalGroups",
        tree("security.supplementalGroups", {"options": ["2000"]}),
        (sets("securityContext.supplementalGroups", [0], [2000, 0], of_pod=True),),
    ),
    Breach(
        "security.serviceAccountName",
        tree("security.serviceAccountName", {"options": ["runner", "default"]}),
        (
            sets("serviceAccountName", "admin", "Runner", "runner ", of_pod=True),
            sets("serviceAccount", "admin", of_pod=True),
        ),
    ),
    Breach(
        "security.volumeTypes",
        tree("security.volumeTypes", {"options": ["emptyDir"]}),
        (
            volume("hostPath", {"path": "/"}),
            volume("csi", {"driver": "evil.example.com"}),
            volume("nfs", {"server": "a", "path": "/"}),
            volume("persistentVolumeClaim", {"claimName": "a"}),
            volume("image", {"reference": EVIL}),
            volume("iscsi", {"targetPortal": "a", "iqn": "b", "lun": 0}),
            volume("ephemeral", {"volumeClaimTemplate": {"spec": {"accessModes": ["a"]}}}),
            volume("hostPath", {}, spelling="empty"),
            volume("gitRepo", {}, spelling="empty"),
            volume("hostPath", {"path": "/"}, spelling="null", emptyDir=None),
            volume("hostPath", {"path": "/"}, spelling="repeated", emptyDir={}),
            Way("claim-template", "volumeClaimTemplates", claim_template, of_pod=True),
        ),
    ),
    *(
        Breach(
            f"storage.{name}",
            tree(f"storage.{name}", {"instances": {"canAdd": False}}),
            (
                volume(source, *values),
                volume(source, {}, spelling="empty"),
                volume(source, values[0], spelling="null", flocker=None),
                volume(source, values[0], spelling="repeated", azureDisk={"diskName": "a"}),
            ),
        )
        for name, (source, values) in STORES.items()
    ),
    Breach(
        "storage.hostPath.path",
        tree("storage.hostPath", {"attributes": {"path": {"options": ["/data"]}}}),
        (
            volume("hostPath", {"path": "/"}, {"path": "/data/.."}, {"path": "/data/"}),
            volume("hostPath", {"path": "/DATA"}, {"path": "/Data"}, spelling="letter-case"),
        ),
    ),
    Breach(
        "storage.emptyDirVolume.sizeLimit",
        tree("storage.emptyDirVolume", {"attributes": {"sizeLimit": {"max": "4Gi"}}}),
        (
            volume("emptyDir", {"sizeLimit": "5Gi"}, {"sizeLimit": "5368709120"}),
            Way(
                "amounts",
                "volumes.[].emptyDir",
                lambda node, random: add(
                    node,
                    "volumes",
                    {"name": "evil", "emptyDir": {"sizeLimit": above(5 * 2**30, random)}},
                ),
                of_pod=True,
            ),
            Way(
                "unreadable",
                "volumes.[].emptyDir",
                lambda node, random: add(
                    node,
                    "volumes",
                    {"name": "evil", "emptyDir": {"sizeLimit": unreadable(random)}},
                ),
                of_pod=True,
            ),
        ),
    ),
    Breach(
        "storage.emptyDirVolume.medium",
        tree("storage.emptyDirVolume", {"attributes": {"medium": {"canEdit": False}}}),
        (volume("emptyDir", {"medium": "Memory"}),),
    ),
    Breach(
        "image",
        tree("image", {"options": [APP]}),
        (
            sets("image", EVIL, "registry.example.com/app", "registry.example.com/app:2"),
            sets("image", "Registry.example.com/app:1", f"{APP} ", spelling="letter-case"),
        ),
    ),
    Breach(
        "imagePullPolicy",
        tree("imagePullPolicy", {"options": ["Always"]}),
        (
            sets("imagePullPolicy", "Never", "IfNotPresent"),
            sets("imagePullPolicy", "never", "ALWAYS", spelling="letter-case"),
        ),
    ),
    Breach(
        "imagePullSecrets",
        tree("imagePullSecrets", {"instances": {"canAdd": False}}),
        (adds("imagePullSecrets", {"name": "evil"}, of_pod=True),),
    ),
    Breach(
        "environmentVariables",
        tree("environmentVariables", {"instances": {"canAdd": False}}),
        (
            adds(
                "env", ENV, {"name": "A", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}
            ),
            adds("env", {"name": "EVIL"}, {"name": "EVIL", "value": ""}, spelling="empty"),
            adds("env", (ENV, ENV), spelling="repeated"),
        ),
        ORDINARY,
    ),
    Breach(
        "environmentVariables",
        {
            "defaults": {
                "environmentVariables": {"instances": [{"name": "MODE", "value": "fast"}]}
            },
            **tree("environmentVariables", {"instances": {"locked": ["MODE"]}}),
        },
        (
            adds("env", {"name": "MODE", "value": "evil"}),
            adds("env", {"name": "MODE"}, {"name": "MODE", "value": ""}, spelling="empty"),
            Way("repeated", "env", repeated_env),
        ),
        ORDINARY,
    ),
    Breach(
        "tolerations",
        tree("tolerations", {"instances": {"canAdd": False}}),
        (
            adds("tolerations", TOLERATION, {"operator": "Exists"}, of_pod=True),
            adds("tolerations", {"key": "evil"}, spelling="empty", of_pod=True),
            adds("tolerations", (TOLERATION, TOLERATION), spelling="repeated", of_pod=True),
        ),
    ),
    Breach(
        "tolerations.key",
        tree("tolerations", {"attributes": {"key": {"options": ["dedicated"]}}}),
        (
            adds("tolerations", TOLERATION, of_pod=True),
            adds(
                "tolerations",
                ({"key": "dedicated", "operator": "Exists"}, TOLERATION),
                spelling="repeated",
                of_pod=True,
            ),
            adds(
                "tolerations",
                {**TOLERATION, "key": "Dedicated"},
                spelling="letter-case",
                of_pod=True,
            ),
        ),
    ),
    Breach(
        "scheduling.nodeName",
        tree("scheduling.nodeName", {"blocked": True}),
        (sets("nodeName", "node-1", of_pod=True),),
    ),
    Breach(
        "scheduling.schedulerName",
        tree("scheduling.schedulerName", {"options": ["default-scheduler", "volcano"]}),
        (
            sets("schedulerName", "evil", of_pod=True),
            sets("schedulerName", "Volcano", spelling="letter-case", of_pod=True),
        ),
    ),
    Breach(
        "scheduling.runtimeClassName",
        tree("scheduling.runtimeClassName", {"options": ["gvisor"]}),
        (
            sets("runtimeClassName", "runc", of_pod=True),
            sets("runtimeClassName", "GVisor", spelling="letter-case", of_pod=True),
        ),
    ),
    Breach(
        "terminationGracePeriodSeconds",
        tree("terminationGracePeriodSeconds", {"max": 300}),
        (sets("terminationGracePeriodSeconds", 301, 9000000000, of_pod=True),),
    ),
    Breach(
        "workingDir",
        tree("workingDir", {"blocked": True}),
        (sets("workingDir", "/", "/work"),),
        ORDINARY,
    ),
    Breach(
        "command",
        tree("command", {"blocked": True}),
        (sets("command", ["evil"], ["sh", "-c", "evil"]),),
        ORDINARY,
    ),
    Breach("stdin", fixed("stdin", False), (sets("stdin", True),), ORDINARY),
    Breach(
        "compute.cpuCoreLimit",
        tree("compute.cpuCoreLimit", {"max": 4}),
        amounts("resources.limits", "cpu", 5),
        total=True,
    ),
    Breach(
        "compute.cpuMemoryLimit",
        tree("compute.cpuMemoryLimit", {"max": "8Gi"}),
        amounts("resources.limits", "memory", 9, unit="Gi"),
        total=True,
    ),
    Breach(
        "compute.cpuMemoryRequest",
        tree("compute.cpuMemoryRequest", {"max": "8Gi"}),
        amounts("resources.requests", "memory", 9, unit="Gi"),
        total=True,
    ),
    Breach(
        "compute.gpuDevicesRequest",
        tree("compute.gpuDevicesRequest", {"max": 4}),
        (
            *amounts("resources.limits", GPU, 5),
            *amounts("resources.requests", GPU, 5),
            *amounts("resources.limits", "nvidia.com/mig-1g.5gb", 5),
            Way("plain", "resourceClaims", claimed, of_pod=True),
        ),
        total=True,
    ),
    Breach(
        "compute.gpuDevicesRequest",
        tree("compute.gpuDevicesRequest", {"blocked": True}),
        amounts("resources.limits", GPU, 1),
        total=True,
    ),
    Breach(
        "total.gpuDevices",
        tree("total.gpuDevices", {"max": 4}),
        amounts("resources.limits", GPU, 5),
        total=True,
    ),
    Breach(
        "compute.migProfile",
        tree("compute.migProfile", {"blocked": True}),
        amounts("resources.limits", "nvidia.com/mig-1g.5gb", 1),
        total=True,
    ),
    Breach(
        "compute.extendedResources",
        tree("compute.extendedResources", {"instances": {"canAdd": False}}),
        amounts("resources.limits", "example.com/fpga", 1),
        total=True,
    ),
    Breach(
        "compute.extendedResources.quantity",
        tree("compute.extendedResources", {"attributes": {"quantity": {"max": "2"}}}),
        amounts("resources.limits", "example.com/fpga", 3),
        total=True,
    ),
)
