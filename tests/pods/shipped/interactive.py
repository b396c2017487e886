"""What is expected of interactive kinds, of machines and of Slurm: objects, statuses, children."""

from __future__ import annotations

import json
from typing import Any, Final

CONTAINER: Final = {"name": "a", "image": "a", "env": []}
TEMPLATE: Final = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {
        "containers": [{"name": "a", "image": "a", "ports": []}],
        "initContainers": [{"name": "b", "image": "b"}],
    },
}
HOOKS: Final = "hooks.kubevirt.io/hookSidecars"
MACHINE_METADATA: Final = {
    "labels": {"a": "b"},
    "annotations": {HOOKS: json.dumps([{"image": "hook", "args": ["-v"]}])},
}
MACHINE: Final = {
    "schedulerName": "s",
    "tolerations": [{"operator": "Exists"}],
    "volumes": [
        {"name": "root", "containerDisk": {"image": "disk", "imagePullSecret": "key"}},
        {"name": "data", "dataVolume": {"name": "d"}},
        {"name": "host", "hostDisk": {"path": "/data", "type": "Disk"}},
        {"name": "token", "serviceAccount": {"serviceAccountName": "robot"}},
    ],
    "domain": {
        "devices": {"gpus": [{"name": "g", "deviceName": "nvidia.com/gpu"}]},
        "firmware": {"kernelBoot": {"container": {"image": "kernel", "imagePullPolicy": "Always"}}},
        "resources": {"limits": {"cpu": "2"}},
    },
}
VM: Final = {"template": {"metadata": MACHINE_METADATA, "spec": MACHINE}}
TOOL: Final = {
    "name": "ide",
    "attributes": {
        "container-overrides": {"securityContext": {"privileged": False}},
        "pod-overrides": {"spec": {"hostPID": False}},
    },
    "container": {"image": "ide", "env": [], "cpuLimit": "1", "endpoints": [{"targetPort": 1}]},
}
DEVFILE: Final = {
    "attributes": {"pod-overrides": {"spec": {"runtimeClassName": "kata"}}},
    "components": [
        {"name": "disk", "volume": {"size": "1Gi"}},
        TOOL,
        {"name": "plugin", "plugin": {"kubernetes": {"name": "p"}, "components": [TOOL]}},
    ],
    "parent": {"kubernetes": {"name": "p"}, "components": [TOOL]},
}
SANDBOX: Final = {"podTemplate": TEMPLATE, "volumeClaimTemplates": []}
IN_PIECES: Final = {
    "VirtualMachine",
    "VirtualMachineInstance",
    "VirtualMachineInstanceReplicaSet",
    "VirtualMachinePool",
    "DevWorkspace",
    "DevWorkspaceTemplate",
    "SandboxClaim",
}
FULL_OBJECTS: Final[dict[str, dict[str, Any]]] = {
    "sandbox.agents.x-k8s.io": SANDBOX,
    "sandboxtemplate.extensions.agents.x-k8s.io": SANDBOX,
    "sandboxwarmpool.extensions.agents.x-k8s.io": {"sandboxTemplateRef": {"name": "t"}},
    "sandboxclaim.extensions.agents.x-k8s.io": {
        "warmPoolRef": {"name": "p"},
        "additionalPodMetadata": {"labels": {"a": "b"}},
        "env": [{"name": "A", "value": "b"}],
    },
    "devworkspace.workspace.devfile.io": {
        "started": True,
        "template": DEVFILE,
        "contributions": [{"name": "editor", "components": [TOOL]}],
    },
    "devworkspacetemplate.workspace.devfile.io": DEVFILE,
    "virtualmachineinstance.kubevirt.io": MACHINE,
    "virtualmachine.kubevirt.io": VM,
    "virtualmachineinstancereplicaset.kubevirt.io": VM,
    "virtualmachinepool.pool.kubevirt.io": {"virtualMachineTemplate": {"spec": VM}},
    "nodeset.slinky.slurm.net": {"template": TEMPLATE, "slurmd": CONTAINER, "logfile": CONTAINER},
    "loginset.slinky.slurm.net": {"template": TEMPLATE, "login": CONTAINER, "initconf": CONTAINER},
    "controller.slinky.slurm.net": {
        "template": TEMPLATE,
        "slurmctld": CONTAINER,
        "reconfigure": CONTAINER,
        "logfile": CONTAINER,
    },
    "restapi.slinky.slurm.net": {"template": TEMPLATE, "slurmrestd": CONTAINER},
    "accounting.slinky.slurm.net": {"template": TEMPLATE, "slurmdbd": CONTAINER},
}


def conditions(*types: str, reason: str = "") -> dict[str, Any]:
    """A status with these conditions, all of them true."""
    told = {"reason": reason} if reason else {}
    return {"conditions": [{"type": each, "status": "True", **told} for each in types]}


