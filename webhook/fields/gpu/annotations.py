"""Annotations that ask for parts of GPUs: their keys, and where they are in a pod."""

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
    """Whether an annotation is the place of a GPU field, so that it is no annotation of its own."""
    return key in KEYS or PER_CONTAINER.fullmatch(key) is not None


def annotations_of(view: PodView) -> dict[str, Any]:
    """The annotations of a pod; none where something else than a map stands."""
    held = view.metadata.get("annotations")
    return held if isinstance(held, dict) else {}


def annotation_path(view: PodView, key: str) -> Path:
    """Where an annotation is, or would be; the pod's place where the kind has no pod metadata."""
    if view.location.metadata_path is None:
        return view.spec_path
    return (*view.location.metadata_path, "annotations", key)
