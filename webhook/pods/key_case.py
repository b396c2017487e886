"""Finds keys of pods in another letter case. Decoders written in Go may accept them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook.interface.pod_keys import CONTAINER_KEYS, POD_KEYS, POD_LISTS
from webhook.objects.path import Path
from webhook.pods.location import PodLocation

SECURITY_KEYS: Final = frozenset(
    {
        "allowPrivilegeEscalation",
        "appArmorProfile",
        "capabilities",
        "fsGroup",
        "fsGroupChangePolicy",
        "privileged",
        "procMount",
        "readOnlyRootFilesystem",
        "runAsGroup",
        "runAsNonRoot",
        "runAsUser",
        "seLinuxChangePolicy",
        "seLinuxOptions",
        "seccompProfile",
        "supplementalGroups",
        "supplementalGroupsPolicy",
        "sysctls",
        "windowsOptions",
    }
)
VOLUME_KEYS: Final = frozenset(
    {
        "awsElasticBlockStore",
        "azureDisk",
        "azureFile",
        "cephfs",
        "cinder",
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "fc",
        "flexVolume",
        "flocker",
        "gcePersistentDisk",
        "gitRepo",
        "glusterfs",
        "hostPath",
        "image",
        "iscsi",
        "nfs",
        "persistentVolumeClaim",
        "photonPersistentDisk",
        "portworxVolume",
        "projected",
        "quobyte",
        "rbd",
        "scaleIO",
        "secret",
        "storageos",
        "vsphereVolume",
    }
)


def by_fold(keys: frozenset[str]) -> Mapping[str, str]:
    """Return keys by their case-folded form."""
    return {each.casefold(): each for each in keys}


POD: Final = by_fold(POD_KEYS)
CONTAINER: Final = by_fold(CONTAINER_KEYS | {"image"})
SECURITY: Final = by_fold(SECURITY_KEYS)
CAPABILITIES: Final = by_fold(frozenset({"add", "drop"}))
VOLUME: Final = by_fold(VOLUME_KEYS)


def odd_keys(location: PodLocation) -> Iterator[Path]:
    """Yield the keys of a pod in another letter case than in Kubernetes."""
    spec, path = location.spec, location.spec_path
    yield from odd_in(spec, path, POD)
    yield from odd_in(spec.get("securityContext"), (*path, "securityContext"), SECURITY)
    for name in POD_LISTS:
        for at, each in entries(spec.get(name), (*path, name)):
            yield from odd_in_container(each, at)
    for at, each in entries(spec.get("volumes"), (*path, "volumes")):
        yield from odd_in(each, at, VOLUME)
    for at, each in location.extra:
        yield from odd_in_container(each, at)


def odd_in_container(body: Any, path: Path) -> Iterator[Path]:
    """Yield such keys of a container and its security context."""
    yield from odd_in(body, path, CONTAINER)
    context = body.get("securityContext") if isinstance(body, dict) else None
    at = (*path, "securityContext")
    yield from odd_in(context, at, SECURITY)
    if isinstance(context, dict):
        yield from odd_in(context.get("capabilities"), (*at, "capabilities"), CAPABILITIES)


def odd_in(body: Any, path: Path, known: Mapping[str, str]) -> Iterator[Path]:
    """Yield the keys of one map that are known in another letter case."""
    for key in body if isinstance(body, dict) else ():
        if isinstance(key, str) and known.get(key.casefold(), key) != key:
            yield (*path, key)


def entries(listed: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield the items of a list with their paths."""
    for index, each in enumerate(listed if isinstance(listed, list) else ()):
        yield (*path, index), each
