"""Evaluates every governed object of a cluster as if it were created today."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from webhook.admission import timeouts
from webhook.admission.facts import decide_with_facts
from webhook.admission.review import TOO_DEEP
from webhook.catalog.catalog import Catalog
from webhook.cluster.client import ApiError, ApiServer, metadata_of
from webhook.cluster.discovery import discover_resources
from webhook.cluster.list_and_watch import METADATA_LIST, read_pages
from webhook.controller.served import LIST, listed_kinds
from webhook.controller.undefined import Undefined, find_undefined
from webhook.decision.both_passes import decide_both_passes
from webhook.decision.owners import controller_of
from webhook.devices.kinds import DOMAIN_LABEL, KINDS, TEMPLATE
from webhook.evaluation.installation import GOVERNED_LABEL, NEVER_GOVERNED
from webhook.evaluation.outcome import (
    ALLOWED,
    EXEMPT_SENDER,
    FAULT,
    NOT_EVALUATED,
    REFUSED,
    UNGOVERNED,
    Change,
    Denied,
    Violation,
)
from webhook.evaluation.references import References
from webhook.evaluation.request import Request
from webhook.interface.crd_summary import Brief, brief_of, kinds_with_pods
from webhook.libjq.evaluator import get_evaluator
from webhook.pods.definition import Definition
from webhook.policy.selectors import NAME_LABEL
from webhook.service import clock
from webhook.sources.claims import read_references
from webhook.sources.crds import PATH as CRDS

log = logging.getLogger("podgate.audit")

Json = dict[str, Any]
Labels = Mapping[str, str]
Warn = Callable[[str], None]
Progress = Callable[[str, int, int], None]
"""Gets a kind, how many of its objects were read, and how many there are."""

RESUMED = 120.0  # seconds in which a list goes on after an API server that did not answer


def show_nothing(kind: str, read: int, number: int) -> None:
    """Show no progress."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result for one object: violations, those of policies in warn or audit mode, and missing defaults.

    `reason` says why the object is not evaluated, "" if it is. `fault` is the error if podgate
    itself fails on the object.
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
    def subject(self) -> dict[str, str]:
        """The object as reports name it."""
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
        }

    def __sub__(self, known: Finding) -> Finding:
        """What this finding has that another one on the same object has not."""
        written = [(each.path, each.value) for each in known.changes]
        return replace(
            self,
            violations=tuple(each for each in self.violations if each not in known.violations),
            trial=tuple(each for each in self.trial if each not in known.trial),
            changes=tuple(each for each in self.changes if (each.path, each.value) not in written),
        )

    @property
    def is_clean(self) -> bool:
        """Whether the object could be created as it is."""
        return not (self.violations or self.trial or self.changes or self.fault)


async def governed_namespaces(
    server: ApiServer, governed: str, only: str = ""
) -> dict[str, Labels]:
    """The governed namespaces with their labels; `governed` is label or all."""
    found: dict[str, Labels] = {}
    async for page in read_pages(server, "/api/v1/namespaces", METADATA_LIST, resumed=RESUMED):
        for metadata in map(metadata_of, page.items):
            name, labels = str(metadata.get("name")), metadata.get("labels") or {}
            chosen = governed == "all" or labels.get(GOVERNED_LABEL) == "true"
            if chosen and name not in NEVER_GOVERNED and only in ("", name):
                found[name] = {**labels, NAME_LABEL: name}
    return found


async def audit_objects(
    server: ApiServer,
    catalog: Catalog,
    namespaces: Mapping[str, Labels],
    *,
    today: Catalog | None = None,
    skipped: Counter[str] | None = None,
    warn: Warn = log.warning,
    progress: Progress = show_nothing,
) -> AsyncIterator[Finding]:
    """Every object of a governed kind in these namespaces, evaluated, kind by kind and page by page.

    No more than a page of objects is in memory. With `today`, a finding is what `catalog` adds to
    what that one finds. What controllers make of a governed object is evaluated with it. Kinds that
    the cluster does not serve have no objects. `skipped` counts objects that are not evaluated, by
    reason; `warn` gets a text for each kind that may not be listed. A fault of podgate is the
    finding on the object that leads to it.
    """
    skipped = Counter() if skipped is None else skipped
    references = await read_references(server, RESUMED)
    for key, definitions in sorted(catalog.definitions.items()):
        if not is_evaluated(catalog, key):
            continue
        async for definition, body in list_objects(server, definitions, warn, progress):
            namespace = str(metadata_of(body).get("namespace") or "")
            if namespace not in namespaces:
                skipped[UNGOVERNED] += 1
                continue
            known = replace(references, namespaces={namespace: namespaces[namespace]})
            try:
                if is_child(body, catalog):
                    skipped[EXEMPT_SENDER] += 1
                    continue
                found = evaluate_object(body, definition, catalog, namespace, known)
                if today is not None and is_evaluated(today, key) and not found.is_clean:
                    found -= evaluate_object(body, definition, today, namespace, known)
            except Exception as error:
                found = faulty(finding_of(body, namespace), error)
            yield found


