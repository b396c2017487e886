"""podgate explain: the effective policy of a kind, or of manifests, with who says what, and why."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import typer
import yaml

from webhook.admission import timeouts
from webhook.admission.facts import find_facts
from webhook.cases.run_offline import (
    Place,
    Verdict,
    applied_references,
    evaluate_manifest,
    labels_in,
    manifests_of,
    place_in_cluster,
    request_of,
)
from webhook.catalog.catalog import Catalog
from webhook.cli import loading, outcomes
from webhook.cli.explain_json import kind_json, object_json, type_json
from webhook.cli.explain_text import Page, kind_text, object_text, type_text
from webhook.cli.outcomes import Tally
from webhook.cli.policies_in_force import policies_yaml
from webhook.decision.owners import others_of
from webhook.decision.wrapped import facts_for
from webhook.documents import texts
from webhook.documents.problem import Problem
from webhook.documents.suggestions import closest
from webhook.evaluation.outcome import REFUSED, UNGOVERNED
from webhook.evaluation.references import References
from webhook.explain.kinds import component_names, find_kind
from webhook.explain.leaves import explain_kind
from webhook.explain.model import KindReport, ObjectReport
from webhook.explain.namespaces import explain_namespace
from webhook.explain.objects import explain_object
from webhook.explain.wrapped import split_by_object
from webhook.libjq.evaluator import get_evaluator
from webhook.objects.path import display
from webhook.policy.combine import GUARDED
from webhook.sources.files import read_all
from webhook.sources.load import DEFAULT_MINOR, Sources

Files = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FILE…]", help="Manifests: files, folders, or - for stdin."),
]
KindName = Annotated[
    str | None,
    typer.Option("--kind", "-k", metavar="KIND[.GROUP][/VERSION]", help="A kind, or its plural."),
]
ComponentName = Annotated[str, typer.Option("--component", help="Only this component or role.")]
Output = Annotated[str, typer.Option("--output", "-o", help="text, json (one a line) or yaml.")]


def explain(
    files: Files = None,
    policies: loading.Policies = None,
    interfaces: loading.Interfaces = None,
    assets: loading.Assets = None,
    crds: loading.Crds = None,
    namespace: loading.Namespace = None,
    namespace_labels: loading.NamespaceLabels = "",
    workload_type: loading.WorkloadType = None,
    rule_combination: loading.Combination = GUARDED,
    kubernetes: loading.Minor = DEFAULT_MINOR,
    kind: KindName = None,
    component: ComponentName = "",
    output: Output = "text",
    fail_on: outcomes.FailOn = REFUSED,
    strict: outcomes.Strict = False,
) -> None:
    """Show the effective policy of a kind, of manifests, or of a namespace.

    With --kind: each field with its default, its rules and its items, the policy and scope that
    each comes from, and what was overridden. With manifests: the value of each field in the
    completed object, its path and its source. With --namespace only: the whole effective policy
    by workload type; --output yaml then prints policies for this namespace that lead to the same
    decisions as the originals.

    If an object wraps others, they follow it, with paths from their own root.

    The source of a value is one of: request, server default, default, defaultFrom, default item,
    attribute default, imposed, kept, kind (follows from the kind), computed (follows from other
    fields), unset. A field that a kind cannot have is unmapped (it has no path for the field),
    forbidden (the kind rejects it) or not-native (no native object has it).

    JSON of a kind: kind, group, version, workloadType, namespace, ruleCombination, policies,
    components (component, role, pods, fields), workload (fields). Each field has field, reach,
    why, secret, default (value), rules (rule, argument), items (key, attributes, locked, imposed,
    asset), lost (what, value, reason, to), trial (what, value).

    JSON of a manifest: source, kind, name, outcome, reason, allowed, judged, policies, pods
    (component, instance, roles, path, fields), workload (fields), violations, warnings, audit.
    Each field has field, secret, values (set, value, path, key, source, derived, note,
    attributes, violations, warnings), policy (as above). What comes from a policy also has
    policy, scope and namespace. A derived value is not literally at its path.

    Settings come from PODGATE_* variables, as for the server. Values of env, args, command and
    annotations are never shown: they are null in JSON. Exit code 0: printed, 1: a manifest is
    refused, or something that --fail-on names occurred, 2: bad input.
    """
    try:
        tally = Tally(outcomes.failing_on(fail_on, strict=strict))
        place = Place(namespace or "default", loading.labels_of(namespace_labels))
        sources = loading.sources_of(
            policies,
            interfaces,
            assets,
            namespace=namespace,
            workload_type=workload_type,
            combination=rule_combination,
            minor=kubernetes,
            crds=crds,
        )
        assumed = namespace is None
        code = run(files or [], kind, component, place, output, tally, sources, assumed=assumed)
    except loading.BadInput:
        code = loading.BAD_INPUT
    raise typer.Exit(code)


def run(
    files: list[str],
    kind: str | None,
    component: str,
    place: Place,
    output: str,
    tally: Tally,
    sources: Sources,
    *,
    assumed: bool,
) -> int:
    """Explain a kind or every manifest; the exit code."""
    loading.check_choice(output, ("text", "json", "yaml"), "--output")
    if bool(files) and bool(kind):
        loading.complain("error: give either --kind KIND or manifests to explain")
        raise loading.BadInput
    if not (files or kind) and assumed:
        loading.complain("error: give --kind KIND, manifests to explain, or --namespace alone")
        raise loading.BadInput
    catalog = loading.catalog_of(sources, tally)
    if not (files or kind):
        explain_space(catalog, place, output, sources)
        return 0
    if kind:
        faults = loading.Faults()
        show([report_kind(catalog, kind, component, place)], output, faults)
        return faults.code(0)
    documents, problems = read_all(files, kubernetes=True)
    objects, more = manifests_of(documents)
    problems += more
    loading.print_problems(problems)
    references = applied_references(objects, catalog, place)
    faults = loading.Faults()
    verdicts: list[Verdict] = []
    reports: list[ObjectAnswer] = []
    for source, raw in objects:
        with faults.report_faults(source):
            verdict = evaluate_manifest(raw, source, catalog, references, place)
            reports += report_objects(catalog, references, raw, verdict, component, place)
            verdicts.append(verdict)
    if component and reports and not any(each.report and each.report.pods for each in reports):
        loading.complain(f"error: --component: no pod is of {texts.clean(component)}")
        raise loading.BadInput
    tally.take_faults(faults.count)
    show(reports, output, faults)
    for verdict in verdicts:
        tally.take_verdict(verdict)
    if not problems:
        outcomes.warn_of_empty(tally, files, [source for source, _ in objects])
    outcomes.warn_of_policies(tally, verdicts, catalog, sources, assumed=assumed)
    code = tally.close()
    return faults.code(loading.BAD_INPUT if problems else code)


class ObjectAnswer(NamedTuple):
    """A manifest with its outcome, and its explanation if its kind has a definition."""

    verdict: Verdict
    report: ObjectReport | None


def explain_space(catalog: Catalog, place: Place, output: str, sources: Sources) -> None:
    """Print the whole effective policy of a namespace, by workload type."""
    labels = labels_in(place.namespace, place.labels)
    if output == "yaml":
        sys.stdout.write(policies_yaml(catalog, place.namespace, labels, sources))
        return
    page = Page()
    for index, each in enumerate(explain_namespace(catalog, place.namespace, labels)):
        if output == "json":
            line = json.dumps(type_json(each), default=str, separators=(",", ":"))
            sys.stdout.write(line + "\n")
            continue
        if index:
            page.gap()
        type_text(page, each)


def report_kind(catalog: Catalog, kind: str, component: str, place: Place) -> KindReport:
    """The report on the named kind; BadInput if the kind or the component is unknown."""
    found = find_kind(catalog, kind)
    if isinstance(found, Problem):
        loading.print_problems([found])
        raise loading.BadInput
    definition, version = found
    interface = definition.interface
    like = {"apiVersion": f"{interface.group}/{version}", "kind": interface.kind}
    namespace, given = place_in_cluster(like, place)
    labels = labels_in(namespace, given)
    plans = catalog.plans_for(definition, namespace, References({namespace: labels}), labels)
    names = component_names(definition)
    if component and component.casefold() not in {each.casefold() for each in names}:
        near = closest(component, names)
        fix = f"did you mean {near}?" if near else f"write one of {', '.join(names)}"
        missing = f"no component or role {texts.clean(component)}"
        loading.print_problems([Problem("--component", "", missing, fix, "unknown-component")])
        raise loading.BadInput
    return explain_kind(definition, version, namespace, plans, component)


def report_objects(
    catalog: Catalog,
    references: References,
    raw: Any,
    verdict: Verdict,
    component: str,
    place: Place,
) -> list[ObjectAnswer]:
    """Explain one manifest, then every object that it wraps."""
    group, _, version = str(raw["apiVersion"]).rpartition("/")
    definition = catalog.definition(group, str(raw["kind"]), version)
    if definition is None or verdict.reason == UNGOVERNED or timeouts.too_deep(raw):
        return [ObjectAnswer(verdict, None)]
    request = request_of(raw, catalog.complete(definition, raw), place, references)
    facts = find_facts(request, catalog, get_evaluator())
    reports = []
    for path, asked, decision, alone in split_by_object(request, verdict.decision, catalog):
        own = catalog.definition(asked.group, asked.kind, asked.version)
        assert own is not None  # other objects are not evaluated
        labels, others = asked.namespace_labels, others_of(asked)
        plans = catalog.plans_for(own, asked.namespace, references, labels, others)
        own_facts = facts_for(asked, facts) if facts is not None else None
        report = explain_object(asked, plans, references, own_facts, alone, component)
        where = f"{verdict.source} at {display(path)}" if path else verdict.source
        reports.append(ObjectAnswer(Verdict(where, asked.kind, asked.name, decision, None), report))
    return reports


AnyReport = KindReport | ObjectAnswer


def show(reports: Sequence[AnyReport], output: str, faults: loading.Faults) -> None:
    """Print every report in one format."""
    page = Page()
    for index, each in enumerate(reports):
        with faults.report_faults(
            each.kind if isinstance(each, KindReport) else each.verdict.source
        ):
            if output == "text":
                if index:
                    page.gap()
                show_text(page, each)
            else:
                show_data(each, output, first=index == 0)


def show_text(page: Page, report: AnyReport) -> None:
    """Print one report as text."""
    if isinstance(report, KindReport):
        kind_text(page, report)
    else:
        object_text(page, *report)


def show_data(report: AnyReport, output: str, *, first: bool) -> None:
    """Print one report as a line of JSON, or as a document of YAML."""
    body = kind_json(report) if isinstance(report, KindReport) else object_json(*report)
    # Not orjson, which refuses large integers that a manifest may contain.
    line = json.dumps(body, default=str, separators=(",", ":"))
    if output == "json":
        sys.stdout.write(line + "\n")
        return
    text = yaml.dump(json.loads(line), Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
    sys.stdout.write(("" if first else "---\n") + text)
