"""podgate apply: the decision on manifests, offline."""

from __future__ import annotations

from typing import Annotated

import typer

from webhook.adapters.files import read_all
from webhook.cli import loading, report
from webhook.core.policy.combine import GUARDED
from webhook.loader import DEFAULT_MINOR, Sources
from webhook.offline import Place, Verdict, judge, manifests_of, references_of

Files = Annotated[
    list[str], typer.Argument(metavar="FILE…", help="Manifests: files, folders, or - for stdin.")
]
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
) -> None:
    """Complete manifests by the policies, or refuse them: what the cluster would decide.

    Completed manifests go to stdout, violations and warnings to stderr. Every namespace is
    governed, and the built-in system policy holds. Exit code 0: all allowed, 1: something is
    refused, 2: bad input.
    """
    try:
        code = run(
            files,
            Place(namespace or "default", loading.labels_of(namespace_labels)),
            output,
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
        )
    except loading.BadInput:
        code = loading.BAD_INPUT
    raise typer.Exit(code)


def run(files: list[str], place: Place, output: str, sources: Sources) -> int:
    """Judge every manifest; the exit code."""
    loading.checked(output, tuple(report.FORMATS), "--output")
    catalog = loading.catalog_of(sources)
    documents, problems = read_all(files, kubernetes=True)
    objects, more = manifests_of(documents)
    problems += more
    loading.tell(problems)
    references = references_of(objects, place)
    verdicts: list[Verdict] = []
    faults = loading.Faults()
    for source, raw in objects:
        with faults.kept(source):
            verdicts.append(judge(raw, source, catalog, references, place))
    report.show(verdicts, output, faults)
    if problems:
        return faults.code(loading.BAD_INPUT)
    return faults.code(0 if all(each.allowed for each in verdicts) else 1)