STATUSES: Final[list[tuple[str, dict[str, Any], set[str]]]] = [
    ("sandbox.agents.x-k8s.io", {}, {"initializing"}),
    ("sandbox.agents.x-k8s.io", conditions("Ready"), {"running"}),
    ("sandbox.agents.x-k8s.io", conditions("Suspended"), {"resuming"}),
    ("sandbox.agents.x-k8s.io", conditions("Finished", reason="PodSucceeded"), {"completed"}),
    ("sandbox.agents.x-k8s.io", conditions("Finished", reason="PodFailed"), {"failed"}),
    ("sandboxwarmpool.extensions.agents.x-k8s.io", {}, {"initializing"}),
    ("sandboxwarmpool.extensions.agents.x-k8s.io", {"readyReplicas": 1}, {"running"}),
    ("sandboxclaim.extensions.agents.x-k8s.io", conditions("Ready"), {"running"}),
    ("sandboxclaim.extensions.agents.x-k8s.io", conditions("Suspended"), {"suspended"}),
    ("devworkspace.workspace.devfile.io", {}, {"initializing"}),
    ("devworkspace.workspace.devfile.io", {"phase": "Running"}, {"running"}),
    ("devworkspace.workspace.devfile.io", {"phase": "Stopping"}, {"suspending"}),
    ("devworkspace.workspace.devfile.io", {"phase": "Stopped"}, {"suspended"}),
    ("devworkspace.workspace.devfile.io", {"phase": "Failing"}, {"failed"}),
    ("virtualmachineinstance.kubevirt.io", {}, {"initializing"}),
    ("virtualmachineinstance.kubevirt.io", {"phase": "Scheduled"}, {"initializing"}),
    ("virtualmachineinstance.kubevirt.io", {"phase": "Succeeded"}, {"completed"}),
    ("virtualmachineinstance.kubevirt.io", {"phase": "Unknown"}, {"degraded"}),
    ("virtualmachine.kubevirt.io", {"printableStatus": "Stopped"}, {"suspended"}),
    ("virtualmachine.kubevirt.io", {"printableStatus": "Migrating"}, {"running"}),
    ("virtualmachine.kubevirt.io", {"printableStatus": "ErrImagePull"}, {"failed"}),
    ("virtualmachineinstancereplicaset.kubevirt.io", {}, {"initializing"}),
    ("virtualmachineinstancereplicaset.kubevirt.io", {"readyReplicas": 1}, {"running"}),
    (
        "virtualmachinepool.pool.kubevirt.io",
        {**conditions("ReplicaFailure"), "readyReplicas": 1},
        {"running", "degraded"},
    ),
    ("nodeset.slinky.slurm.net", {}, {"initializing"}),
    ("nodeset.slinky.slurm.net", {"readyReplicas": 2, "desired": 3}, {"initializing"}),
    ("nodeset.slinky.slurm.net", {"readyReplicas": 1}, {"running"}),
    ("loginset.slinky.slurm.net", {"replicas": 1}, {"running"}),
    ("controller.slinky.slurm.net", {}, set()),
]
SANDBOXES: Final = "system:serviceaccount:agent-sandbox-system:agent-sandbox-controller"
KUBEVIRT: Final = "system:serviceaccount:kubevirt:kubevirt-controller"
SLURM: Final = "system:serviceaccount:slinky:slurm-operator"
DEVFILES: Final = (
    "system:serviceaccount:devworkspace-controller:devworkspace-controller-serviceaccount"
)
EXEMPT: Final = [
    ("agents.x-k8s.io/v1beta1 Sandbox", "v1 Pod", SANDBOXES),
    ("apps/v1 StatefulSet", "v1 Pod", "system:kube-controller-manager"),
]
JUDGED: Final = [
    (
        "extensions.agents.x-k8s.io/v1beta1 SandboxClaim",
        "agents.x-k8s.io/v1beta1 Sandbox",
        SANDBOXES,
    ),
    (
        "extensions.agents.x-k8s.io/v1beta1 SandboxWarmPool",
        "agents.x-k8s.io/v1beta1 Sandbox",
        SANDBOXES,
    ),
    ("workspace.devfile.io/v1alpha2 DevWorkspace", "apps/v1 Deployment", DEVFILES),
    ("kubevirt.io/v1 VirtualMachineInstance", "v1 Pod", KUBEVIRT),
    ("slinky.slurm.net/v1beta1 NodeSet", "v1 Pod", SLURM),
    ("slinky.slurm.net/v1beta1 LoginSet", "apps/v1 Deployment", SLURM),
    ("slinky.slurm.net/v1beta1 Controller", "apps/v1 StatefulSet", SLURM),
    ("slinky.slurm.net/v1beta1 RestApi", "apps/v1 Deployment", SLURM),
    ("slinky.slurm.net/v1beta1 Accounting", "apps/v1 StatefulSet", SLURM),
]
# What is made is a machine again, of which more is made in turn.
MACHINES: Final = [
    ("kubevirt.io/v1 VirtualMachine", "kubevirt.io/v1 VirtualMachineInstance"),
    ("kubevirt.io/v1 VirtualMachineInstanceReplicaSet", "kubevirt.io/v1 VirtualMachineInstance"),
    ("pool.kubevirt.io/v1alpha1 VirtualMachinePool", "kubevirt.io/v1 VirtualMachine"),
]
