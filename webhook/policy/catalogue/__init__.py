"""The field table by section. To add a field, add a row to one of these modules.

Order matters within a module: podgate writes defaults in this order.
"""

from webhook.policy.catalogue.compute import COMPUTE
from webhook.policy.catalogue.containers import CONTAINERS
from webhook.policy.catalogue.devices import DEVICES
from webhook.policy.catalogue.pods import PODS
from webhook.policy.catalogue.probes import PROBES
from webhook.policy.catalogue.security import SECURITY
from webhook.policy.catalogue.serving import SERVING
from webhook.policy.catalogue.storage import STORAGE
from webhook.policy.catalogue.workloads import WORKLOADS

ROWS = (
    *CONTAINERS,
    *PODS,
    *WORKLOADS,
    *COMPUTE,
    *DEVICES,
    *SECURITY,
    *STORAGE,
    *PROBES,
    *SERVING,
)

GROUPS: dict[str, str] = {
    "podAffinity": "Keeps the pods of a workload together in one topology domain.",
    "master": "Policy body for the master (launcher, chief) of a distributed workload.",
    "leader": "Policy body for the leader of each group of a distributed inference workload.",
    "worker": "Policy body for the workers of a distributed workload.",
    "multiNode": "Settings of a NIM service that spans several nodes.",
    "modelStore": "Where a NIM service keeps its model.",
    "modelStore.nimCache": "The NIMCache with the model.",
    "modelStore.pvc": "The claim with the model; one object, not itemized.",
    "modelStore.pvc.claimInfo": "The claim that the operator creates.",
    "modelStore.pvc.claimInfo.accessModes": "Access modes as three booleans.",
    "imposedAssets": "Ids of data source assets; each becomes a locked item of its storage field.",
    "probes": "Probes of the main container. Policies have only readiness.",
    "probes.readiness": "When a pod counts as ready; written into the main container's probe.",
    "probes.readiness.handler": "How the probe asks; over HTTP only.",
    "probes.readiness.handler.httpGet": "The request that has to succeed.",
    "security": "What the processes of a pod can do.",
    "compute": "Requests and limits of the pods.",
    "storage": "Volumes and their mounts.",
    "storage.git.secretRef": "Secret with the credentials, and the names of its keys.",
    "storage.pvc.claimInfo": "The claim that comes with the pod.",
    "storage.pvc.claimInfo.accessModes": "Access modes as three booleans.",
    "servingPort": "The port that a service listens on, and who can call it.",
    "autoscaling": "How many replicas a service has, and when that changes.",
    "servingConfiguration": "Time limits of a service.",
    "devices": "Devices by dynamic resource allocation: what claims ask for, and how.",
    "devices.capacity": "Shares of devices that several claims use.",
    "devices.sharing": "How GPUs and MIG devices are shared between processes.",
    "devices.vfio": "Passthrough of whole GPUs to virtual machines.",
    "devices.computeDomain": "ComputeDomains, for memory shared across nodes.",
    "scheduling": "Who schedules the pods, and where they run.",
    "scale": "Numbers of pods.",
    "total": "Sums over the whole workload.",
}
"""Names that are no fields themselves: roles, sections, and the objects that hold fields."""

__all__ = ["GROUPS", "ROWS"]
