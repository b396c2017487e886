"""Claims as items: those that are there, ephemeral ones, and templates of the workload."""

from __future__ import annotations

from typing import Any

from webhook.core.workload.bindings.stores import TolerationStore


class ClaimStore(TolerationStore):
    """To be written."""

    def __init__(self, *given: Any) -> None:
        """To be written."""

    def read(self, view: Any) -> list[Any]:
        """To be written."""
        return []
