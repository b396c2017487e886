"""What a rule forbids, and the ways to do it all the same: the generator knows that each breaks it."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.fuzz.amounts import above, unreadable
from tests.fuzz.ways import (
    ORDINARY,
    Breach,
    Way,
    add,
    adds,
    amounts,
    context,
    fixed,
    node_at,
    put,
    sets,
    shared,
    tree,
    volume,
)

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


def claimed(node: dict[str, Any], _: Random) -> None:
    """Devices by a claim template that nobody can resolve here."""
    add(node, "resourceClaims", {"name": "g", "resourceClaimTemplateName": "gpus"})
    for each in (node.get("containers") or ())[:1]:
        put(each, "resources.claims", [{"name": "g"}])


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


def leave_out(path: str) -> Way:
    """A way that removes a value from the pod and from every container."""
    *above_it, last = path.split(".")

    def apply(node: dict[str, Any], _: Random) -> None:
        for each in (node, *containers_of(node)):
            for step in above_it:
                each = each.get(step) or {}
            each.pop(last, None)

    return Way("left-out", "containers", apply, of_pod=True)


def containers_of(pod: Any) -> list[Any]:
    """The containers that defaults are written to."""
    return [*(pod.get("containers") or ()), *(pod.get("initContainers") or ())]


def is_read_only(pod: Any) -> bool:
    """Whether every container has a read-only file system."""
    path = "securityContext.readOnlyRootFilesystem"
    return all(node_at(each, path) is True for each in containers_of(pod))


def is_non_root(pod: Any) -> bool:
    """Whether the pod, or every container of it, runs as another user than root."""
    path = "securityContext.runAsNonRoot"
    stated = [node_at(each, path) for each in containers_of(pod)]
    return (node_at(pod, path) is True or all(stated)) and False not in stated


def always_pulls(pod: Any) -> bool:
    """Whether the main container always pulls its image."""
    return any(each.get("imagePullPolicy") == "Always" for each in pod.get("containers") or ())


def ends_soon(pod: Any) -> bool:
    """Whether the pod has the fixed time to end."""
    return bool(pod.get("terminationGracePeriodSeconds") == 60)


BREACHES: tuple[Breach, ...] = (
    Breach(
        "security.readOnlyRootFilesystem",
        fixed("security.readOnlyRootFilesystem", True),
        (leave_out("securityContext.readOnlyRootFilesystem"),),
        holds=is_read_only,
    ),
    Breach(
        "security.runAsNonRoot",
        fixed("security.runAsNonRoot", True),
        (leave_out("securityContext.runAsNonRoot"),),
        holds=is_non_root,
    ),
    Breach(
        "imagePullPolicy",
        fixed("imagePullPolicy", "Always"),
        (leave_out("imagePullPolicy"),),
        holds=always_pulls,
    ),
    Breach(
        "terminationGracePeriodSeconds",
        fixed("terminationGracePeriodSeconds", 60),
        (leave_out("terminationGracePeriodSeconds"),),
        holds=ends_soon,
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
