"""Git checkouts as items: init containers that clone a repository into a volume."""

from __future__ import annotations

from typing import Any

from webhook.core.workload.bindings.stores import TolerationStore


class GitStore(TolerationStore):
    """To be written."""

    def __init__(self, *given: Any) -> None:
        """To be written."""

    def read(self, view: Any) -> list[Any]:
        """To be written."""
        return []
