"""The kinds of opaque NVIDIA configuration and their fields, for each version of the driver.

The driver decodes strictly: a field that its version does not have is an error on the node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final, Literal, get_args

from webhook.evaluation.device_settings import DriverVersion

API_VERSION: Final = "resource.nvidia.com/v1beta1"
GPU_CONFIG: Final = "GpuConfig"
MIG_CONFIG: Final = "MigDeviceConfig"
VFIO_CONFIG: Final = "VfioDeviceConfig"
CHANNEL_CONFIG: Final = "ComputeDomainChannelConfig"
DAEMON_CONFIG: Final = "ComputeDomainDaemonConfig"

TIME_SLICING: Final = "TimeSlicing"
MPS: Final = "MPS"
GATES: Final = {TIME_SLICING: "TimeSlicingSettings", MPS: "MPSSupport"}
"""The feature gate of each sharing strategy."""
DEFAULT_INTERVAL: Final = "Default"

VERSIONS: Final[tuple[DriverVersion, ...]] = get_args(DriverVersion)
"""Oldest first."""
FIRST: Final[DriverVersion] = "25.3"

FieldType = Literal["text", "integer", "boolean", "quantity", "object", "limits"]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a configuration. `since` is the first driver version that has it.

    `choices` are the only texts it can be; `blank` allows "" too. `label`: the text must be a label
    value. `range` has the smallest and largest integer. `fields` are those of an object. `limits` is
    a map from devices to quantities. Only the sharing strategy `strategy` uses the field; with
    another one it is a fault with the reason `otherwise`.
    """

    type: FieldType
    since: DriverVersion = FIRST
    required: bool = False
    choices: tuple[str, ...] = ()
    blank: bool = False
    label: bool = False
    range: tuple[int, int] | None = None
    fields: Mapping[str, Field] = field(default_factory=dict)
    strategy: str = ""
    otherwise: str = ""


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of a kind, without apiVersion and kind."""

    fields: Mapping[str, Field]
    since: DriverVersion = FIRST


MPS_FIELDS: Final = {
    "defaultActiveThreadPercentage": Field("integer", range=(0, 100)),
    "defaultPinnedDeviceMemoryLimit": Field("quantity"),
    "defaultPerDevicePinnedMemoryLimit": Field("limits"),
    "multiUser": Field("boolean", since="0.5"),
}
STRATEGY: Final = Field("text", required=True, choices=(TIME_SLICING, MPS))
INTERVAL: Final = Field("text", choices=(DEFAULT_INTERVAL, "Short", "Medium", "Long"))
DOMAIN_ID: Final = Field("text", required=True, label=True)

SCHEMAS: Final = {
    GPU_CONFIG: Schema(
        {
            "sharing": Field(
                "object",
                fields={
                    "strategy": STRATEGY,
                    "timeSlicingConfig": Field(
                        "object",
                        fields={"interval": INTERVAL},
                        strategy=TIME_SLICING,
                        otherwise="config-conflict",
                    ),
                    "mpsConfig": Field(
                        "object", fields=MPS_FIELDS, strategy=MPS, otherwise="config-conflict"
                    ),
                },
            )
        }
    ),
    # The driver ignores the MPS settings of a MIG device with time slicing, without an error.
    MIG_CONFIG: Schema(
        {
            "sharing": Field(
                "object",
                fields={
                    "strategy": STRATEGY,
                    "mpsConfig": Field(
                        "object", fields=MPS_FIELDS, strategy=MPS, otherwise="config-unused"
                    ),
                },
            )
        }
    ),
    VFIO_CONFIG: Schema(
        {
            "iommu": Field(
                "object",
                since="0.4",
                fields={
                    "backendPolicy": Field(
                        "text", choices=("LegacyOnly", "PreferIommuFD"), blank=True
                    ),
                    "enableAPIDevice": Field("boolean"),
                },
            )
        },
        since="25.12",
    ),
    CHANNEL_CONFIG: Schema(
        {
            "domainID": DOMAIN_ID,
            "allocationMode": Field("text", since="25.8", choices=("Single", "All"), blank=True),
        }
    ),
    DAEMON_CONFIG: Schema({"domainID": DOMAIN_ID}),
}


def has_it(since: DriverVersion, version: DriverVersion) -> bool:
    """Return whether a driver version has what came with the version `since`."""
    return VERSIONS.index(since) <= VERSIONS.index(version)


@cache
def kinds_of(version: DriverVersion) -> tuple[str, ...]:
    """Return the kinds of configuration that a driver version decodes."""
    return tuple(kind for kind, schema in SCHEMAS.items() if has_it(schema.since, version))


@cache
def leaves_of(kind: str, version: DriverVersion) -> tuple[tuple[str, ...], ...]:
    """Return the paths of all fields of a kind that are no objects, below its parameters."""

    def find(fields: Mapping[str, Field], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for name, each in fields.items():
            if has_it(each.since, version):
                at = (*path, name)
                yield from find(each.fields, at) if each.type == "object" else (at,)

    return tuple(find(SCHEMAS[kind].fields, ())) if kind in kinds_of(version) else ()
