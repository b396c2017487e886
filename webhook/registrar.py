"""Keeps the webhook configurations as they should be, and proves them before they may fail closed."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from webhook.adapters.api_server import ApiError, ApiServer
from webhook.adapters.controller_metrics import ControllerMetrics
from webhook.adapters.discovery import discovered
from webhook.control.hooks import Wanted, desired, differs, fails_closed, is_switched_off
from webhook.control.match_conditions import PROBE_LABEL, Definitions, skips_of
from webhook.control.registration import Options, Target, configurations
from webhook.control.served import Served, served_of
from webhook.control.undefined import Undefined, undefined
from webhook.core.catalog import Catalog
from webhook.core.workload.crd_brief import Brief

log = logging.getLogger("podgate.registrar")

Json = dict[str, Any]
STAGES = ("mutate", "validate")
SPREAD = 2.0
"""Seconds after which every API server has a configuration that was written, by its watch."""


@dataclass(slots=True)
class Registrar:
    """Brings the configurations up to date.

    `probe_namespace` is a governed namespace in which a Pod must be refused by both hooks before
    they may fail closed; "" registers them as they are wanted at once. `undefined` is what the
    cluster serves and nobody has defined, as the last round has found it.
    """

    server: ApiServer
    options: Options
    metrics: ControllerMetrics
    probe_namespace: str = ""
    is_proven: bool = False
    applied: dict[str, Json] = field(default_factory=dict)
    undefined: tuple[Undefined, ...] = ()
    written: float = float("-inf")

    @property
    def is_spread(self) -> bool:
        """Whether every API server has what was written; before, nothing becomes Ready."""
        return time.monotonic() - self.written >= SPREAD

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
        await self.apply_all(documents, current=current)
        if not self.is_proven:
            self.is_proven = await self.prove()
            self.metrics.proven.set(self.is_proven)
            if self.is_proven:
                await self.apply_all(documents, current=current)
        return self.is_proven and self.is_spread

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
            then = "are judged as another version" if each.converted else "are not judged"
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
            name = f"{body['kind'].lower()}/{body['metadata']['name']}"
            if differs(right, found):
                await self.server.apply(wanted.path, right)
                self.written = time.monotonic()
                log.info("%s was brought up to date", name)
                self.metrics.wrote(name, self.cause(wanted.path, right, found))
            self.applied[wanted.path] = right
            self.metrics.hooks(name, closed=fails_closed(right), off=is_switched_off(found))

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
        try:
            await self.server.ask("POST", path, probe(stage))
        except ApiError as error:
            said = str(error)
            if error.code == 403 and f"{stage}.podgate.dev" in said and "podgate refused" in said:
                return True
            log.warning("the hook %s is not proven to work yet: %s", stage, error)
            self.metrics.refused("probe", error.code)
            return False
        log.warning("a Pod that must be refused was not, by the hook %s: hooks stay open", stage)
        return False


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
