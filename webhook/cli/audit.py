"""podgate audit: what is already in the cluster, judged as if it came today."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Any

import typer

from webhook.catalog.build import assemble, joined
from webhook.catalog.catalog import Catalog
from webhook.catalog.watched_documents import Fixed, Living
from webhook.cli import loading, outcomes
from webhook.cli.audit_injected import Printer
from webhook.cli.audit_report import show
from webhook.cli.crds import KubeconfigFile, credentials_for
from webhook.cli.outcomes import Tally
from webhook.cli.registration import Governed
from webhook.cluster.client import ApiError, ApiServer
from webhook.cluster.namespaces import AccessError
from webhook.controller.audit import (
    Finding,
    Labels,
    audited,
    governed_namespaces,
    undefined_objects,
)
from webhook.controller.injections import injections
from webhook.controller.reports import NONE_OF_THEM
from webhook.controller.scan import api_of_reports
from webhook.decision import messages as wording
from webhook.documents import texts
from webhook.documents.problem import Problem
from webhook.evaluation.installation import GOVERNED_LABEL
from webhook.evaluation.outcome import (
    NOT_EVALUATED,
    REFUSED,
    UNGOVERNED,
    UNKNOWN_KIND,
    UNKNOWN_VERSION,
    Violation,
)
from webhook.policy.combine import GUARDED
from webhook.sources.catalog_source import fixed_of
from webhook.sources.configmaps import ConfigMaps
from webhook.sources.load import DEFAULT_MINOR, Sources
from webhook.sources.reader import collections_of, plain, version_of

NO_REPORTS = (
    f"{NONE_OF_THEM} is installed, so a controller with --scan-every has nowhere to write reports"
)
Candidate = Annotated[
    list[str] | None,
    typer.Option(
        "--candidate",
        metavar="FILE",
        help="Policies that are not there yet: print only what they would refuse or change.",
    ),
]
InjectedOnly = Annotated[
    bool,
    typer.Option(
        "--injected",
        help="What other webhooks added to objects that controllers made, as entries for the list of"
        " the server's option --injected.",
    ),
]
Output = Annotated[str, typer.Option("--output", "-o", help="text or json (one object a line).")]
OwnNamespace = Annotated[
    str,
    typer.Option(
        "--own-namespace",
        help="Where podgate runs: documents in ConfigMaps of this namespace count too.",
    ),
]
Only = Annotated[str, typer.Option("--namespace", "-n", help="This namespace alone.")]


def audit(
    candidate: Candidate = None,
    policies: loading.Policies = None,
    interfaces: loading.Interfaces = None,
    assets: loading.Assets = None,
    namespace: Only = "",
    governed: Governed = "label",
    rule_combination: loading.Combination = GUARDED,
    kubernetes: loading.Minor = DEFAULT_MINOR,
    kubeconfig: KubeconfigFile = None,
    own_namespace: OwnNamespace = "",
    injected: InjectedOnly = False,
    output: Output = "text",
    fail_on: outcomes.FailOn = REFUSED,
    strict: outcomes.Strict = False,
) -> None:
    """Evaluate what is in the governed namespaces by the cluster's policies and those of files.

    With --candidate, print what these policies would refuse and change beyond those in force;
    nothing is written. With --injected, print what the list of injected content lacks for objects
    of controllers, --candidate included; what PODGATE_INJECTED lists is not lacking.
    A closing line on stderr counts objects that are allowed, refused and not evaluated: those in
    namespaces that are not governed, those that controllers made of evaluated ones, and those of
    kinds with pods, or of versions, that no definition covers (a line for each kind), be they from
    a CRD or from an aggregated API.
    Exit code 0: nothing that --fail-on names, 1: something of it, which is a broken rule by
    default, 2: bad input.
    """
    try:
        tally = Tally(outcomes.failing_on(fail_on, strict=strict))
        loading.checked(output, ("text", "json"), "--output")
        loading.checked(governed, ("label", "all"), "--governed")
        sources = loading.sources_of(
            policies, interfaces, assets, combination=rule_combination, minor=kubernetes
        )
        server = ApiServer(credentials_for(kubeconfig, os.environ))
        given = (server, sources, candidate or [], governed, namespace, output, own_namespace)
        code = asyncio.run(list_injected(*given) if injected else run(*given, tally))
    except (AccessError, ApiError) as error:
        loading.complain(f"error: {error}")
        code = loading.BAD_INPUT
    except loading.BadInput:
        code = loading.BAD_INPUT
    raise typer.Exit(code)


async def run(
    server: ApiServer,
    sources: Sources,
    candidate: list[str],
    governed: str,
    namespace: str,
    output: str,
    own_namespace: str,
    tally: Tally,
) -> int:
    """Judge everything; the exit code."""
    now, then = await catalogs(server, sources, candidate, own_namespace)
    spaces = await spaces_of(server, governed, namespace)
    skipped: Counter[str] = Counter()
    before = {each.key: each async for each in audited(server, now, spaces, skipped, tally.warn)}
    found = [*before.values()]
    if then is not None:
        found = await beyond(server, then, spaces, before)
    faults = loading.Faults()
    shown = [each for each in found if not each.is_clean]
    show(shown, len(before), output, faults, proposed=then is not None)
    if output == "text" and not await api_of_reports(server):
        loading.complain(f"note: {NO_REPORTS}")
    if namespace:
        del skipped[UNGOVERNED]  # other namespaces are out of the question
    elif not spaces:
        tally.warn(f"no namespace is governed: label one {GOVERNED_LABEL}=true, or --governed all")
    count(tally, found, skipped)
    await count_undefined(tally, server, then or now, spaces)
    for each in (then or now).policies:
        if any(each.governs_namespace(*space) for space in spaces.items()):
            tally.policies[each.source] = each
    return faults.code(tally.close())


def count(tally: Tally, found: Iterable[Finding], skipped: Counter[str]) -> None:
    """Count findings and skipped objects by outcome."""
    for each in found:
        audited_by = sum(outcomes.is_audited(one.source) for one in each.trial)
        tally.take(each.outcome, each.reason, len(each.trial) - audited_by, audited_by)
    for reason, number in skipped.items():
        tally.take(NOT_EVALUATED, reason, objects=number)


async def count_undefined(
    tally: Tally, server: ApiServer, catalog: Catalog, spaces: dict[str, Labels]
) -> None:
    """Count the objects of kinds and versions that no definition covers, one line on stderr each."""
    for each, number in await undefined_objects(server, catalog, spaces, tally.warn):
        known = (each.group, each.kind) in catalog.definitions
        reason = UNKNOWN_VERSION if known else UNKNOWN_KIND
        counted = outcomes.plural(number, "object")
        why = wording.not_evaluated_text(reason)
        loading.complain(f"not evaluated: {counted} of {texts.clean(each.text)}: {why}")
        tally.take(NOT_EVALUATED, reason, objects=number)


async def list_injected(
    server: ApiServer,
    sources: Sources,
    candidate: list[str],
    governed: str,
    namespace: str,
    output: str,
    own_namespace: str,
) -> int:
    """Print what the list of injected content lacks; the exit code."""
    now, then = await catalogs(server, sources, candidate, own_namespace)
    spaces = await spaces_of(server, governed, namespace)
    printer = Printer(output)
    async for each in injections(server, then or now, spaces):
        printer.take(each)
    return printer.end()


async def spaces_of(server: ApiServer, governed: str, namespace: str) -> dict[str, Labels]:
    """The governed namespaces; BadInput where there is none of the name that was asked for."""
    spaces = await governed_namespaces(server, governed, namespace)
    if namespace and not spaces:
        loading.complain(f"error: no governed namespace {namespace}")
        raise loading.BadInput
    return spaces


async def beyond(
    server: ApiServer, catalog: Catalog, spaces: Any, before: dict[tuple[str, ...], Finding]
) -> list[Finding]:
    """What a further policy brings: violations and changes that there are not today."""
    found = []
    async for each in audited(server, catalog, spaces, warn=lambda _: None):  # warned of already
        known = before.get(each.key)
        found.append(each if known is None else without(each, known))
    return found


def without(found: Finding, known: Finding) -> Finding:
    """A finding without what is found today."""
    written = [(each.path, each.value) for each in known.changes]
    return replace(
        found,
        violations=new(found.violations, known.violations),
        trial=new(found.trial, known.trial),
        changes=tuple(each for each in found.changes if (each.path, each.value) not in written),
    )


def new(found: Iterable[Violation], known: Iterable[Violation]) -> tuple[Violation, ...]:
    """The violations that are not known."""
    listed = set(known)
    return tuple(each for each in found if each not in listed)


async def catalogs(
    server: ApiServer, sources: Sources, candidate: list[str], own_namespace: str
) -> tuple[Catalog, Catalog | None]:
    """What holds today, and with the candidate; BadInput once their problems are told."""
    fixed, problems = fixed_of(sources)
    loading.tell([each for each in problems if fixed is None])
    if fixed is None:
        raise loading.BadInput
    objects = {}
    for kind, collection in collections_of(own_namespace).items():
        try:
            items, _ = await server.items(collection.path, **collection.query)
        except ApiError as error:
            if error.code != 404:
                raise
            continue
        version = version_of(collection.path)
        for each in items:
            metadata = each.get("metadata") or {}
            key = (kind, str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))
            objects[key] = plain(each, version, kind)
    living = Living()
    outcome = living.take(ConfigMaps().opened(objects), fixed)
    for standing in outcome.standings.values():
        loading.tell([each for each in standing.problems if each.severity == "error"])
    if outcome.catalog is None:
        raise loading.BadInput
    if not candidate:
        return outcome.catalog, None
    return outcome.catalog, proposed(fixed, living, sources, candidate)


def proposed(fixed: Fixed, living: Living, sources: Sources, candidate: list[str]) -> Catalog:
    """The catalog with the candidate, which takes the place of documents of its names."""
    own = Sources(tuple(candidate), (), (), sources.kubernetes_minor, sources.choices)
    further, problems = fixed_of(own)
    told: list[Problem] = list(problems) if further is None else []
    if further is not None:
        whole = joined([further.given, fixed.given, *living.counting()])
        whole.problems = []
        catalog, more = assemble(
            fixed.shipped, whole, fixed.choices, fixed.server_defaults, living=True
        )
        if catalog is not None:
            return catalog
        told += more
    loading.tell(told)
    raise loading.BadInput
