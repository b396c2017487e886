"""TABLE of leaves whose values are names of objects, and the syntax of these names."""

from __future__ import annotations

import re
from typing import Any

LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
# Kubernetes limits the length of the whole name, not of its parts.
PART = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
SUBDOMAIN = re.compile(rf"{PART}(\.{PART})*")
LONGEST = 253
WANTED = "lower-case letters, digits, - and . with a letter or digit at both ends"
NAMING = frozenset(
    {
        "imagePullSecrets.name",
        "modelStore.nimCache.name",
        "modelStore.pvc.claimInfo.storageClass",
        "modelStore.pvc.claimName",
        "ngcAuthSecret",
        "priorityClass",
        "scheduling.nodeName",
        "scheduling.runtimeClassName",
        "security.serviceAccountName",
        "storage.configMapVolume.configMap",
        "storage.git.secretRef.name",
        "storage.pvc.claimInfo.storageClass",
        "storage.pvc.claimName",
        "storage.s3.accessKeySecret",
        "storage.secretVolume.secret",
    }
)
"""The vendor requires labels without dots, but names of objects can have dots."""


def fault(path: str, value: Any) -> bool:
    """Whether the value of a leaf is an invalid object name. The empty string is accepted."""
    if path not in NAMING or not isinstance(value, str) or not value:
        return False
    return len(value) > LONGEST or not SUBDOMAIN.fullmatch(value)
