"""Settings of an installation that decisions read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from webhook.evaluation.device_settings import DeviceSettings
from webhook.evaluation.trusted_controllers import TrustedControllers
from webhook.evaluation.trusted_mutators import TrustedMutators
from webhook.interface.injected_items import Injected

GOVERNED_LABEL = "podgate.dev/governed"
"""The label by which a namespace asks to be governed, or not to be."""
NEVER_GOVERNED = ("kube-system", "kube-node-lease", "kube-public", "podgate-system")
"""Namespaces that the cluster needs to boot, and podgate's own."""


@dataclass(frozen=True, slots=True)
class InstallationConfig:
    """Settings of an installation that decisions read. Empty names and maps switch features off.

    `gpu_limit`: whether a default upper bound of a fraction of a GPU is written as a variable or as
    an annotation. `several_devices`: whether the scheduler knows fractions of several GPUs.
    `git_images`: images that check out repositories, besides `git_image`, which defaults use.
    `s3_drivers`: CSI driver to the volume attribute with the bucket. `data_volumes`: id of the
    platform to claim. `identity_claims`: uid, gid and groups to keys of userInfo.extra. `features`:
    what the cluster allows beyond a kind's usual limits. `injected`: what other webhooks add.
    `trusted`: which controllers may change fields of workloads. `controllers`: which users create
    objects for owners of which kinds, besides those of profiles. `prefer_given`: kinds whose given
    definitions decide before shipped ones, as KIND.GROUP. `unreadable_owner`: what happens to
    injected content if podgate may not read the owner. `create_claims`: whether the controller
    creates the claims that policies mount. `devices`: the device driver and its classes.
    """

    gpu_resources: tuple[str, ...] = (
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-*",
        "amd.com/gpu",
    )
    gpu_classes: tuple[str, ...] = ("gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com")
    gpu_memory_unit: Literal["MiB", "MB"] = "MiB"
    gpu_limit: Literal["env", "annotation"] = "env"
    several_devices: bool = False
    node_type_label: str = "run.ai/type"
    node_pools_annotation: str = "kai.scheduler/node-pools"
    node_pool_labels: tuple[str, ...] = ("kai.scheduler/node-pool", "runai/node-pool")
    git_image: str = ""
    git_images: tuple[str, ...] = ()
    s3_drivers: Mapping[str, str] = field(default_factory=dict)
    data_volumes: Mapping[str, str] = field(default_factory=dict)
    identity_claims: Mapping[str, str] = field(default_factory=dict)
    features: frozenset[str] = frozenset()
    injected: Injected = field(default_factory=Injected)
    trusted: TrustedMutators = field(default_factory=TrustedMutators)
    controllers: TrustedControllers = field(default_factory=TrustedControllers)
    prefer_given: tuple[str, ...] = ()
    unreadable_owner: Literal["deny", "warn"] = "deny"
    create_claims: bool = False
    devices: DeviceSettings = field(default_factory=DeviceSettings)
