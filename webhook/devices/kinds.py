"""The kinds of objects with devices, and the versions in which podgate reads them."""

from __future__ import annotations

from typing import Final

GROUP: Final = "resource.k8s.io"
NVIDIA: Final = "resource.nvidia.com"
CLAIM: Final = "ResourceClaim"
TEMPLATE: Final = "ResourceClaimTemplate"
CLASS: Final = "DeviceClass"
DOMAIN: Final = "ComputeDomain"
CLIQUE: Final = "ComputeDomainClique"
CLASSIC: Final = "gpu.resource.nvidia.com"
"""The group of NVIDIA's first driver, whose claims had controllers of their own."""
VERSIONS: Final = ("v1", "v1beta2", "v1beta1")
"""Newest first. v1alpha2 and v1alpha3 have no claims in any supported Kubernetes."""
NVIDIA_VERSIONS: Final = ("v1beta1",)
KINDS: Final = {
    (GROUP, CLAIM): VERSIONS,
    (GROUP, TEMPLATE): VERSIONS,
    (GROUP, CLASS): VERSIONS,
    (NVIDIA, DOMAIN): NVIDIA_VERSIONS,
    (NVIDIA, CLIQUE): NVIDIA_VERSIONS,
}
"""The kinds that podgate evaluates, with their versions, newest first."""
GPU_DRIVER: Final = "gpu.nvidia.com"
DOMAIN_DRIVER: Final = "compute-domain.nvidia.com"
DRIVERS: Final = (GPU_DRIVER, DOMAIN_DRIVER)
"""The drivers whose configurations podgate reads."""
GPU_TYPES: Final = frozenset({"gpu", "mig", "vfio"})
CHANNEL_TYPES: Final = frozenset({"channel", "daemon"})
TYPES_OF_DRIVER: Final = {GPU_DRIVER: GPU_TYPES, DOMAIN_DRIVER: CHANNEL_TYPES}
OTHER: Final = "other"
UNKNOWN: Final = "unknown"
CHANNEL_CLASS: Final = "compute-domain-default-channel.nvidia.com"
CLASS_TYPES: Final = {
    "gpu.nvidia.com": "gpu",
    "mig.nvidia.com": "mig",
    "vfio.gpu.nvidia.com": "vfio",
    CHANNEL_CLASS: "channel",
    "compute-domain-channel.nvidia.com": "channel",
    "compute-domain-daemon.nvidia.com": "daemon",
}
"""The device classes of the drivers' charts."""
DOMAIN_TEMPLATE: Final = "ComputeDomainTemplate"
"""Stands for a kind in keys of References.claims: the template that a ComputeDomain creates."""
DOMAIN_LABEL: Final = "resource.nvidia.com/computeDomain"
"""The label of templates that the driver's controller creates."""
IMMUTABLE: Final = frozenset({(GROUP, CLAIM), (GROUP, TEMPLATE), (NVIDIA, DOMAIN)})
"""The kinds whose spec the API server lets nobody change."""


def is_dead_version(group: str, version: str) -> bool:
    """Return whether no supported Kubernetes serves devices in this version."""
    return group == CLASSIC or (group == GROUP and version.startswith("v1alpha"))
