"""The controller: one elected leader that registers the webhook and writes statuses and reports."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from webhook.catalog.catalog import Catalog
from webhook.catalog.watched_documents import Key, Outcome, WatchedDocuments
from webhook.cluster.client import ApiError, ApiServer
from webhook.cluster.lease import Election
from webhook.cluster.list_and_watch import Collection, follow
from webhook.controller import contests
from webhook.controller.certificates import Certificates, first_end
from webhook.controller.claim_creator import ClaimCreator
from webhook.controller.owner_access import FIX as FORBIDDEN_FIX
from webhook.controller.owner_access import Kind, notes_on, owners_of, review_of, text_of
from webhook.controller.registrar import Registrar
from webhook.controller.registration import Options, Target, never_governed
from webhook.controller.rewriting import FIX, Rewriter, find_rewriters, notes
from webhook.controller.scan import Scanner
from webhook.controller.status import (
    Effect,
    LoadedGenerations,
    find_effects,
    find_loaded,
    state_of,
    status_of,
)
from webhook.decision.messages import problem_text
from webhook.documents.enclosed import origin_of
from webhook.documents.problem import Problem
from webhook.interface import names
from webhook.pods.schema_proof import UNCOVERED
from webhook.service import clock
from webhook.service.controller_metrics import ControllerMetrics
from webhook.service.processes import WorkerReports
from webhook.sources.catalog_source import fixed_of
from webhook.sources.configmaps import ConfigMaps
from webhook.sources.crds import Known, Schemas
from webhook.sources.last_good import LastGoodStore
from webhook.sources.load import Sources, schemas_of
from webhook.sources.reader import collections_of, documents_in

log = logging.getLogger("podgate.controller")

Json = dict[str, Any]
EVERY = 10.0  # seconds after which everything is reconciled again, changed or not
RIGHTS_EVERY = 300.0  # seconds after which access rights are checked again
RENEWED = 5.0  # seconds between two renewals of the lease
SILENCE = (
    60.0  # seconds without progress of the event loop after which the process should be restarted
)
SLOW = 1.0  # seconds between two rounds while some document is not in force everywhere
OWNED_ELSEWHERE = frozenset(each.kind for each in names.INTERFACES)

AskWorkers = Callable[[], Awaitable[WorkerReports]]


@dataclass(slots=True)
class Controller:
    """Everything that writes to the cluster. `ask_workers` reads the reports of webhook processes.

    `probe_namespace` is passed to the Registrar. Existing objects are scanned every `scan_every`
    seconds, never if it is 0. With `create_claims` the controller creates the claims that policies
    mount. `certificates` are set if the controller rotates them itself; a `ca_file` of somebody
    else is read again in each round. `webhook_user` is the webhook's account, "" if it is the
    controller's own.
    """

    server: ApiServer
    sources: Sources
    target: Target
    options: Options
    election: Election
    ask_workers: AskWorkers
    probe_namespace: str = ""
    scan_every: float = 0.0
    create_claims: bool = False
    certificates: Certificates | None = None
    ca_file: Path | None = None
    metrics: ControllerMetrics = field(default_factory=ControllerMetrics.new)
    collections: dict[str, Collection] = field(init=False)
    watched: WatchedDocuments = field(default_factory=WatchedDocuments)
    configmaps: ConfigMaps = field(default_factory=ConfigMaps)
    dirty: asyncio.Event = field(default_factory=asyncio.Event)
    leads: bool = False
    generation: int = 0
    catalog: Catalog | None = None
    ends: dict[str, datetime] = field(default_factory=dict)
    effects: dict[str, Effect] = field(default_factory=dict)
    beaten: float = field(default_factory=time.monotonic)
    crds: Known = field(init=False)
    schemas: Schemas = field(init=False)
    registrar: Registrar = field(init=False)
    last_good: LastGoodStore = field(init=False)
    scanner: Scanner = field(init=False)
    creator: ClaimCreator | None = field(init=False, default=None)
    uncovered: set[Problem] = field(default_factory=set)
    rewriters: tuple[Rewriter, ...] = ()
    webhook_user: str = ""
    unreadable: frozenset[Kind] = frozenset()

    def __post_init__(self) -> None:
        """Create the watchers, the registrar and the scanner with the shared connection and metrics."""
        self.collections = collections_of(self.election.namespace)
        self.crds = Known(self.server, self.dirty.set)
        self.schemas = Schemas(self.crds.bodies.__getitem__)
        self.registrar = Registrar(self.server, self.options, self.metrics, self.probe_namespace)
        self.last_good = LastGoodStore(self.server, self.election.namespace)
        governed = self.options.governed
        self.scanner = Scanner(self.server, governed, self.metrics, lambda: self.leads)
        if self.create_claims:
            never = {*never_governed(self.target), *self.options.exempt, self.probe_namespace}
            given = governed, frozenset(never), self.metrics, self.dirty.set
            self.creator = ClaimCreator(self.server, *given)

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set, then release the lease."""
        async with asyncio.TaskGroup() as tasks:
            working = [
                tasks.create_task(follow(self.server, each, lambda _: self.dirty.set()))
                for each in self.collections.values()
            ]
            if self.creator is not None:
                working += [
                    tasks.create_task(follow(self.server, each, self.creator.note))
                    for each in (self.creator.namespaces, self.creator.claims)
                ]
            working.append(tasks.create_task(self.crds.run()))
            working += [tasks.create_task(self.elect()), tasks.create_task(self.reconcile_all())]
            working += [tasks.create_task(self.beat()), tasks.create_task(self.ask_rights())]
            if self.scan_every:
                working.append(tasks.create_task(self.scan_all()))
            await stop.wait()
            await end_tasks(working)
        with contextlib.suppress(ApiError):
            await self.release()

    # Status of the controller, for any thread

    async def beat(self) -> None:
        """Note each second that the event loop runs, and how old the data of the cluster is."""
        while True:
            self.beaten = time.monotonic()
            self.metrics.heard.set(min(each.heard for each in self.collections.values()))
            await asyncio.sleep(1.0)

    def stuck(self) -> list[str]:
        """Why this process should be restarted; empty while it works."""
        silent = time.monotonic() - self.beaten
        return [f"nothing was done for {silent:.0f} s"] if silent > SILENCE else []

    def unready(self) -> list[str]:
        """Why it is not ready to lead; empty once it has read the cluster's documents."""
        unknown = [each for each in self.collections.values() if not each.is_known]
        return [f"{each.path}: {each.trouble}" for each in unknown]

    def certificate_days(self) -> Json:
        """Days until leaf, CA and published bundle expire, as of the last round."""
        now = datetime.now(UTC)
        days = {part: (end - now).total_seconds() / 86_400 for part, end in self.ends.items()}
        return {"certificate_days": {part: round(each, 1) for part, each in days.items()}}

    # Leader election

    async def elect(self) -> None:
        """Become the leader if there is none, and renew the lease while possible."""
        failures = 0.0
        while True:
            try:
                leads = await self.try_election()
                failures = 0.0
            except ApiError as error:
                failures += RENEWED
                log.warning("the lease cannot be read or renewed: %s", error)
                self.metrics.count_refusal("lease", error.code)
                # Another process may be the leader now, so unfinished work stays as it is.
                leads = self.leads and failures < self.election.seconds
            if leads != self.leads:
                log.info("%s leads", self.election.identity if leads else "somebody else")
                self.leads = leads
                self.registrar.forget()
                self.watched = WatchedDocuments()
                self.metrics.leads(leads)
                self.dirty.set()
            await asyncio.sleep(RENEWED)

    async def try_election(self) -> bool:
        """Read the lease and try to take it."""
        election = self.election
        found = await self.server.find(election.path)
        now = datetime.now(UTC)
        step = election.step(found, now)
        if step == "wait":
            return False
        body = election.lease_with_us(found, now)
        try:
            if step == "create":
                await self.server.create(election.collection, body)
            else:
                await self.server.ask("PUT", election.path, body)
        except ApiError as error:
            if error.code == 409:
                return False
            raise
        return True

    async def release(self) -> None:
        """Release the lease, so that the next leader need not wait."""
        found = await self.server.find(self.election.path)
        if self.leads and found is not None:
            await self.server.ask(
                "PUT", self.election.path, self.election.lease_without_holder(found)
            )

    # Reconciling

    async def reconcile_all(self) -> None:
        """Reconcile the cluster at every change, and after a while without one."""
        while not all(each.is_known for each in self.collections.values()):
            await asyncio.sleep(0.05)
        while True:
            self.dirty.clear()
            pause = EVERY
            if self.leads:
                try:
                    pause = EVERY if await self.reconcile() else SLOW
                except ApiError as error:
                    log.warning("bringing the cluster up to date failed: %s", error)
                    self.metrics.count_refusal("reconcile", error.code)
                except Exception:
                    log.exception("bringing the cluster up to date failed")
                    self.metrics.count_fault("reconcile")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self.dirty.wait()

    async def reconcile(self) -> bool:
        """Run one round; return whether everything is up to date."""
        remembered = {} if self.watched.started else await self.last_good.recall()
        outcome = self.take(remembered)
        if outcome is None:
            return True
        if self.watched.started:
            await self.last_good.keep(self.watched.in_force())
        reports = await self.ask_workers()
        if self.certificates is not None:
            ca = await self.certificates.keep(datetime.now(UTC), reports.leaves)
            self.target = replace(self.target, ca=ca)
        elif self.ca_file is not None:
            self.target = replace(
                self.target, ca=await asyncio.to_thread(self.read_ca, self.ca_file)
            )
        loaded = find_loaded(reports.workers)
        self.note_rewriters(find_rewriters(reports.workers))
        current = loaded.workers > 0 and all(
            loaded.lowest.get(key, 0) == each.in_force for key, each in outcome.statuses.items()
        )
        registered = await self.register(current=current)
        if self.certificates is not None:
            self.certificates.note_published(self.target.ca, datetime.now(UTC))
        created = True
        if self.creator is not None and self.catalog is not None:
            created = await self.creator.create(self.catalog)
        await self.write_statuses(outcome, loaded)
        self.report_metrics(outcome, loaded)
        return registered and current and created

    async def register(self, *, current: bool) -> bool:
        """Update the registration; return whether it is up to date."""
        if self.catalog is None:
            return False
        briefs = (each.brief for each in self.crds.found.values())
        return await self.registrar.register(self.catalog, self.target, briefs, current=current)

    def note_rewriters(self, found: tuple[Rewriter, ...]) -> None:
        """Log new users that keep removing values that podgate writes."""
        known = {(each.user, each.object) for each in self.rewriters}
        for each in found:
            if (each.user, each.object) not in known:
                log.warning("%s; %s", each.text, FIX)
        self.rewriters = found

    def read_ca(self, file: Path) -> bytes:
        """Read the CA file; return the previous CA if it cannot be read."""
        try:
            return file.read_bytes() or self.target.ca
        except OSError as error:
            log.warning("the CA cannot be read again: %s: %s", file, error.strerror)
            return self.target.ca

    def report_metrics(self, outcome: Outcome, loaded: LoadedGenerations) -> None:
        """Set the metrics of a round, unless another process is the leader now."""
        if not self.leads:
            return
        self.ends = dict(self.certificates.ends) if self.certificates is not None else {}
        end = first_end(self.target.ca)
        if end is not None:
            self.ends["bundle"] = end
        self.metrics.certificates(self.ends)
        self.metrics.set_documents(
            (key[0], state_of(document_status, loaded, key, ended=self.has_ended(key)))
            for key, document_status in outcome.statuses.items()
        )
        self.metrics.note_round(loaded.workers)

    def has_ended(self, key: Key) -> bool:
        """Whether a document is an exception that has expired."""
        return self.effects.get(origin_of(key), Effect()).has_ended(clock.moment())

    def take(self, remembered: Mapping[Key, Any]) -> Outcome | None:
        """Take the current documents; None if those in files have errors."""
        fixed, problems = fixed_of(self.sources)
        if fixed is None:
            log.error("documents of files are wrong: %d problems", len(problems))
            return None
        beside, _ = schemas_of(self.sources.crds)
        schemas = partial(self.schemas.of, self.crds.found, beside)
        self.generation += 1
        objects = self.configmaps.unpack(
            {key: body for key, body, _ in documents_in(self.collections)}
        )
        if self.watched.started:
            outcome = self.watched.take(objects, fixed, schemas, self.generation)
        else:
            given = objects, remembered, fixed, schemas, self.generation
            outcome = self.watched.begin(*given)
        self.catalog = outcome.catalog or self.catalog
        found = {each for each in outcome.problems if each.reason == UNCOVERED}
        for each in found - self.uncovered:
            log.warning("%s", problem_text(each))
        self.uncovered = found
        return outcome

    # Access rights

    async def ask_rights(self) -> None:
        """Check which owners the webhook may read: when kinds come or go, and every five minutes."""
        known, asked = dict[Kind, str](), -math.inf
        while True:
            owners = owners_of(self.catalog) if self.leads and self.catalog is not None else {}
            if owners and (owners != known or time.monotonic() - asked > RIGHTS_EVERY):
                known, asked = owners, time.monotonic()
                try:
                    self.note_unreadable(await self.forbidden_of(owners))
                except ApiError as error:
                    log.warning("which owners the webhook may read is not known: %s", error)
                    self.metrics.count_refusal("rights", error.code)
            elif not owners and self.unreadable:
                known = {}
                self.note_unreadable(frozenset())
            await asyncio.sleep(RENEWED)

    async def forbidden_of(self, owners: Mapping[Kind, str]) -> frozenset[Kind]:
        """The kinds that the webhook may not get; sends one access review after the other."""
        found = set()
        for (group, kind), resource in owners.items():
            answer = await self.server.ask("POST", *review_of(group, resource, self.webhook_user))
            if not (answer.get("status") or {}).get("allowed"):
                found.add((group, kind))
        return frozenset(found)

    def note_unreadable(self, found: frozenset[Kind]) -> None:
        """Log owners that the webhook can no longer read, and schedule new statuses."""
        for each in sorted(found - self.unreadable):
            log.warning("%s; %s", text_of(each), FORBIDDEN_FIX)
        if found != self.unreadable:
            self.unreadable = found
            self.dirty.set()

    # Reports

    async def scan_all(self) -> None:
        """Scan existing objects at intervals, at low priority; the first time as soon as it leads."""
        while True:
            while not self.leads or self.catalog is None:
                await asyncio.sleep(RENEWED)
            try:
                await self.scanner.look(self.catalog)
            except ApiError as error:
                log.warning("looking over what is there failed: %s", error)
                self.metrics.count_refusal("scan", error.code)
            except Exception:
                log.exception("looking over what is there failed")
                self.metrics.count_fault("scan")
            await asyncio.sleep(self.scan_every)

    # Status

    async def write_statuses(self, outcome: Outcome, loaded: LoadedGenerations) -> None:
        """Write the status of every document whose status has changed."""
        now, noted = clock.moment(), dict(notes(self.rewriters))
        if self.catalog is not None:
            self.effects = find_effects(self.catalog, self.registrar.undefined)
            noted |= notes_on(self.unreadable, self.catalog, outcome.statuses)
        contested = contests.notes(self.registrar.contests.bounded_contests(), outcome.statuses)
        uncreated = self.creator.notes(outcome.statuses) if self.creator is not None else {}
        for key, several in (*contested.items(), *uncreated.items()):
            noted[key] = (*noted.get(key, ()), *several)
        for key, _, body in documents_in(self.collections):
            document_status = outcome.statuses.get(key)
            if document_status is None:
                continue
            known = body.get("status") or {}
            effect = self.effects.get(origin_of(key), Effect())
            spread = self.registrar.is_spread
            status = status_of(
                document_status, loaded, key, effect, known, now, noted.get(key, ()), spread=spread
            )
            if key[0] in OWNED_ELSEWHERE:
                # The schema of the owning project has only conditions and drops other members.
                status = {"conditions": status["conditions"]}
            if any(known.get(name) != each for name, each in status.items()):
                await self.write_status(key, body, status)

    async def write_status(self, key: Key, body: Json, status: Json) -> None:
        """Write one status, unless the document was deleted in the meantime."""
        kind, namespace, name = key
        path = self.collections[kind].path
        if namespace:
            head, _, plural = path.rpartition("/")
            path = f"{head}/namespaces/{namespace}/{plural}"
        try:
            await self.server.merge(f"{path}/{name}/status", {"status": status})
        except ApiError as error:
            if error.code not in (404, 409):
                raise
        else:
            body["status"] = status


async def end_tasks(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel tasks until all have ended: a task may miss the first cancellation while it gets its answer."""
    while left := [each for each in tasks if not each.done()]:
        for each in left:
            each.cancel()
        await asyncio.wait(left, timeout=1.0)
