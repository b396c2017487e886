"""podgate audit: evaluates existing objects of the cluster as if they were created today."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from typing import Annotated

import typer

from webhook.catalog.build import assemble, merge_documents
from webhook.catalog.catalog import Catalog
from webhook.catalog.watched_documents import Fixed, WatchedDocuments
from webhook.cli import loading, outcomes
from webhook.cli.audit_report import FindingPrinter, Printer, ProgressBar
from webhook.cli.crds import KubeconfigFile, credentials_for
from webhook.cli.outcomes import Tally
from webhook.cli.registration import Governed
from webhook.cluster.client import ApiError, ApiServer
from webhook.cluster.credentials import CredentialsError
from webhook.controller.audit import (
    Labels,
    audit_objects,
    governed_namespaces,
    undefined_objects,
)
from webhook.controller.injections import injections
from webhook.controller.reports import NONE_OF_THEM
from webhook.controller.scan import api_of_reports
from webhook.decision.messages import not_evaluated_text
from webhook.documents import texts
from webhook.documents.problem import Problem
from webhook.evaluation.installation import GOVERNED_LABEL
from webhook.evaluation.outcome import (
    NOT_EVALUATED,
    REFUSED,
    UNGOVERNED,
    UNKNOWN_KIND,
    UNKNOWN_VERSION,
)
from webhook.policy.combine import GUARDED
from webhook.sources.catalog_source import fixed_of
from webhook.sources.configmaps import ConfigMaps
from webhook.sources.load import DEFAULT_MINOR, Sources
from webhook.sources.reader import collections_of, documents_in

NO_REPORTS = (
    f"{NONE_OF_THEM} is installed, so a controller with --scan-every has nowhere to write reports"
)
Candidate = Annotated[
    list[str] | None,
    typer.Option(
        "--candidate",
        metavar="FILE",
        help="Policies that are not in force yet: print only what they would refuse or change.",
    ),
]
InjectedOnly = Annotated[
    bool,
    typer.Option(
        "--injected",
        help="Print what other webhooks added to objects that controllers created, as entries for"
        " the file of --injected.",
    ),
]
Output = Annotated[str, typer.Option("--output", "-o", help="text or json (one object a line).")]
OwnNamespace = Annotated[
    str,
    typer.Option(
        "--own-namespace",
        help="podgate's namespace: also use documents in its ConfigMaps.",
    ),
]
Only = Annotated[str, typer.Option("--namespace", "-n", help="Only this namespace.")]


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
    """Evaluate existing objects of the governed namespaces by the policies of the cluster and of files.

    Changes nothing. With --candidate, prints what these policies would refuse and change beyond
    those in force. With --injected, prints the entries that the list of injected content
    (PODGATE_INJECTED) lacks for objects that controllers created.
    The last line on stderr counts objects that are allowed, refused and not evaluated. Not
    evaluated are objects in other namespaces, objects that controllers created for evaluated
    ones, and objects of kinds or versions with pods but without a definition (a line for each
    kind).
    Exit code 0: nothing that --fail-on names occurred, 1: something did (by default a broken
    rule), 2: bad input.
    """
    try:
        tally = Tally(outcomes.failing_on(fail_on, strict=strict))
        loading.check_choice(output, ("text", "json"), "--output")
        loading.check_choice(governed, ("label", "all"), "--governed")
        sources = loading.sources_of(
            policies, interfaces, assets, combination=rule_combination, minor=kubernetes
        )
        server = ApiServer(credentials_for(kubeconfig, os.environ))
        given = (server, sources, candidate or [], governed, namespace, output, own_namespace)
        code = asyncio.run(list_injected(*given) if injected else run(*given, tally))
    except (CredentialsError, ApiError) as error:
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
    """Evaluate everything; return the exit code."""
    now, then = await catalogs(server, sources, candidate, own_namespace)
    spaces = await spaces_of(server, governed, namespace)
    skipped: Counter[str] = Counter()
    catalog, today = (now, None) if then is None else (then, now)
    printer = FindingPrinter(output, is_proposed=today is not None)
    with ProgressBar() as progress:
        async for each in audit_objects(
            server,
            catalog,
            spaces,
            today=today,
            skipped=skipped,
            warn=tally.warn,
            progress=progress.show,
        ):
            audited_by = sum(outcomes.is_audited(one.source) for one in each.trial)
            tally.take(each.outcome, each.reason, len(each.trial) - audited_by, audited_by)
            printer.take(each)
    printer.end()
    if output == "text" and not await api_of_reports(server):
        loading.complain(f"note: {NO_REPORTS}")
    if namespace:
        del skipped[UNGOVERNED]  # skip other namespaces
    elif not spaces:
        tally.warn(f"no namespace is governed: label one {GOVERNED_LABEL}=true, or --governed all")
    for reason, number in skipped.items():
        tally.take(NOT_EVALUATED, reason, objects=number)
    await count_undefined(tally, server, catalog, spaces)
    for policy in catalog.policies:
        if any(policy.governs_namespace(*space) for space in spaces.items()):
            tally.policies[policy.source] = policy
    return printer.faults.code(tally.close())


async def count_undefined(
    tally: Tally, server: ApiServer, catalog: Catalog, spaces: dict[str, Labels]
) -> None:
    """Count the objects of kinds and versions that no definition covers, one line on stderr each."""
    for each, number in await undefined_objects(server, catalog, spaces, tally.warn):
        known = (each.group, each.kind) in catalog.definitions
        reason = UNKNOWN_VERSION if known else UNKNOWN_KIND
        counted = outcomes.plural(number, "object")
        why = not_evaluated_text(reason)
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
    """Print what the list of injected content lacks; return the exit code."""
    now, then = await catalogs(server, sources, candidate, own_namespace)
    spaces = await spaces_of(server, governed, namespace)
    printer = Printer(output)
    with ProgressBar() as progress:
        async for each in injections(server, then or now, spaces, progress.show):
            printer.take(each)
    return printer.end()


async def spaces_of(server: ApiServer, governed: str, namespace: str) -> dict[str, Labels]:
    """The governed namespaces; BadInput if the requested one is not among them."""
    spaces = await governed_namespaces(server, governed, namespace)
    if namespace and not spaces:
        loading.complain(f"error: no governed namespace {namespace}")
        raise loading.BadInput
    return spaces


async def catalogs(
    server: ApiServer, sources: Sources, candidate: list[str], own_namespace: str
) -> tuple[Catalog, Catalog | None]:
    """The catalog of today, and the catalog with the candidate; BadInput after reporting problems."""
    fixed, problems = fixed_of(sources)
    loading.print_problems([each for each in problems if fixed is None])
    if fixed is None:
        raise loading.BadInput
    collections = collections_of(own_namespace)
    for collection in collections.values():
        try:
            await collection.read(server)
        except ApiError as error:
            if error.code != 404:
                raise
    objects = {key: body for key, body, _ in documents_in(collections)}
    watched = WatchedDocuments()
    outcome = watched.take(ConfigMaps().unpack(objects), fixed)
    for status in outcome.statuses.values():
        loading.print_problems([each for each in status.problems if each.severity == "error"])
    if outcome.catalog is None:
        raise loading.BadInput
    if not candidate:
        return outcome.catalog, None
    return outcome.catalog, add_candidate(fixed, watched, sources, candidate)


def add_candidate(
    fixed: Fixed, watched: WatchedDocuments, sources: Sources, candidate: list[str]
) -> Catalog:
    """The catalog with the candidate, which replaces documents with the same names."""
    own = Sources(tuple(candidate), (), (), sources.kubernetes_minor, sources.choices)
    further, problems = fixed_of(own)
    new_problems: list[Problem] = list(problems) if further is None else []
    if further is not None:
        whole = merge_documents([further.given, fixed.given, *watched.counting()])
        whole.problems = []
        catalog, more = assemble(
            fixed.shipped, whole, fixed.choices, fixed.server_defaults, watched=True
        )
        if catalog is not None:
            return catalog
        new_problems += more
    loading.print_problems(new_problems)
    raise loading.BadInput
