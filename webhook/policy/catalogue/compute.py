"""Fields of amounts: cpu, memory, GPUs in every form, other devices."""

from __future__ import annotations

from webhook.policy import values
from webhook.policy.catalogue.containers import EXCLUDE
from webhook.policy.row import (
    AMOUNT,
    GPU,
    GPU_FORM,
    ITEMS,
    SHARED_MEMORY,
    Attribute,
    Binding,
    Field,
    Items,
)

EXTENDED = Items(
    "resource",
    (),
    (
        Attribute(
            "resource",
            "string",
            ("resource",),
            required=True,
            takes_rules=False,
            note="Name of the resource; the key.",
        ),
        Attribute(
            "quantity",
            "string",
            ("quantity",),
            codec=values.AMOUNT_TEXT,
            extra_rules=frozenset({"min", "max"}),
            note="Whole number of devices, as a quantity; compared as quantities.",
        ),
        EXCLUDE,
    ),
    store="extended-resources",
)

COMPUTE: tuple[Field, ...] = (
    Field(
        "compute.cpuCoreRequest",
        "number",
        Binding.AMOUNT,
        AMOUNT,
        ("resources", "requests", "cpu"),
        aliases=("compute.cpuCoresRequest",),
        codec=values.CORES,
        note="CPU cores that are guaranteed; 0.5 is 500m.",
    ),
    Field(
        "compute.cpuCoreLimit",
        "number",
        Binding.AMOUNT,
        AMOUNT,
        ("resources", "limits", "cpu"),
        codec=values.CORES,
        note="CPU cores that may be used at most.",
    ),
    Field(
        "compute.cpuMemoryRequest",
        "quantity",
        Binding.AMOUNT,
        AMOUNT,
        ("resources", "requests", "memory"),
        note="Host memory that is guaranteed; 1G is 10^9 bytes, 1Gi 2^30.",
    ),
    Field(
        "compute.cpuMemoryLimit",
        "quantity",
        Binding.AMOUNT,
        AMOUNT,
        ("resources", "limits", "memory"),
        note="Host memory that may be used at most.",
    ),
    Field(
        "compute.gpuRequestType",
        "string",
        Binding.AMOUNT,
        GPU_FORM,
        ("type",),
        writes="never",
        enum=("portion", "memory"),
        note="Unit of a part of a GPU; follows from the form in use.",
    ),
    Field(
        "compute.gpuPortionRequest",
        "number",
        Binding.AMOUNT,
        GPU_FORM,
        ("portion", "request"),
        note="Share of a GPU, between 0 and 1; a whole number is whole devices.",
    ),
    Field(
        "compute.gpuMemoryRequest",
        "quantity",
        Binding.AMOUNT,
        GPU_FORM,
        ("memory", "request"),
        note="GPU memory that is guaranteed.",
    ),
    Field(
        "compute.migProfile",
        "string",
        Binding.AMOUNT,
        GPU_FORM,
        ("mig",),
        note="MIG profile, such as 1g.5gb; older policies still name it.",
    ),
    Field(
        "compute.gpuDevicesRequest",
        "integer",
        Binding.AMOUNT,
        GPU,
        ("resources", "limits", "nvidia.com/gpu"),
        aliases=(
            "compute.gpuDeviceRequest",
            "compute.gpuDeviceRequests",
            "compute.gpuDevices",
        ),
        note="Number of GPUs of a pod, in every form together.",
    ),
    Field(
        "compute.gpuPortionLimit",
        "number",
        Binding.AMOUNT,
        GPU_FORM,
        ("portion", "limit"),
        note="Largest share of a GPU, not below the request.",
    ),
    Field(
        "compute.gpuMemoryLimit",
        "quantity",
        Binding.AMOUNT,
        GPU_FORM,
        ("memory", "limit"),
        note="Most GPU memory, not below the request.",
    ),
    Field(
        "compute.extendedResources",
        "itemized",
        Binding.AMOUNT,
        ITEMS,
        items=EXTENDED,
        note="Devices of other vendors, by resource name; the pod's total counts.",
    ),
    Field(
        "compute.largeShmRequest",
        "boolean",
        Binding.MAIN,
        SHARED_MEMORY,
        note="Large /dev/shm in memory; counts against the container's limit.",
    ),
)
