"""What is already there: every governed object of a cluster, evaluated as if it came today."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from webhook.admission import timeouts as budget
from webhook.admission.facts import facts_of
from webhook.admission.review import TOO_DEEP
from webhook.catalog.catalog import Catalog
from webhook.cluster.client import METADATA_LIST, ApiError, ApiServer, metadata_of
from webhook.cluster.discovery import discovered
from webhook.controller.served import LIST, listed_kinds
from webhook.controller.undefined import Undefined, undefined
from webhook.decision.decide import decide
from webhook.decision.owners import controller_of
from webhook.evaluation.installation import GOVERNED_LABEL, NEVER_GOVERNED
from webhook.evaluation.outcome import (
    ALLOWED,
    EXEMPT_SENDER,
    FAULT,
    NOT_EVALUATED,
    REFUSED,
    UNGOVERNED,
    Allowed,
    Change,
    Denied,
    Violation,
)
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, Stage
from webhook.interface.crd_summary import Brief, brief_of, kinds_with_pods
from webhook.libjq import evaluator as jq
from webhook.pods.definition import Definition
from webhook.policy.selectors import NAME_LABEL
from webhook.service import clock
from webhook.sources.claims import read_claims
from webhook.sources.crds import PATH as CRDS

log = logging.getLogger("podgate.audit")

Json = dict[str, Any]
Labels = Mapping[str, str]
Warn = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Finding:
    """One object: what breaks a rule, what policies on trial would refuse, what would be written.

    `reason` says why it is not evaluated, "" where it is. `fault` is the error where podgate itself
    fails on the object.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    violations: tuple[Violation, ...] = ()
    trial: tuple[Violation, ...] = ()
    changes: tuple[Change, ...] = ()
    reason: str = ""
    fault: Exception | None = None

    @property
    def outcome(self) -> str:
        """allowed, refused or not-evaluated."""
        if self.violations:
            return REFUSED
        return NOT_EVALUATED if self.reason else ALLOWED

    @property
    def key(self) -> tuple[str, ...]:
        """What tells an object from all others; every version of its API lists it."""
        return (self.uid,) if self.uid else (self.kind, self.namespace, self.name)

    @property
    def subject(self) -> dict[str, str]:
        """The object as reports name it."""
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
        }

    @property
    def is_clean(self) -> bool:
        """Whether it could come today as it is."""
        return not (self.violations or self.trial or self.changes or self.fault)


async def governed_namespaces(
    server: ApiServer, governed: str, only: str = ""
) -> dict[str, Labels]:
    """The governed namespaces with their labels; `governed` is label or all."""
    items, _ = await server.items("/api/v1/namespaces")
    found: dict[str, Labels] = {}
    for each in items:
        metadata = each.get("metadata") or {}
        name, labels = str(metadata.get("name")), metadata.get("labels") or {}
        chosen = governed == "all" or labels.get(GOVERNED_LABEL) == "true"
        if chosen and name not in NEVER_GOVERNED and only in ("", name):
            found[name] = {**labels, NAME_LABEL: name}
    return found


async def audited(
    server: ApiServer,
    catalog: Catalog,
    namespaces: Mapping[str, Labels],
    skipped: Counter[str] | None = None,
    warn: Warn = log.warning,
) -> AsyncIterator[Finding]:
    """Every object of a governed kind in these namespaces, evaluated, kind by kind and page by page.

    What controllers make of a governed object is evaluated with it. Kinds that the cluster does not
    serve have no objects. `skipped` counts objects that are not evaluated, by reason; `warn` gets a
    text for each kind that may not be listed. A fault of podgate is the finding on the object that
    leads to it.
    """
    skipped = Counter() if skipped is None else skipped
    claims = await read_claims(server)
    for key, definitions in sorted(catalog.definitions.items()):
        if not catalog.policies_of(*key):
            continue
        for definition in definitions:
            async for body in objects_of(server, definition, warn):
                namespace = str(metadata_of(body).get("namespace") or "")
                if namespace not in namespaces:
                    skipped[UNGOVERNED] += 1
                    continue
                known = References({namespace: namespaces[namespace]}, claims)
                try:
                    if is_child(body, catalog):
                        skipped[EXEMPT_SENDER] += 1
                        continue
                    found = judged(body, definition, catalog, namespace, known)
                except Exception as error:
                    found = faulty(finding_of(body, namespace), error)
                yield found


async def undefined_objects(
    server: ApiServer, catalog: Catalog, namespaces: Mapping[str, Labels], warn: Warn = log.warning
) -> list[tuple[Undefined, int]]:
    """Kinds with pods, and versions, that no definition covers, with their objects in these namespaces.

    The schemas are those of CRDs, and of aggregated APIs what they publish. Of the objects only
    metadata is read. Kinds without objects are left out.
    """
    briefs = await briefs_of(server, warn)
    briefs += await aggregated_briefs(server, catalog, briefs, warn)
    plurals = {(each.group, each.kind): each.plural for each in briefs}
    found: list[tuple[Undefined, int]] = []
    seen: set[tuple[str, str]] = set()
    for each in undefined(catalog.definitions, None, briefs):
        key = (each.group, each.kind)
        # Every version of a kind lists all of its objects.
        if each.converted or key in seen or key not in plurals:
            continue
        seen.add(key)
        path = f"{path_of_version(each.group, each.version)}/{plurals[key]}"
        number = 0
        async for items in pages_of(server, path, each.text, warn):
            spaces = [metadata_of(item).get("namespace") for item in items]
            number += sum(space in namespaces for space in spaces)
        if number:
            found.append((each, number))
    return found


