"""podgate lint: every problem of policies and definitions at once, and advice on what is legal."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from importlib.metadata import version
from typing import Annotated, Any
from urllib.parse import quote

import typer

from webhook.catalog.build import assemble
from webhook.catalog.catalog import Catalog
from webhook.catalog.plan import component_roles
from webhook.cli import loading
from webhook.decision.messages import problem_text
from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.lint.advice import REASONS
from webhook.lint.advice import lint as advise
from webhook.lint.kinds import Identity, Kind, LintContext, identity
from webhook.pods.definition import Definition
from webhook.policy.combine import GUARDED
from webhook.policy.policy_document import parse_policy
from webhook.sources.files import origin_of, read_all
from webhook.sources.load import Sources, remove_repeats, schemas_of, shipped_documents

SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH…", help="Policies, assets and definitions: files, folders, or - for stdin."
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit code 1 when there are warnings.")]
Output = Annotated[str, typer.Option("--output", "-o", help="text, json or sarif.")]


def lint(
    paths: Paths,
    strict: Strict = False,
    output: Output = "text",
    interfaces: loading.Interfaces = None,
    crds: loading.Crds = None,
    namespace: loading.Namespace = None,
    workload_type: loading.WorkloadType = None,
    rule_combination: loading.Combination = GUARDED,
) -> None:
    """Check documents for mistakes, and warn about rules that are legal but probably not intended.

    Exit code 0: no problems, or warnings without --strict, 1: warnings with --strict, 2: errors.
    """
    try:
        loading.check_choice(output, tuple(FORMATS), "--output")
        sources = loading.sources_of(
            paths,
            interfaces,
            None,
            namespace=namespace,
            workload_type=workload_type,
            combination=rule_combination,
            assumed=None,
            crds=crds,
        )
    except loading.BadInput:
        raise typer.Exit(loading.BAD_INPUT) from None
    problems = problems_of(sources)
    FORMATS[output](problems)
    raise typer.Exit(exit_code(problems, strict=strict))


def exit_code(problems: Sequence[Problem], *, strict: bool) -> int:
    """2 for errors, 1 for warnings that count; notes never do."""
    found = {each.severity for each in problems}
    if "error" in found:
        return loading.BAD_INPUT
    return 1 if "warning" in found and strict else 0


def problems_of(sources: Sources) -> list[Problem]:
    """The problems from loading and, if everything loads, the advice; sorted by path."""
    shipped, broken = shipped_documents()
    given, unread = read_all(remove_repeats(sources.paths))
    schemas, no_crds = schemas_of(sources.crds)
    catalog, found = assemble(shipped, given, sources.choices, schemas=schemas)
    problems = [*broken, *unread, *no_crds, *found]
    origins = {*(each.origin for each in given), *(each.origin for each in unread)}
    problems += without_documents(sources.paths, origins)
    if catalog is not None:
        problems += advise(build_lint_context(catalog, given, sources))
    return sorted(problems, key=lambda each: (each.origin, each.line, each.column, each.reason))


def without_documents(paths: Iterable[str], origins: Collection[str]) -> Iterator[Problem]:
    """A warning for each file or folder that has neither a document nor a problem."""
    for path in paths:
        name = origin_of(path)
        if not any(each == name or each.startswith(f"{name.rstrip('/')}/") for each in origins):
            fix = "write a document in it, or leave it out"
            yield Problem(name, "", "no document", fix, "no-document", severity="warning")


def build_lint_context(
    catalog: Catalog, given: Sequence[SourceDocument], sources: Sources
) -> LintContext:
    """Return the context of the advice: the given policies, among all policies and kinds."""
    documents: dict[Identity, SourceDocument] = {}
    for document in given:
        policy, _ = parse_policy(document, sources.choices.context)
        if policy is not None:
            documents.setdefault(identity(policy), document)
    return LintContext(
        catalog.policies,
        [each for each in catalog.policies if identity(each) in documents],
        kinds_of(catalog),
        catalog.assets,
        documents,
        catalog.combination,
    )


def kinds_of(catalog: Catalog) -> list[Kind]:
    """The kinds that have definitions, in order of type and name."""
    found = [
        kind_of(group, name, catalog.workload_type(group, name), definitions)
        for (group, name), definitions in catalog.definitions.items()
        # A kind that only wraps other objects has no fields of its own that rules could miss.
        if not all(each.only_wraps for each in definitions)
    ]
    return sorted(found, key=lambda each: (each.workload_type, each.name, each.group))


def kind_of(group: str, name: str, workload_type: str, definitions: Sequence[Definition]) -> Kind:
    """One kind with the fields of all its versions."""
    every = [each for definition in definitions for each in definition.everyone]
    components: dict[str, dict[str, None]] = {}
    for definition in definitions:
        for component, roles in component_roles(definition):
            components.setdefault(component, {}).update(dict.fromkeys(roles))
    forbidden = [
        frozenset(row.field for row in each.profile.forbidden_fields if not row.unless)
        for each in every
    ]
    return Kind(
        group,
        name,
        workload_type,
        frozenset(path for each in every for path in each.profile.fields),
        frozenset.intersection(*forbidden) if forbidden else frozenset(),
        tuple((component, tuple(roles)) for component, roles in components.items()),
    )


# Output


def as_text(problems: Sequence[Problem]) -> None:
    """Print one line each, with the reason at its end, and the totals on stderr."""
    for each in problems:
        prefix = "error: " if each.severity == "error" else ""
        print(f"{prefix}{problem_text(each)} [{each.reason}]")
    counts = Counter(each.severity for each in problems)
    totals = [f"{n} {word}{'s' if n != 1 else ''}" for word, n in sorted(counts.items())]
    loading.complain(", ".join(totals) or "no problems")


def as_json(problems: Sequence[Problem]) -> None:
    """One document with every problem."""
    counts = Counter(each.severity for each in problems)
    body = {
        "errors": counts["error"],
        "warnings": counts["warning"],
        "problems": [
            {
                "file": each.origin,
                "line": each.line,
                "column": each.column,
                "path": each.path,
                "severity": each.severity,
                "reason": each.reason,
                "meaning": meaning(each.reason),
                "found": each.found,
                "fix": each.fix,
            }
            for each in problems
        ],
    }
    write_json(body)


def write_json(body: Any) -> None:
    """Indented JSON on stdout."""
    sys.stdout.write(json.dumps(body, indent=2, ensure_ascii=False) + "\n")


def meaning(reason: str) -> str:
    """The sentence for a reason."""
    return REASONS.get(reason) or f"{reason.replace('-', ' ').capitalize()}."


def as_sarif(problems: Sequence[Problem]) -> None:
    """SARIF 2.1.0, which code hosts show beside the lines."""
    reasons = sorted({each.reason for each in problems})
    driver = {
        "name": "podgate",
        "version": version("podgate"),
        "rules": [{"id": each, "shortDescription": {"text": meaning(each)}} for each in reasons],
    }
    results = [result_of(each, reasons.index(each.reason)) for each in problems]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    write_json({"$schema": SARIF, "version": "2.1.0", "runs": [run]})


def result_of(each: Problem, index: int) -> dict[str, Any]:
    """One finding."""
    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(each.origin)}}
    if each.line:
        physical["region"] = {"startLine": each.line, "startColumn": max(each.column, 1)}
    location: dict[str, Any] = {"physicalLocation": physical}
    if each.path:
        location["logicalLocations"] = [{"fullyQualifiedName": each.path}]
    text = f"{each.found}; {each.fix}" if each.fix else each.found
    return {
        "ruleId": each.reason,
        "ruleIndex": index,
        "level": each.severity,
        "message": {"text": text},
        "locations": [location],
    }


FORMATS: dict[str, Callable[[Sequence[Problem]], None]] = {
    "text": as_text,
    "json": as_json,
    "sarif": as_sarif,
}
