"""Fields of devices: claims, the NVIDIA configurations in effect, and ComputeDomains."""

from __future__ import annotations

from webhook.objects.path import ABSENT
from webhook.policy import values
from webhook.policy.row import (
    DEVICE,
    DEVICE_LIST,
    DEVICE_SUM,
    TOTAL_GPUS,
    Binding,
    Field,
)
from webhook.policy.values import Codec

BOUNDS = frozenset({"max", "min"})
MPS = ("sharing", "mpsConfig")


def of_request(
    name: str,
    value: str,
    at: tuple[str, ...],
    note: str,
    *,
    absent: object = ABSENT,
    enum: tuple[str, ...] = (),
    writes: str = "main",
    rules: frozenset[str] | None = None,
    codec: Codec | None = None,
) -> Field:
    """A value of each request of a claim, and of each of its alternatives."""
    return Field(
        f"devices.{name}",
        value,
        Binding.REQUEST,
        DEVICE,
        at,
        writes=writes,
        absent=absent,
        enum=enum,
        rules=rules,
        codec=codec,
        note=note,
    )


def of_list(
    name: str,
    note: str,
    enum: tuple[str, ...] = (),
    aliases: tuple[str, ...] = (),
    binding: Binding = Binding.REQUEST,
) -> Field:
    """A list of what claims name. Nothing is written."""
    return Field(
        f"devices.{name}",
        "array",
        binding,
        DEVICE_LIST,
        writes="never",
        enum=enum,
        aliases=aliases,
        codec=values.NAMES,
        note=note,
    )


def of_config(
    name: str,
    value: str,
    at: tuple[str, ...],
    note: str,
    *,
    absent: object = ABSENT,
    enum: tuple[str, ...] = (),
    aliases: tuple[str, ...] = (),
) -> Field:
    """A value of the configuration that takes effect for a request."""
    return Field(
        f"devices.{name}",
        value,
        Binding.CONFIG,
        DEVICE,
        at,
        absent=absent,
        explicit=True,
        enum=enum,
        aliases=aliases,
        note=note,
    )


def of_sum(path: str, binding: Binding, shape: str, note: str) -> Field:
    """A number of devices that is only counted."""
    return Field(path, "integer", binding, shape, writes="never", rules=BOUNDS, note=note)


# A configuration is appended with the strategy, before the values that go with a strategy.
DEVICES: tuple[Field, ...] = (
    of_list(
        "classes",
        "Device classes that requests, their alternatives and extended resources lead to.",
        aliases=("devices.deviceClasses", "devices.deviceClassName"),
    ),
    of_list(
        "types",
        "Types of these classes; a class that can give several types has all of them.",
        ("gpu", "mig", "vfio", "channel", "daemon", "other", "unknown"),
    ),
    of_list(
        "drivers", "Drivers that the configurations of claims are for.", binding=Binding.CONFIG
    ),
    of_list(
        "configKinds",
        "Kinds of NVIDIA configurations in claims and templates.",
        binding=Binding.CONFIG,
    ),
    Field(
        "devices.forms",
        "array",
        Binding.POD,
        DEVICE_LIST,
        writes="never",
        enum=("claim", "claimTemplate", "extendedResource"),
        codec=values.NAMES,
        note="How a pod gets devices; pods share only what has the form claim.",
    ),
    of_request(
        "allocationMode",
        "string",
        ("allocationMode",),
        "Whether a request is for a number of devices, or for all that match.",
        absent="ExactCount",
        enum=("ExactCount", "All"),
    ),
    of_request(
        "count",
        "integer",
        ("count",),
        "Devices of a request; the mode All has no bound and breaks any maximum.",
        absent=1,
    ),
    of_request(
        "alternatives",
        "integer",
        ("firstAvailable",),
        "Alternatives of a request in firstAvailable; 0 if it has none.",
        absent=0,
        writes="never",
        rules=BOUNDS,
    ),
    of_sum(
        "devices.perClaim",
        Binding.REQUEST,
        DEVICE_SUM,
        "Devices of a claim: the sum over its requests, the largest of alternatives.",
    ),
    of_sum(
        "devices.perPod",
        Binding.AMOUNT,
        DEVICE_SUM,
        "Devices of a pod: the sum over its claims and its extended resources with a class.",
    ),
    of_sum(
        "total.devices",
        Binding.WORKLOAD,
        TOTAL_GPUS,
        "Devices of the whole workload; a claim that pods share counts once.",
    ),
    of_request(
        "adminAccess",
        "boolean",
        ("adminAccess",),
        "Administrative access to devices that others use; absent means no.",
        absent=False,
    ),
    of_list("selectors", "CEL expressions of requests, compared as text."),
    of_list("tolerations", "Keys of the device taints that requests tolerate; * for every key."),
    of_request(
        "capacity.memory",
        "quantity",
        ("capacity", "requests", "memory"),
        "Memory of a share of a device.",
    ),
    of_request(
        "capacity.shares",
        "integer",
        ("capacity", "requests", "shares"),
        "Shares of a device, where the driver publishes them.",
        codec=values.WHOLE_QUANTITY,
    ),
    Field(
        "devices.migProfile",
        "string",
        Binding.REQUEST,
        DEVICE,
        writes="never",
        absent="any",
        explicit=True,
        note="MIG profile that selectors or a resource name; any if a MIG request names none.",
    ),
    of_config(
        "sharing.strategy",
        "string",
        ("sharing", "strategy"),
        "How a device is shared; absent means exclusive use.",
        enum=("TimeSlicing", "MPS"),
    ),
    of_config(
        "sharing.interval",
        "string",
        ("sharing", "timeSlicingConfig", "interval"),
        "Length of the time slices, with TimeSlicing.",
        absent="Default",
        enum=("Default", "Short", "Medium", "Long"),
        aliases=("devices.sharing.timeSlicingInterval",),
    ),
    of_config(
        "sharing.threadPercentage",
        "integer",
        (*MPS, "defaultActiveThreadPercentage"),
        "Share of the threads of a device that each MPS client can use.",
        aliases=("devices.sharing.activeThreadPercentage",),
    ),
    of_config(
        "sharing.pinnedMemory",
        "quantity",
        (*MPS, "defaultPinnedDeviceMemoryLimit"),
        "Pinned device memory of each MPS client; bounds apply to each device's entry too.",
    ),
    of_config(
        "sharing.multiUser",
        "boolean",
        (*MPS, "multiUser"),
        "Whether an MPS daemon serves several user ids; driver 0.5 and newer.",
    ),
    of_config(
        "vfio.backendPolicy",
        "string",
        ("iommu", "backendPolicy"),
        "IOMMU backend of a passthrough device; absent means LegacyOnly.",
        absent="LegacyOnly",
        enum=("LegacyOnly", "PreferIommuFD"),
    ),
    of_config(
        "vfio.enableAPIDevice",
        "boolean",
        ("iommu", "enableAPIDevice"),
        "Whether the container gets the API device of VFIO or iommufd; absent means no.",
        absent=False,
    ),
    Field(
        "devices.computeDomain.numNodes",
        "integer",
        Binding.DOMAIN,
        DEVICE,
        ("spec", "numNodes"),
        absent=0,
        explicit=True,
        note="Nodes of a ComputeDomain; absent means 0.",
    ),
    Field(
        "devices.computeDomain.allocationMode",
        "string",
        Binding.DOMAIN,
        DEVICE,
        ("spec", "channel", "allocationMode"),
        absent="Single",
        explicit=True,
        enum=("Single", "All"),
        note="IMEX channels of a claim, in ComputeDomains and channel configurations.",
    ),
)
