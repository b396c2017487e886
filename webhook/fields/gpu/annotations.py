"""Annotations that request parts of GPUs: their keys, and their paths in a pod."""

from __future__ import annotations

import re
from typing import Any, Final

from webhook.objects.path import Path
from webhook.pods.pod_view import PodView

FRACTION: Final = "gpu-fraction"
MEMORY: Final = "gpu-memory"
DEVICES: Final = "gpu-fraction-num-devices"
CONTAINER_NAME: Final = "gpu-fraction-container-name"
FRACTION_LIMIT: Final = "gpu-fraction.limit"
MEMORY_LIMIT: Final = "gpu-memory.limit"
LIMIT_VARIABLE: Final = "RUNAI_GPU_MEMORY_LIMIT"
KEYS: Final = frozenset({FRACTION, MEMORY, DEVICES, CONTAINER_NAME, FRACTION_LIMIT, MEMORY_LIMIT})
# Newer keys of the scheduler, for one container each.
PER_CONTAINER: Final = re.compile(
    r"(?:kai\.scheduler|nvidia\.com)/container\.(?P<container>.+?)"
    r"\.gpu-memory\.(?P<form>portion\.)?(?P<end>request|limit)"
)


def is_gpu_annotation(key: str) -> bool:
    """Return whether an annotation belongs to a GPU field."""
    return key in KEYS or PER_CONTAINER.fullmatch(key) is not None


def annotations_of(view: PodView) -> dict[str, Any]:
    """Return the annotations of a pod, none if they are not a map."""
    held = view.metadata.get("annotations")
    return held if isinstance(held, dict) else {}


def annotation_path(view: PodView, key: str) -> Path:
    """Return the path of an annotation, or the pod's path if the kind has no pod metadata."""
    if view.location.metadata_path is None:
        return view.spec_path
    return (*view.location.metadata_path, "annotations", key)
