"""podgate interface infer: drafts the definition of a kind from its CRD."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from webhook.cli import definitions, loading
from webhook.documents import texts
from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.drafting import from_crd
from webhook.drafting.from_crd import Draft, NotACrdError
from webhook.sources.files import read_all

CRD = "CustomResourceDefinition"
Files = Annotated[
    list[str],
    typer.Argument(metavar="CRD.yaml…", help="CRDs: files, folders, or - for stdin."),
]
Kind = Annotated[str | None, typer.Option("--kind", help="Only this kind.")]


def infer(files: Files, kind: Kind = None) -> None:
    """Draft a ResourceInterface and a WorkloadProfile of each kind from its CRD's schema, as YAML.

    Looks for containers, ids, replicas, status, fields and defaults in every served version. Each
    guess has a comment: review all of them, then run `podgate interface check`.
    Exit code 0: drafted, 1: no kind has a path to pods, 2: bad input.
    """
    documents, problems = read_all(files, kubernetes=True)
    drafts: list[Draft] = []
    for each in definitions.unpack_lists(documents):
        if not is_wanted(each, kind):
            continue
        try:
            drafts.append(from_crd.infer(each.data))
        except NotACrdError as error:
            problems.append(problem_of(each, str(error)))
    loading.print_problems(problems)
    if problems:
        raise typer.Exit(loading.BAD_INPUT)
    if not drafts:
        what = f"of kind {kind}" if kind else "at all"
        named = texts.clean(", ".join(files))
        loading.complain(f"error: {named}: no {CRD} {what}; give one as the API server has it")
        raise typer.Exit(loading.BAD_INPUT)
    write(drafts)


def is_wanted(document: SourceDocument, kind: str | None) -> bool:
    """Whether a document is a CRD of the requested kind."""
    data = document.data
    if not isinstance(data, dict) or data.get("kind") != CRD:
        return False
    spec = data.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    name = names.get("kind") if isinstance(names, dict) else None
    return kind is None or str(name).casefold() == kind.casefold()


def problem_of(document: SourceDocument, found: str) -> Problem:
    """The problem of a CRD that cannot be read."""
    line, column = document.position(())
    fix = "give the CRD as the API server has it"
    return Problem(document.origin, "", found, fix, "not-a-crd", line, column)


def write(drafts: list[Draft]) -> None:
    """Print the drafts as one stream of YAML; report kinds without pods on stderr."""
    made = [each for each in drafts if each.documents]
    for each in drafts:
        if not each.documents:
            reason = "its schema has no path to a container, and leaves none open"
            loading.complain(f"{each.kind}.{each.group}: nothing to govern: {reason}")
    sys.stdout.write("---\n".join(each.text for each in made))
    if not made:
        raise typer.Exit(1)
