"""Creates the claims that policies mount and nobody has created, if the setting createClaims is on."""

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
from webhook.cluster.client import ApiError, ApiServer
from webhook.cluster.list_and_watch import NOT_READ, Collection
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
from webhook.decision.messages import problem_text
from webhook.documents.problem import Problem
from webhook.evaluation.installation import GOVERNED_LABEL
from webhook.policy.selectors import NAME_LABEL
from webhook.service.controller_metrics import ControllerMetrics

log = logging.getLogger("podgate.claims")

Json = dict[str, Any]
AGAIN = 15.0  # seconds between two attempts to create a claim, in case of quotas or clients that delete it
BUDGET = (
    2.0  # seconds that one round spends on claims, so that registration does not wait for thousands
)
FORBIDDEN = (400, 403, 422)


@dataclass(slots=True)
class ClaimCreator:
    """Creates claims that policies need and that are missing. It never adopts, resizes or deletes a claim.

    `governed` is label or all; namespaces in `never` are never governed. `changed` is called when a
    claim or a governed namespace is added, changed or deleted.
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
        """Watch only the claims with podgate's label; other claims are read by name."""
        chosen = {"labelSelector": f"{GOVERNED_LABEL}=true"} if self.governed == "label" else {}
        self.namespaces = Collection(
            "/api/v1/namespaces", only_metadata=True, query=chosen, brief=labels_of, touched=set()
        )
        self.claims = Collection(
            "/api/v1/persistentvolumeclaims",
            query={"labelSelector": SELECTOR},
            brief=brief_of,
            touched=set(),
        )

    def note(self, collection: Collection) -> None:
        """Start a round if a relevant claim or namespace changed."""
        if collection.touched:
            collection.touched.clear()
            self.changed()

    def trouble(self) -> str:
        """Why namespaces or claims are unknown, "" if they are known."""
        several = (self.namespaces, self.claims)
        return "; ".join(f"{each.path}: {each.trouble}" for each in several if not each.is_known)

    async def create(self, catalog: Catalog) -> bool:
        """Create missing claims; return whether the next round may wait."""
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
        self.found = {name: self.find_known(name) for name in self.wanted}
        self.tried = {name: at for name, at in self.tried.items() if name in self.wanted}
        done = await self.create_due()
        self.metrics.set_claims(Counter(each.state for each in self.found.values()))
        return done

    def find_known(self, name: Name) -> Found:
        """Return what is known of a claim without reading it."""
        if (brief := self.claims.objects.get(name)) is not None:
            return found_of(brief)
        before = self.found.get(name)
        return before if before and before.state in (FOREIGN, REFUSED) else Found(PENDING)

    async def create_due(self) -> bool:
        """Create missing claims, the longest untried first; return whether there was time for all."""
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
                    log.warning("%s", problem_text(problem))
        return True

    async def create_one(self, name: Name, wanted: Wanted) -> Found:
        """Create one claim unless its name is taken; it counts as present once the watch shows it."""
        path = f"/api/v1/namespaces/{name[0]}/persistentvolumeclaims"
        try:
            there = await self.server.find(f"{path}/{name[1]}")
            if there is not None:
                found = found_of(brief_of(there))
                return Found(PENDING) if found.state == PRESENT else found
            await self.server.create(path, body_of(name, wanted))
        except ApiError as error:
            self.metrics.count_refusal("claims", error.code)
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
    """Return the labels of a namespace, and whether it is being deleted."""
    metadata = namespace.get("metadata") or {}
    return {
        "labels": metadata.get("labels") or {},
        "ends": bool(metadata.get("deletionTimestamp")),
    }