async def briefs_of(server: ApiServer, warn: Warn) -> list[Brief]:
    """The cluster's CRDs in brief, read one by one: each may be a megabyte."""
    found: list[Brief] = []
    async for items in pages_of(server, CRDS, "CustomResourceDefinition", warn):
        for item in items:
            data = await server.find(f"{CRDS}/{metadata_of(item).get('name')}")
            made = brief_of(data)
            if made is not None:
                found.append(made[0])
    return found


async def aggregated_briefs(
    server: ApiServer, catalog: Catalog, briefs: Sequence[Brief], warn: Warn
) -> list[Brief]:
    """The kinds that discovery lists, and that neither a definition nor a CRD describes, in brief."""
    try:
        lists = await discovered(server)
    except ApiError as error:
        if error.code != 404:
            warn(f"kinds of aggregated APIs are not counted: discovery failed: {error}")
        return []
    known = {*catalog.definitions, *((each.group, each.kind) for each in briefs)}
    made: list[Brief] = []
    for version in listed_kinds(each for each in lists if each.get("kind") == LIST):
        name = f"{version.group or 'core'}/{version.name}"
        if not version.is_current:
            warn(f"kinds of {name} are not counted: the API that serves them does not answer")
        plurals = {k: v for k, v in version.kinds.items() if (version.group, k) not in known}
        if not plurals:
            continue
        path = f"/openapi/v3{path_of_version(version.group, version.name)}"
        try:
            pods = kinds_with_pods(await server.ask("GET", path), version.group, version.name)
        except ApiError as error:
            listed = ", ".join(sorted(plurals))
            warn(f"objects of {name} ({listed}) are not counted: their schema is unknown: {error}")
            continue
        made += [
            Brief(
                f"{plural}.{version.group}",
                version.group,
                kind,
                plural,
                {version.name: False},
                True,
            )
            for kind, plural in plurals.items()
            if kind in pods
        ]
    return made


def path_of_version(group: str, version: str) -> str:
    """The path of a version of an API."""
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


async def pages_of(
    server: ApiServer, path: str, name: str, warn: Warn
) -> AsyncIterator[list[Json]]:
    """The metadata of a collection page by page; none where it is not served or may not be read."""
    try:
        async for items, _ in server.pages(path, METADATA_LIST):
            yield items
    except ApiError as error:
        if error.code == 403:
            warn(f"objects of {name} cannot be listed: {error}")
        elif error.code != 404:
            raise


def faulty(found: Finding, error: Exception) -> Finding:
    """The finding on an object that podgate itself fails on."""
    return replace(found, reason=FAULT, fault=error)


async def objects_of(
    server: ApiServer, definition: Definition, warn: Warn = log.warning
) -> AsyncIterator[Json]:
    """The objects of one kind, with their apiVersion and kind, which lists leave out."""
    interface, resource = definition.interface, definition.profile.resource
    if not resource:
        return
    group, version = interface.group, interface.version
    api_version = f"{group}/{version}" if group else version
    path = f"{path_of_version(group, version)}/{resource}"
    try:
        async for items, _ in server.pages(path):
            for each in items:
                yield {**each, "apiVersion": api_version, "kind": interface.kind}
    except ApiError as error:
        if error.code == 403:
            warn(f"objects of {interface.kind} cannot be listed: {error}")
        elif error.code != 404:
            raise


def is_child(body: Json, catalog: Catalog) -> bool:
    """Whether a controller of a governed kind, or of one between, made it."""
    owner = controller_of(body)
    if owner is None:
        return False
    between = (
        each.profile.intermediate_kinds
        for several in catalog.definitions.values()
        for each in several
    )
    return owner in catalog.definitions or any(owner in kinds for kinds in between)


def judged(
    body: Json, definition: Definition, catalog: Catalog, namespace: str, references: References
) -> Finding:
    """One object as if it were made today, in both passes."""
    found = finding_of(body, namespace)
    if budget.too_deep(body):
        return replace(found, violations=(TOO_DEEP,))
    request = request_for(body, definition, namespace, references)
    evaluator = jq.evaluator()
    decision = decide(request, catalog, references, facts_of(request, catalog, evaluator))
    if isinstance(decision, Allowed):
        final = replace(request, object=decision.object, stage=Stage.VALIDATE)
        second = decide(final, catalog, references, facts_of(final, catalog, evaluator))
        reason = decision.not_evaluated
        found = replace(found, trial=decision.audit, changes=decision.changes, reason=reason)
        decision = second if isinstance(second, Denied) else decision
    if isinstance(decision, Denied):
        found = replace(found, violations=decision.violations, changes=())
        found = replace(found, trial=found.trial or decision.audit)
    return found


def request_for(
    body: Json, definition: Definition, namespace: str, references: References
) -> Request:
    """The request by which an object would come today."""
    interface = definition.interface
    return Request(
        interface.group,
        interface.version,
        interface.kind,
        "CREATE",
        body,
        namespace=namespace,
        name=str(metadata_of(body).get("name") or ""),
        namespace_labels=references.namespaces[namespace],
        time=clock.moment(),
    )


def finding_of(body: Json, namespace: str) -> Finding:
    """A finding on an object without anything found yet."""
    name, uid = (str(metadata_of(body).get(key) or "") for key in ("name", "uid"))
    return Finding(str(body["apiVersion"]), str(body["kind"]), namespace, name, uid)
