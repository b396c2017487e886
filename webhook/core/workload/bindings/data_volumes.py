"""Data volumes of the platform as items: claims that the settings know by id."""

from __future__ import annotations

from typing import Any

from webhook.core.workload.bindings.stores import TolerationStore


class DataVolumeStore(TolerationStore):
    """To be written."""

    def __init__(self, *given: Any) -> None:
        """To be written."""

    def read(self, view: Any) -> list[Any]:
        """To be written."""
        return []
