"""Annotations of the pod as items, but for those that other fields live in."""

from __future__ import annotations

from typing import Any

from webhook.core.workload.bindings.stores import LabelStore


class AnnotationStore(LabelStore):
    """To be written."""

    def __init__(self, *given: Any) -> None:
        """To be written."""
