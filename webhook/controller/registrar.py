"""Keeps the webhook configurations as they should be, and proves them before they may fail closed."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from webhook.catalog.catalog import Catalog
from webhook.cluster.client import ApiError, ApiServer
from webhook.cluster.discovery import discovered
from webhook.controller.contests import FIX, Contests, text_of, writer_of
from webhook.controller.hooks import (
    Wanted,
    desired,
    differs,
    fails_closed,
    is_switched_off,
    narrowed,
)
from webhook.controller.match_conditions import PROBE_LABEL, Definitions, skips_of
from webhook.controller.registration import Options, Target, configurations
from webhook.controller.served import Served, served_of
from webhook.controller.static_registration import SUFFIX
from webhook.controller.undefined import Undefined, undefined
from webhook.interface.crd_summary import Brief
from webhook.service.controller_metrics import ControllerMetrics

log = logging.getLogger("podgate.registrar")

Json = dict[str, Any]
STAGES = ("mutate", "validate")
FIX_TWICE = (
    "remove the files from every API server, or run the controller with --static after"
    " `podgate hooks remove`; docs/runbooks.md#static-files"
)
LOOK_EVERY = 300.0  # seconds after which files are looked for again
SPREAD = 2.0
"""Seconds after which every API server has a configuration that was written, by its watch."""


@dataclass(slots=True)
class Registrar:
    """Brings the configurations up to date.

    `probe_namespace` is a governed namespace in which a Pod must be refused by both hooks before
    they may fail closed; "" registers them as they are wanted at once. `undefined` is what the
    cluster serves and nobody has defined, as the last round has found it. `contests` bound how often
    a configuration is written over somebody else; `differing` are those that are left to them for now.
    `static`: API servers read the registration from files, so none is written here. `twice` is what
    shows that podgate is registered both ways, "" if nothing does.
    """

    server: ApiServer
    options: Options
    metrics: ControllerMetrics
    probe_namespace: str = ""
    is_proven: bool = False
    applied: dict[str, Json] = field(default_factory=dict)
    undefined: tuple[Undefined, ...] = ()
    written: float = float("-inf")
    contests: Contests = field(default_factory=Contests)
    differing: set[str] = field(default_factory=set)
    added: dict[str, tuple[str, ...]] = field(default_factory=dict)
    static: bool = False
    twice: str = ""
    looked: float = float("-inf")

    @property
    def is_spread(self) -> bool:
        """Whether every API server has what podgate wants; before, nothing becomes Ready."""
        return not self.differing and time.monotonic() - self.written >= SPREAD

    def forget(self) -> None:
        """Drop what was known as the leader: another one may lead by now."""
        self.applied.clear()
        self.contests.known.clear()
        self.differing.clear()
        self.added.clear()

    async def register(
        self, catalog: Catalog, target: Target, briefs: Iterable[Brief], *, current: bool = True
    ) -> bool:
        """Bring the webhook configurations up to date; whether they are as they should be.

        `current`: every process evaluates by this catalog. Before, what API servers need not send
        can become less, but not more.
        """
        known = list(briefs)
        served = await self.served(known)
        self.note(undefined(catalog.definitions, served, known))
        self.metrics.proven.set(self.is_proven)
        strict = any(not each.tolerates_existing for each in catalog.policies)
        skips = skips_of(catalog.definitions, strict=strict)
        documents = configurations(governed(catalog), target, self.options, served, skips)
        if self.static:
            await self.look_for_others(documents)
        else:
            await self.apply_all(documents, current=current)
        if self.is_proven and not self.static:
            await self.look_for_files()
        if not self.is_proven:
            self.is_proven = await self.prove()
            self.metrics.proven.set(self.is_proven)
            if self.is_proven and not self.static:
                await self.apply_all(documents, current=current)
        # What is left to somebody else for now is no reason to look again at once.
        return self.is_proven and (self.is_spread or bool(self.differing))

    async def served(self, briefs: Sequence[Brief]) -> Served | None:
        """What the cluster serves, None where that cannot be known: then nothing is left out."""
        try:
            found = served_of(await discovered(self.server))
        except ApiError as error:
            log.warning("every defined kind is registered: discovery failed: %s", error)
            self.metrics.refused("discovery", error.code)
            return None
        return found.with_crds(briefs) if found is not None else None

    def note(self, found: tuple[Undefined, ...]) -> None:
        """Tell what nobody has defined, once."""
        for each in set(found) - set(self.undefined):
            then = "are evaluated as another version" if each.converted else "are not evaluated"
            log.warning(
                "%s is served and has no definition: its objects %s; draft one with"
                " `podgate interface infer`",
                each.text,
                then,
            )
        self.undefined = found
        self.metrics.undefined_are(each.converted for each in found)

    async def apply_all(self, documents: Sequence[Json], *, current: bool) -> None:
        """Apply what differs."""
        for body in documents:
            wanted = Wanted(body, self.is_proven, current)
            found = await self.server.find(wanted.path)
            right = desired(wanted, found)
            name = label(body)
            closed = fails_closed(right)
            if not differs(right, found):
                self.differing.discard(name)
                self.note_added(name, narrowed(right, found))
            elif self.applied.get(wanted.path) == right and not self.may_write(name, found):
                closed = fails_closed(found)
            else:
                await self.server.apply(wanted.path, right)
                self.written = time.monotonic()
                self.differing.discard(name)
                log.info("%s was brought up to date", name)
                self.metrics.wrote(name, self.cause(wanted.path, right, found))
            self.applied[wanted.path] = right
            self.metrics.hooks(name, closed=closed, off=is_switched_off(found))
        self.contests.forget(time.monotonic())
        self.metrics.contested_are(map(label, documents), self.contests.bounded())

    async def look_for_others(self, documents: Sequence[Json]) -> None:
        """Note whether the API has configurations of podgate beside the files."""
        there = [label(each) for each in documents if await self.server.find(Wanted(each).path)]
        self.note_twice(f"the API has {', '.join(there)} beside the files" if there else "")

    async def look_for_files(self) -> None:
        """Send the probe of mutation now and then: its refusal names the hook that came first."""
        if self.probe_namespace and time.monotonic() - self.looked > LOOK_EVERY:
            await self.refuses("mutate")

    def note_twice(self, found: str) -> None:
        """Log once what shows that podgate is registered twice, so that every review comes twice."""
        if found and found != self.twice:
            log.warning("podgate is registered twice: %s; %s", found, FIX_TWICE)
        self.twice = found
        self.metrics.twice.set(bool(found))

    def may_write(self, name: str, found: Json | None) -> bool:
        """Whether to write a configuration over somebody else's edit now: each time later than before."""
        was = self.contests.bounded()
        writer = writer_of(found, self.server.manager)
        may = self.contests.may_write(name, writer, time.monotonic())
        if name not in was and name in self.contests.bounded():
            log.warning("%s; %s", text_of(name, self.contests.known[name]), FIX)
        if not may:
            self.differing.add(name)
        return may

    def note_added(self, name: str, found: tuple[str, ...]) -> None:
        """Log what is new among the namespaces that a platform takes away from podgate."""
        if found and found != self.added.get(name):
            log.warning(
                "the platform added to the namespace selectors of %s, and podgate leaves it there:"
                " namespaces that do not match are not governed: %s",
                name,
                "; ".join(found),
            )
        self.added[name] = found
        self.metrics.narrowed.labels(name).set(len(found))

    def cause(self, path: str, right: Json, found: Json | None) -> str:
        """Why a configuration had to be written: `created`, `drift` or `changed`."""
        if found is None:
            return "created"
        return "drift" if self.applied.get(path) == right else "changed"

    async def prove(self) -> bool:
        """Whether the API server asks both hooks and takes their no."""
        if not self.probe_namespace:
            return True
        for stage in STAGES:
            if not await self.refuses(stage):
                return False
        log.info("both hooks were proven to refuse what is bad; validation may fail closed")
        return True

    async def refuses(self, stage: str) -> bool:
        """Whether one hook refuses a Pod that must be refused."""
        path = f"/api/v1/namespaces/{self.probe_namespace}/pods?dryRun=All"
        self.looked = time.monotonic()
        try:
            await self.server.ask("POST", path, probe(stage))
        except ApiError as error:
            said = str(error)
            if error.code == 403 and "podgate refused" in said:
                by_file = f'"{stage}.podgate.dev{SUFFIX}"' in said
                if not self.static:
                    # Files come first, so that the hook of the API cannot be seen to work.
                    self.note_twice(f"the hook {stage} of a file has answered" if by_file else "")
                if by_file or (f'"{stage}.podgate.dev"' in said and not self.static):
                    return True
            log.warning("the hook %s is not proven to work yet: %s", stage, error)
            self.metrics.refused("probe", error.code)
            return False
        log.warning("a Pod that must be refused was not, by the hook %s: hooks stay open", stage)
        return False


def label(body: Json) -> str:
    """Kind and name of a configuration, as kubectl has them."""
    return f"{body['kind'].lower()}/{body['metadata']['name']}"


def probe(stage: str) -> Json:
    """A Pod that the shipped system policy refuses; it is sent as a dry run only.

    Mutation refuses it first, but leaves alone the one that is labelled for validation.
    """
    container = {
        "name": "probe",
        "image": "podgate.dev/probe",
        "securityContext": {"privileged": True},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "podgate-probe-", "labels": {PROBE_LABEL: stage}},
        "spec": {"containers": [container]},
    }


def governed(catalog: Catalog) -> Definitions:
    """The definitions of kinds that some policy governs: nothing else is sent to the webhook."""
    return {key: found for key, found in catalog.definitions.items() if catalog.policies_of(*key)}
