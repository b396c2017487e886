"""Applies the webhook configurations, and proves that they work before they may fail closed."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from webhook.catalog.catalog import Catalog
from webhook.cluster.client import ApiError, ApiServer
from webhook.cluster.discovery import discover_resources
from webhook.controller.contests import FIX, Contests, text_of, writer_of
from webhook.controller.hooks import (
    Wanted,
    desired_configuration,
    differs,
    fails_closed,
    is_switched_off,
    platform_selectors,
)
from webhook.controller.match_conditions import PROBE_LABEL, Definitions, skips_of
from webhook.controller.registration import Options, Target, configurations
from webhook.controller.served import Served, served_of
from webhook.controller.static_registration import SUFFIX
from webhook.controller.undefined import Undefined, find_undefined
from webhook.devices.kinds import KINDS
from webhook.interface.crd_summary import Brief
from webhook.service.controller_metrics import ControllerMetrics

log = logging.getLogger("podgate.registrar")

Json = dict[str, Any]
STAGES = ("mutate", "validate")
FIX_TWICE = (
    "remove the files from every API server, or run the controller with --static after"
    " `podgate hooks remove`; docs/runbooks.md#static-files"
)
LOOK_EVERY = 300.0  # seconds after which it looks for file registrations again
SPREAD = 2.0
"""Seconds until the watch of every API server has delivered a new configuration."""


@dataclass(slots=True)
class Registrar:
    """Applies the configurations.

    `probe_namespace` is a governed namespace in which both webhooks must reject a Pod before they
    may fail closed; with "" no probe is required. `undefined` has what the cluster serves without a
    definition, as of the last round. `contests` limit how often podgate overwrites somebody else's
    changes; `differing` are the configurations that it leaves alone for now. `static`: API servers
    read the registration from files, so none is written here. `twice` says how podgate noticed that
    it is registered both ways, "" if it is not.
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
        """Whether every API server has the current registration; before that, no document becomes Ready."""
        return not self.differing and time.monotonic() - self.written >= SPREAD

    def forget(self) -> None:
        """Drop the state of a former leader."""
        self.applied.clear()
        self.contests.known.clear()
        self.differing.clear()
        self.added.clear()

    async def register(
        self, catalog: Catalog, target: Target, briefs: Iterable[Brief], *, current: bool = True
    ) -> bool:
        """Update the webhook configurations; return whether they are up to date.

        `current`: every process uses this catalog. Before that, podgate may ask API servers to send
        more requests, but not fewer.
        """
        known = list(briefs)
        served = await self.find_served(known)
        self.note(find_undefined(catalog.definitions, served, known))
        self.metrics.proven.set(self.is_proven)
        strict = any(not each.tolerates_existing for each in catalog.policies)
        skips = skips_of(catalog.definitions, strict=strict)
        documents = configurations(
            governed_definitions(catalog), target, self.options, served, skips
        )
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
        # A configuration that podgate leaves alone for now is no reason for an early round.
        return self.is_proven and (self.is_spread or bool(self.differing))

    async def find_served(self, briefs: Sequence[Brief]) -> Served | None:
        """Return what the cluster serves; None if unknown, so that nothing is omitted."""
        try:
            found = served_of(await discover_resources(self.server))
        except ApiError as error:
            log.warning("every defined kind is registered: discovery failed: %s", error)
            self.metrics.count_refusal("discovery", error.code)
            return None
        return found.with_crds(briefs) if found is not None else None

    def note(self, found: tuple[Undefined, ...]) -> None:
        """Log each kind or version without a definition once."""
        for each in set(found) - set(self.undefined):
            then = "are evaluated as another version" if each.converted else "are not evaluated"
            log.warning(
                "%s is served and has no definition: its objects %s; draft one with"
                " `podgate interface infer`",
                each.text,
                then,
            )
        self.undefined = found
        self.metrics.set_undefined(each.converted for each in found)

    async def apply_all(self, documents: Sequence[Json], *, current: bool) -> None:
        """Apply the configurations that differ."""
        for body in documents:
            wanted = Wanted(body, self.is_proven, current)
            found = await self.server.find(wanted.path)
            right = desired_configuration(wanted, found)
            name = label(body)
            closed = fails_closed(right)
            if not differs(right, found):
                self.differing.discard(name)
                self.note_added(name, platform_selectors(right, found))
            elif self.applied.get(wanted.path) == right and not self.may_write(name, found):
                closed = fails_closed(found)
            else:
                await self.server.apply(wanted.path, right)
                self.written = time.monotonic()
                self.differing.discard(name)
                log.info("%s was brought up to date", name)
                self.metrics.count_write(name, self.cause(wanted.path, right, found))
            self.applied[wanted.path] = right
            self.metrics.hooks(name, closed=closed, off=is_switched_off(found))
        self.contests.forget(time.monotonic())
        self.metrics.set_contested(map(label, documents), self.contests.bounded_contests())

    async def look_for_others(self, documents: Sequence[Json]) -> None:
        """Note whether the API has configurations of podgate besides the files."""
        there = [label(each) for each in documents if await self.server.find(Wanted(each).path)]
        self.note_twice(f"the API has {', '.join(there)} beside the files" if there else "")

    async def look_for_files(self) -> None:
        """Send a probe to the mutating webhook at intervals: the message names the webhook that
        rejected it.
        """
        if self.probe_namespace and time.monotonic() - self.looked > LOOK_EVERY:
            await self.refuses("mutate")

    def note_twice(self, found: str) -> None:
        """Log once that podgate is registered twice and so evaluates each review twice."""
        if found and found != self.twice:
            log.warning("podgate is registered twice: %s; %s", found, FIX_TWICE)
        self.twice = found
        self.metrics.twice.set(bool(found))

    def may_write(self, name: str, found: Json | None) -> bool:
        """Whether podgate may overwrite somebody else's change now; the wait grows each time."""
        was = self.contests.bounded_contests()
        writer = writer_of(found, self.server.manager)
        may = self.contests.may_write(name, writer, time.monotonic())
        if name not in was and name in self.contests.bounded_contests():
            log.warning("%s; %s", text_of(name, self.contests.known[name]), FIX)
        if not may:
            self.differing.add(name)
        return may

    def note_added(self, name: str, found: tuple[str, ...]) -> None:
        """Log namespaces that a platform newly excludes from podgate."""
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
        """Why a configuration was written: `created`, `drift` or `changed`."""
        if found is None:
            return "created"
        return "drift" if self.applied.get(path) == right else "changed"

    async def prove(self) -> bool:
        """Whether the API server calls both webhooks and obeys their rejections."""
        if not self.probe_namespace:
            return True
        for stage in STAGES:
            if not await self.refuses(stage):
                return False
        log.info("both hooks were proven to refuse what is bad; validation may fail closed")
        return True

    async def refuses(self, stage: str) -> bool:
        """Whether one webhook rejects the probe Pod."""
        path = f"/api/v1/namespaces/{self.probe_namespace}/pods?dryRun=All"
        self.looked = time.monotonic()
        try:
            await self.server.ask("POST", path, probe(stage))
        except ApiError as error:
            message = str(error)
            if error.code == 403 and "podgate refused" in message:
                by_file = f'"{stage}.podgate.dev{SUFFIX}"' in message
                if not self.static:
                    # Files are called first, so a registration in the API cannot be proven.
                    self.note_twice(f"the hook {stage} of a file has answered" if by_file else "")
                if by_file or (f'"{stage}.podgate.dev"' in message and not self.static):
                    return True
            log.warning("the hook %s is not proven to work yet: %s", stage, error)
            self.metrics.count_refusal("probe", error.code)
            return False
        log.warning("a Pod that must be refused was not, by the hook %s: hooks stay open", stage)
        return False


def label(body: Json) -> str:
    """Kind and name of a configuration, as kubectl writes them."""
    return f"{body['kind'].lower()}/{body['metadata']['name']}"


def probe(stage: str) -> Json:
    """A Pod that the shipped system policy rejects, sent only as a dry run.

    The mutating webhook rejects it first, unless a label reserves it for validation.
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


def governed_definitions(catalog: Catalog) -> Definitions:
    """The definitions of kinds that are sent to the webhook.

    A policy governs them, or podgate checks them without a policy: claims and domains.
    """
    return {
        key: found
        for key, found in catalog.definitions.items()
        if catalog.policies_of(*key) or key in KINDS
    }
