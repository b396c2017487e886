"""podgate apply: the decision on manifests, offline."""

from __future__ import annotations

from typing import Annotated

import typer

from webhook.cases.run_offline import (
    Place,
    Verdict,
    applied_references,
    evaluate_manifest,
    manifests_of,
)
from webhook.cli import loading, outcomes, report
from webhook.cli.outcomes import Tally
from webhook.evaluation.outcome import REFUSED
from webhook.policy.combine import GUARDED
from webhook.sources.files import read_all
from webhook.sources.load import DEFAULT_MINOR, Sources

Files = Annotated[
    list[str], typer.Argument(metavar="FILE…", help="Manifests: files, folders, or - for stdin.")
]
YAML = "yaml"
Output = Annotated[
    str, typer.Option("--output", "-o", help="yaml, json (one object a line) or text.")
]


def apply(
    files: Files,
    policies: loading.Policies = None,
    interfaces: loading.Interfaces = None,
    assets: loading.Assets = None,
    crds: loading.Crds = None,
    namespace: loading.Namespace = None,
    namespace_labels: loading.NamespaceLabels = "",
    workload_type: loading.WorkloadType = None,
    rule_combination: loading.Combination = GUARDED,
    kubernetes: loading.Minor = DEFAULT_MINOR,
    output: Output = "yaml",
    fail_on: outcomes.FailOn = REFUSED,
    strict: outcomes.Strict = False,
    partial: outcomes.Partial = False,
) -> None:
    """Show what the webhook would decide about manifests: add defaults, or refuse them.

    Prints the completed manifests to stdout: all of them, or none if one is refused. With
    --partial it prints those that are not refused. Violations, warnings and a summary go to
    stderr. An object is allowed, refused, or not evaluated, with the reason. All namespaces
    count as governed, except the cluster's own and those with another value of the label
    podgate.dev/governed. The built-in system policy applies.

    Exit code 0: nothing that --fail-on names occurred, 1: something did (by default a
    refusal), 2: bad input.
    """
    try:
        failing = outcomes.failing_on(fail_on, strict=strict)
        code = run(
            files,
            Place(namespace or "default", loading.labels_of(namespace_labels)),
            output,
            Tally(failing),
            loading.sources_of(
                policies,
                interfaces,
                assets,
                namespace=namespace,
                workload_type=workload_type,
                combination=rule_combination,
                minor=kubernetes,
                crds=crds,
            ),
            partial=partial,
            assumed=namespace is None,
        )
    except loading.BadInput:
        code = loading.BAD_INPUT
    raise typer.Exit(code)


def run(
    files: list[str],
    place: Place,
    output: str,
    tally: Tally,
    sources: Sources,
    *,
    partial: bool,
    assumed: bool,
) -> int:
    """Evaluate every manifest; return the exit code."""
    loading.check_choice(output, (YAML, *report.FORMATS), "--output")
    catalog = loading.catalog_of(sources, tally)
    documents, problems = read_all(files, kubernetes=True)
    objects, more = manifests_of(documents)
    problems += more
    loading.print_problems(problems)
    references = applied_references(objects, catalog, place)
    verdicts: list[Verdict] = []
    faults = loading.Faults()
    for source, raw in objects:
        with faults.report_faults(source):
            verdicts.append(evaluate_manifest(raw, source, catalog, references, place))
    tally.take_faults(faults.count)
    if output == YAML:
        report.show_manifests(verdicts, faults, partial=partial, failed=bool(problems))
    else:
        report.show(verdicts, output, faults)
    for each in verdicts:
        tally.take_verdict(each)
    if not problems:
        outcomes.warn_of_empty(tally, files, [source for source, _ in objects])
    outcomes.warn_of_policies(tally, verdicts, catalog, sources, assumed=assumed)
    code = tally.close()
    return faults.code(loading.BAD_INPUT if problems else code)
