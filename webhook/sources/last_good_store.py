"""What the leader remembers of documents in the cluster, so that broken ones do not narrow anybody."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from webhook.catalog.watched_documents import Key
from webhook.cluster.client import ApiError, ApiServer
from webhook.sources.last_good import NAME, collection_of, documents_of, written

log = logging.getLogger("podgate.memory")


@dataclass(slots=True)
class Memory:
    """The ConfigMap of a namespace that holds the versions in force."""

    server: ApiServer
    namespace: str
    known: Mapping[Key, Any] | None = None
    left_out: tuple[Key, ...] = ()
    is_forbidden: bool = False

    async def recalled(self) -> Mapping[Key, Any]:
        """What is remembered; ApiError while it cannot be read, so that nothing is written over it.

        Who may not read it works without.
        """
        try:
            self.known = documents_of(await self.server.find(self.path))
        except ApiError as error:
            if error.code != 403:
                raise
            log.warning("last good versions are not remembered: %s", error)
            self.is_forbidden = True
            return {}
        self.is_forbidden = False
        return self.known

    async def keep(self, documents: Mapping[Key, Any]) -> None:
        """Remember these, where they differ from what is remembered; a failure is told, no more."""
        if self.is_forbidden or self.known == documents:
            return
        body, left_out = written(self.namespace, documents)
        try:
            await self.server.apply(self.path, body)
        except ApiError as error:
            log.warning("last good versions could not be written: %s", error)
            return
        self.known = documents
        if left_out and left_out != self.left_out:
            names = ", ".join("/".join(filter(None, each)) for each in left_out)
            log.warning("%s has no room for the last good version of %s", NAME, names)
        self.left_out = left_out

    @property
    def path(self) -> str:
        """The path of the ConfigMap."""
        return f"{collection_of(self.namespace)}/{NAME}"
