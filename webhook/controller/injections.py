"""What other webhooks added to objects that controllers made, and what would excuse it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from webhook.admission.facts import facts_of_all
from webhook.admission.request_class import is_made_verbatim
from webhook.catalog.catalog import Catalog
from webhook.cluster.client import ApiError, ApiServer, metadata_of
from webhook.cluster.lookups import PATH
from webhook.controller.audit import Finding, faulty, finding_of, objects_of, request_for
from webhook.decision.decide import decide
from webhook.decision.owners import owner_reference
from webhook.decision.suggested import Entry, suggest
from webhook.evaluation.outcome import Decision, Denied, NeededObject, OwnerReference, Violation
from webhook.evaluation.references import References
from webhook.evaluation.request import ObjectRead, Request, Stage, Treatment
from webhook.libjq import evaluator as jq
from webhook.pods.definition import Definition
from webhook.sources.claims import read_claims

log = logging.getLogger("podgate.audit")

Json = dict[str, Any]
OWNERS_KEPT = 64


@dataclass(frozen=True, slots=True)
class Injection:
    """One object that a controller made, and what the list of injected content lacks for it.

    No entry excuses the violations that are `left`.
    """

    found: Finding
    owner: OwnerReference
    entries: tuple[Entry, ...] = ()
    left: tuple[Violation, ...] = ()


@dataclass(slots=True)
class Owners:
    """Reads owners and their revisions; the last ones are kept, as their objects come together."""

    server: ApiServer
    kept: dict[str, ObjectRead] = field(default_factory=dict)
    forbidden: set[str] = field(default_factory=set)

    async def read(self, needed: NeededObject) -> ObjectRead:
        """An object as it is; ApiError where the API server does not answer."""
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
        """Log once for each kind of owner that it may not be read."""
        if resource not in self.forbidden:
            self.forbidden.add(resource)
            log.warning("%s are not compared with what was made of them: %s", resource, error)


async def injections(
    server: ApiServer, catalog: Catalog, namespaces: Mapping[str, Mapping[str, str]]
) -> AsyncIterator[Injection]:
    """Every object that a controller made of evaluated pods, with what the list lacks for it.

    Each is evaluated as the validating pass would if it were made again. One whose owner is gone
    will not be.
    """
    claims, owners = await read_claims(server), Owners(server)
    for _, definitions in sorted(catalog.definitions.items()):
        seen: set[str] = set()
        for definition in definitions:
            async for body in objects_of(server, definition):
                namespace = str(metadata_of(body).get("namespace") or "")
                owner = owner_reference(body)
                if owner is None or namespace not in namespaces:
                    continue
                known = References({namespace: namespaces[namespace]}, claims)
                found = finding_of(body, namespace)
                try:
                    request = as_created(request_for(body, definition, namespace, known))
                    if found.uid in seen or not is_made_verbatim(request, catalog):
                        continue
                    if len(definitions) > 1:
                        seen.add(found.uid)  # each version lists the same objects
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
"""Violations, entries that excuse them, and those that none excuses."""


async def injection(
    owners: Owners,
    request: Request,
    definition: Definition,
    catalog: Catalog,
    references: References,
) -> Lacking | None:
    """What the list lacks for one object; None where its owner is gone."""
    evaluator = jq.evaluator()
    while True:
        facts = facts_of_all(request, catalog, evaluator)
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
    """The request of a controller that makes the object; debug containers came to it later."""
    body = request.object
    spec = body.get("spec")
    if (request.group, request.kind) == ("", "Pod") and isinstance(spec, dict):
        kept = {key: each for key, each in spec.items() if key != "ephemeralContainers"}
        body = {**body, "spec": kept}
    return replace(request, object=body, stage=Stage.VALIDATE, treatment=Treatment.DERIVED)
