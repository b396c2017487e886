"""Creates the claims that policies mount and nobody has made, where the setting createClaims is on."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.catalog.catalog import Catalog
from webhook.catalog.watched_documents import Key
from webhook.cluster.client import NOT_READ, ApiError, ApiServer, Collection
from webhook.controller.created_claims import (
    FOREIGN,
    PENDING,
    PRESENT,
    REFUSED,
    SELECTOR,
    Claims,
    Found,
    Name,
    Wanted,
    body_of,
    brief_of,
    found_of,
    notes_on,
    problem_of,
    unread_notes,
    wanted_claims,
)
from webhook.decision import messages as wording
from webhook.documents.problem import Problem
from webhook.evaluation.installation import GOVERNED_LABEL
from webhook.policy.selectors import NAME_LABEL
from webhook.service.controller_metrics import ControllerMetrics

log = logging.getLogger("podgate.claims")

Json = dict[str, Any]
AGAIN = 15.0  # seconds between two tries to create a claim: quotas, and clients that delete it
BUDGET = (
    2.0  # seconds that one round spends on claims; the registration does not wait for thousands
)
FORBIDDEN = (400, 403, 422)


@dataclass(slots=True)
class ClaimCreator:
    """Creates what is wanted and not there; it adopts, resizes and deletes nothing.

    `governed` is label or all, `never` are namespaces that are not governed in any case. `changed` is
    called when a claim or a governed namespace has come, changed or gone.
    """

    server: ApiServer
    governed: str
    never: frozenset[str]
    metrics: ControllerMetrics
    changed: Callable[[], None]
    namespaces: Collection = field(init=False)
    claims: Collection = field(init=False)
    catalog: Catalog | None = None
    wanted: Claims = field(default_factory=dict)
    found: dict[Name, Found] = field(default_factory=dict)
    tried: dict[Name, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Of claims only those with the label are followed; others are asked for by name."""
        chosen = {"labelSelector": f"{GOVERNED_LABEL}=true"} if self.governed == "label" else {}
        self.namespaces = Collection(
            "/api/v1/namespaces", only_metadata=True, query=chosen, kept=labels_of, touched=set()
        )
        self.claims = Collection(
            "/api/v1/persistentvolumeclaims",
            query={"labelSelector": SELECTOR},
            kept=brief_of,
            touched=set(),
        )

    def note(self, collection: Collection) -> None:
        """Have a round begin where something is new that matters here."""
        if collection.touched:
            collection.touched.clear()
            self.changed()

    def trouble(self) -> str:
        """Why namespaces or claims are not known, "" if they are."""
        several = (self.namespaces, self.claims)
        return "; ".join(f"{each.path}: {each.trouble}" for each in several if not each.is_known)

    async def create(self, catalog: Catalog) -> bool:
        """Create what is wanted and not there; return whether the next round may take its time."""
        while NOT_READ in (self.namespaces.trouble, self.claims.trouble):
            await asyncio.sleep(0.02)
        self.catalog = catalog
        if self.trouble():
            return True
        governed = {
            name: {**row["labels"], NAME_LABEL: name}
            for (_, name), row in self.namespaces.objects.items()
            if not row["ends"] and name not in self.never
        }
        self.wanted = await asyncio.to_thread(wanted_claims, catalog, governed)
        self.found = {name: self.known(name) for name in self.wanted}
        self.tried = {name: at for name, at in self.tried.items() if name in self.wanted}
        done = await self.create_due()
        self.metrics.claims_are(Counter(each.state for each in self.found.values()))
        return done

    def known(self, name: Name) -> Found:
        """What is known of a claim before it is asked for."""
        if (brief := self.claims.objects.get(name)) is not None:
            return found_of(brief)
        before = self.found.get(name)
        return before if before and before.state in (FOREIGN, REFUSED) else Found(PENDING)

    async def create_due(self) -> bool:
        """Create what is not there, what was tried longest ago first; whether there was time for all."""
        begun = time.monotonic()
        due = [
            each
            for each in self.wanted
            if each not in self.claims.objects
            and begun - self.tried.get(each, float("-inf")) >= AGAIN
        ]
        for name in sorted(due, key=lambda each: (self.tried.get(each, 0.0), each)):
            if time.monotonic() - begun > BUDGET:
                return False
            self.tried[name] = time.monotonic()
            before, wanted = self.found[name], self.wanted[name][0]
            found = self.found[name] = await self.create_one(name, wanted)
            if found.state != before.state:
                problem = problem_of(name, wanted, found, None)
                if problem is not None:
                    log.warning("%s", wording.problem_text(problem))
        return True

    async def create_one(self, name: Name, wanted: Wanted) -> Found:
        """Create one claim unless there is one of its name; it is present once the watch shows it."""
        path = f"/api/v1/namespaces/{name[0]}/persistentvolumeclaims"
        try:
            there = await self.server.find(f"{path}/{name[1]}")
            if there is not None:
                found = found_of(brief_of(there))
                return Found(PENDING) if found.state == PRESENT else found
            await self.server.create(path, body_of(name, wanted))
        except ApiError as error:
            self.metrics.refused("claims", error.code)
            reason = str(error).partition(": ")[2]
            return Found(REFUSED if error.code in FORBIDDEN else PENDING, reason)
        log.info("PersistentVolumeClaim %s/%s was created for %s", *name, wanted.origin)
        return Found(PENDING)

    def notes(self, keys: Iterable[Key]) -> Mapping[Key, tuple[Problem, ...]]:
        """Return what to add to the status of each policy."""
        if self.catalog is None:
            return {}
        if why := self.trouble():
            return unread_notes(self.catalog, why, keys)
        return notes_on(self.wanted, self.found, self.claims.objects, keys)


def labels_of(namespace: Json) -> Json:
    """Return what is remembered of a namespace: its labels, and whether it is being deleted."""
    metadata = namespace.get("metadata") or {}
    return {
        "labels": metadata.get("labels") or {},
        "ends": bool(metadata.get("deletionTimestamp")),
    }
