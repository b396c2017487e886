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
