"""TABLE of handlers: for each shape of field, the class that compiles it.

Some shapes have two: fields of pods that a kind may also have outside them.
"""

from __future__ import annotations

from typing import Any

from webhook.devices.definitions import has_devices
from webhook.fields.affinity import NodeAffinityHandler, PodAffinityHandler
from webhook.fields.amount import AmountHandler
from webhook.fields.annotation_items import WorkloadItemsHandler
from webhook.fields.devices.object_fields import DeviceHandler, DeviceListHandler
from webhook.fields.devices.pod_fields import PodDeviceHandler, PodDeviceListHandler
from webhook.fields.devices.pod_sums import PodDeviceSumHandler
from webhook.fields.devices.sums import ClaimGpusHandler, DeviceSumHandler
from webhook.fields.gpu.count import GpuHandler
from webhook.fields.gpu.forms import GpuFormHandler
from webhook.fields.gpu.workload_total import TotalGpusHandler
from webhook.fields.handler import FieldHandler, PodHandler, WorkloadHandler
from webhook.fields.host_network import PodSpecHandler
from webhook.fields.host_ports import HostPortsHandler
from webhook.fields.identity import IdentityHandler
from webhook.fields.image import ContainerHandler
from webhook.fields.inherited import InheritedHandler
from webhook.fields.names_in_use import PodSetHandler
from webhook.fields.node_pools import NodePoolsHandler
from webhook.fields.pod import NodeTypeHandler
from webhook.fields.preemptibility import PreemptibilityHandler
from webhook.fields.priority import PriorityHandler
from webhook.fields.probe import ProbeHandler
from webhook.fields.replicas import ScaleHandler
from webhook.fields.serving_port import ServingPortHandler
from webhook.fields.storage.home_directory import HomeHandler, SharedMemoryHandler
from webhook.fields.store_registry import ItemsHandler
from webhook.fields.stores.pull_secrets import PullSecretsHandler
from webhook.fields.unmapped import NothingHandler
from webhook.fields.workload import ScalarHandler, ServiceHandler
from webhook.pods.definition import Definition
from webhook.policy.row import NOTHING, Field

POD_HANDLERS: dict[str, PodHandler] = {
    each.name: each
    for each in (
        ContainerHandler(),
        PodSpecHandler(),
        PodSetHandler(),
        AmountHandler(),
        GpuHandler(),
        GpuFormHandler(),
        PodDeviceHandler(),
        PodDeviceListHandler(),
        PodDeviceSumHandler(),
        NodeTypeHandler(),
        NodePoolsHandler(),
        NodeAffinityHandler(),
        PodAffinityHandler(),
        IdentityHandler(),
        HostPortsHandler(),
        HomeHandler(),
        SharedMemoryHandler(),
        ProbeHandler(),
        PullSecretsHandler(),
        ServingPortHandler(),
        ItemsHandler(),
    )
}

WORKLOAD_HANDLERS: dict[str, WorkloadHandler] = {
    each.name: each
    for each in (
        ScalarHandler(),
        InheritedHandler(),
        ServiceHandler(),
        ScaleHandler(),
        WorkloadItemsHandler(),
        PriorityHandler(),
        PreemptibilityHandler(),
        TotalGpusHandler(),
        DeviceHandler(),
        DeviceListHandler(),
        DeviceSumHandler(),
        ClaimGpusHandler(),
        NothingHandler(),
    )
}


def handler_of(row: Field, definition: Definition) -> FieldHandler[Any]:
    """The handler of a field as a kind has it: in its pods, or for the workload as a whole."""
    whole = WORKLOAD_HANDLERS.get(row.shape)
    if has_devices(definition):
        return whole if whole is not None and whole.of_devices else WORKLOAD_HANDLERS[NOTHING]
    handler = POD_HANDLERS.get(row.shape)
    if handler is not None and handler.is_in_pods(row, definition):
        return handler
    return WORKLOAD_HANDLERS[row.shape]


def is_of_workload(row: Field, definition: Definition) -> bool:
    """Whether a field belongs to the object as a whole; replicas belong to their component."""
    handler = WORKLOAD_HANDLERS.get(row.shape)
    return (
        handler is not None and not handler.by_component and handler is handler_of(row, definition)
    )
