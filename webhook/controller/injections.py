"""Finds what other webhooks added to objects that controllers made, and drafts entries that exempt it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from webhook.admission.facts import find_facts
from webhook.admission.request_class import is_made_verbatim
from webhook.catalog.catalog import Catalog
from webhook.cluster.client import ApiError, ApiServer, metadata_of
from webhook.cluster.lookups import PATH
from webhook.controller.audit import (
    RESUMED,
    Finding,
    Progress,
    faulty,
    finding_of,
    list_objects,
    request_for,
    show_nothing,
)
from webhook.decision.decide import decide
from webhook.decision.owners import owner_reference
from webhook.decision.suggested import Entry, suggest
from webhook.evaluation.outcome import Decision, Denied, NeededObject, OwnerReference, Violation
from webhook.evaluation.references import References
from webhook.evaluation.request import ObjectRead, Request, RequestClass, Stage
from webhook.libjq.evaluator import get_evaluator
from webhook.pods.definition import Definition
from webhook.sources.claims import read_references

log = logging.getLogger("podgate.audit")

Json = dict[str, Any]
OWNERS_KEPT = 64


@dataclass(frozen=True, slots=True)
class Injection:
    """One object that a controller made, and the entries that the list of injected content lacks for it.

    No entry can exempt the violations in `left`.
    """

    found: Finding
    owner: OwnerReference
    entries: tuple[Entry, ...] = ()
    left: tuple[Violation, ...] = ()


@dataclass(slots=True)
class Owners:
    """Reads owners and their revisions; caches the last ones, as objects of one owner come together."""

    server: ApiServer
    kept: dict[str, ObjectRead] = field(default_factory=dict)
    forbidden: set[str] = field(default_factory=set)

    async def read(self, needed: NeededObject) -> ObjectRead:
        """Read an object; ApiError if the API server does not answer."""
        known = self.kept.get(needed.path)
        if known is not None:
            return known
        found = ObjectRead()
        if PATH.fullmatch(needed.path):
            try:
                found = ObjectRead(await self.server.find(needed.path))
            except ApiError as error:
                if error.code != 403:
                    raise
                found = ObjectRead(forbidden=True)
                self.warn(needed.path.split("/")[-2], error)
        if len(self.kept) >= OWNERS_KEPT:
            del self.kept[next(iter(self.kept))]
        self.kept[needed.path] = found
        return found

    def warn(self, resource: str, error: ApiError) -> None:
        """Log once for each kind of owner that podgate may not read it."""
        if resource not in self.forbidden:
            self.forbidden.add(resource)
            log.warning("%s are not compared with what was made of them: %s", resource, error)


async def injections(
    server: ApiServer,
    catalog: Catalog,
    namespaces: Mapping[str, Mapping[str, str]],
    progress: Progress = show_nothing,
) -> AsyncIterator[Injection]:
    """Every object that a controller made of evaluated pods, with the entries that the list lacks for it.

    Each object is evaluated as if it were created again, as in the validating pass. Objects without
    an owner are omitted, since no controller creates them again.
    """
    references, owners = await read_references(server, RESUMED), Owners(server)
    for _, definitions in sorted(catalog.definitions.items()):
        async for definition, body in list_objects(server, definitions, progress=progress):
            namespace = str(metadata_of(body).get("namespace") or "")
            owner = owner_reference(body)
            if owner is None or namespace not in namespaces:
                continue
            known = replace(references, namespaces={namespace: namespaces[namespace]})
            found = finding_of(body, namespace)
            try:
                request = as_created(request_for(body, definition, namespace, known))
                if not is_made_verbatim(request, catalog):
                    continue
                one = await injection(owners, request, definition, catalog, known)
            except ApiError:
                raise
            except Exception as error:
                yield Injection(faulty(found, error), owner)
                continue
            if one is not None:
                violations, entries, left = one
                yield Injection(replace(found, violations=violations), owner, entries, left)


Lacking = tuple[tuple[Violation, ...], tuple[Entry, ...], tuple[Violation, ...]]
"""Violations, the entries that exempt them, and the violations that no entry exempts."""


async def injection(
    owners: Owners,
    request: Request,
    definition: Definition,
    catalog: Catalog,
    references: References,
) -> Lacking | None:
    """The entries that the list lacks for one object; None if its owner is gone."""
    evaluator = get_evaluator()
    while True:
        facts = find_facts(request, catalog, evaluator)
        decision: Decision = decide(request, catalog, references, facts)
        if not isinstance(decision, Denied):
            return (), (), ()
        needed = decision.needs
        if needed is None or needed.path in request.objects:
            break
        read = await owners.read(needed)
        metadata = (read.object or {}).get("metadata") or {}
        if needed.uid and not read.forbidden and metadata.get("uid") != needed.uid:
            return None
        request = replace(request, objects={**request.objects, needed.path: read})
    found = suggest(request, catalog, references, definition, facts, decision)
    return decision.violations, found.entries, found.left


def as_created(request: Request) -> Request:
    """The request with which a controller created the object; debug containers came later."""
    body = request.object
    spec = body.get("spec")
    if (request.group, request.kind) == ("", "Pod") and isinstance(spec, dict):
        kept = {key: each for key, each in spec.items() if key != "ephemeralContainers"}
        body = {**body, "spec": kept}
    return replace(request, object=body, stage=Stage.VALIDATE, request_class=RequestClass.DERIVED)
