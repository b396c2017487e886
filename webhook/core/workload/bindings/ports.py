"""Ports of containers as items."""

from __future__ import annotations

from typing import Any

from webhook.core.workload.bindings.stores import TolerationStore


class PortStore(TolerationStore):
    """To be written."""

    def __init__(self, *given: Any) -> None:
        """To be written."""