async def undefined_objects(
    server: ApiServer, catalog: Catalog, namespaces: Mapping[str, Labels], warn: Warn = log.warning
) -> list[tuple[Undefined, int]]:
    """Kinds with pods, and versions, that no definition covers, with their objects in these namespaces.

    The schemas are those of CRDs, and those that aggregated APIs publish. Only the metadata of the
    objects is read. Kinds without objects are omitted.
    """
    briefs = await briefs_of(server, warn)
    briefs += await aggregated_briefs(server, catalog, briefs, warn)
    plurals = {(each.group, each.kind): each.plural for each in briefs}
    found: list[tuple[Undefined, int]] = []
    seen: set[tuple[str, str]] = set()
    for each in find_undefined(catalog.definitions, None, briefs):
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
    """Summarize the kinds that discovery lists and that neither a definition nor a CRD describes."""
    try:
        lists = await discover_resources(server)
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
    """The metadata of a collection, page by page; empty if it is not served or may not be listed."""
    try:
        async for page in read_pages(server, path, METADATA_LIST, resumed=RESUMED):
            yield page.items
    except ApiError as error:
        if error.code == 403:
            warn(f"objects of {name} cannot be listed: {error}")
        elif error.code != 404:
            raise


def faulty(found: Finding, error: Exception) -> Finding:
    """The finding on an object that podgate itself fails on."""
    return replace(found, reason=FAULT, fault=error)


async def list_objects(
    server: ApiServer,
    definitions: Sequence[Definition],
    warn: Warn = log.warning,
    progress: Progress = show_nothing,
) -> AsyncIterator[tuple[Definition, Json]]:
    """The objects of a kind, in the first of its versions that the cluster serves.

    Each comes with its apiVersion and kind, which lists leave out. A list goes on where it was when
    the API server does not answer for RESUMED seconds at most.
    """
    for definition in definitions:
        interface, resource = definition.interface, definition.profile.resource
        if not resource:
            continue
        group, version = interface.group, interface.version
        api_version = f"{group}/{version}" if group else version
        path, count = f"{path_of_version(group, version)}/{resource}", 0
        try:
            async for page in read_pages(server, path, resumed=RESUMED):
                for each in page.items:
                    yield definition, {**each, "apiVersion": api_version, "kind": interface.kind}
                count += len(page.items)
                progress(interface.kind, count, count + page.remaining)
        except ApiError as error:
            if error.code == 404:
                continue
            if error.code != 403:
                raise
            warn(f"objects of {interface.kind} cannot be listed: {error}")
        return


def is_evaluated(catalog: Catalog, kind: tuple[str, str]) -> bool:
    """Whether objects of a kind are evaluated: by a policy, or because they have devices."""
    return bool(catalog.policies_of(*kind)) or kind in KINDS


def is_child(body: Json, catalog: Catalog) -> bool:
    """Whether a controller of a governed kind, or of a kind that such a controller makes, made it.

    Templates of the device driver have a label, and no owner.
    """
    owner = controller_of(body)
    if owner is None:
        return body.get("kind") == TEMPLATE and DOMAIN_LABEL in (
            metadata_of(body).get("labels") or {}
        )
    between = (
        each.profile.intermediate_kinds
        for several in catalog.definitions.values()
        for each in several
    )
    return owner in catalog.definitions or any(owner in kinds for kinds in between)


def evaluate_object(
    body: Json, definition: Definition, catalog: Catalog, namespace: str, references: References
) -> Finding:
    """Evaluate one object as if it were created today, in both passes."""
    found = finding_of(body, namespace)
    if timeouts.too_deep(body):
        return replace(found, violations=(TOO_DEEP,))
    request = request_for(body, definition, namespace, references)
    evaluator = get_evaluator()
    decision = decide_both_passes(
        request, lambda asked: decide_with_facts(asked, catalog, references, evaluator)
    )
    if isinstance(decision, Denied):
        return replace(found, violations=decision.violations, trial=decision.audit)
    return replace(
        found, trial=decision.audit, changes=decision.changes, reason=decision.not_evaluated
    )


def request_for(
    body: Json, definition: Definition, namespace: str, references: References
) -> Request:
    """The request that would create the object today."""
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
    """An empty finding for an object."""
    name, uid = (str(metadata_of(body).get(key) or "") for key in ("name", "uid"))
    return Finding(str(body["apiVersion"]), str(body["kind"]), namespace, name, uid)
