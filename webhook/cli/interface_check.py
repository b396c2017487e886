"""podgate interface check: checks a definition by itself, against schemas, and against samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer

from webhook.cli import definitions, interface_report, lint, loading
from webhook.cli.interface_report import Findings
from webhook.documents.problem import Problem
from webhook.documents.read_model import Report
from webhook.documents.source import SourceDocument
from webhook.interface.crd_schema import Schema
from webhook.interface.interface import is_interface
from webhook.interface.jq_paths import texts
from webhook.interface.null_safety import check_null_safety
from webhook.interface.profile_rules import check_profile
from webhook.libjq.evaluator import get_evaluator
from webhook.lint.definition import check_coverage, check_keys, check_sample, check_schemas
from webhook.objects.path import read
from webhook.pods.definition import Definition
from webhook.policy.table import TABLE
from webhook.sources.files import read_all

Files = Annotated[
    list[str], typer.Argument(metavar="FILE…", help="Definitions: files, folders, or - for stdin.")
]
Crds = Annotated[
    list[str] | None,
    typer.Option("--crd", metavar="PATH", help="CRDs of the kinds. Repeatable."),
]
Samples = Annotated[
    list[str] | None,
    typer.Option("--sample", metavar="PATH", help="Objects of the kinds. Repeatable."),
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit code 1 when there are warnings.")]
Output = Annotated[str, typer.Option("--output", "-o", help="text or json.")]
Schemas = dict[tuple[str, str], dict[str, Schema]]


def check(
    files: Files,
    crd: Crds = None,
    sample: Samples = None,
    strict: Strict = False,
    output: Output = "text",
) -> None:
    """Check definitions for mistakes.

    Checks structure, jq and ids. With --crd also every path against the schema. With --sample also
    what each component finds in an object.

    Exit code 0: no problems, or warnings without --strict, 1: warnings with --strict, 2: errors.
    """
    try:
        loading.check_choice(output, tuple(interface_report.FORMATS), "--output")
    except loading.BadInput:
        raise typer.Exit(loading.BAD_INPUT) from None
    findings = Findings()
    documents = own_documents(files, findings)
    found, problems = definitions.assemble_definitions(documents)
    findings.problems += problems
    every = [each for several in found.values() for each in several]
    check_fields(every, documents, findings)
    for each in documents:
        report = Report(each)
        if is_interface(each.data):
            check_null_safety(each, get_evaluator(), report)
        findings.problems += report.problems
    findings.texts = [(each, text) for each in documents for text in texts(each.data)]
    schemas = check_crds(crd, documents, every, findings) if crd else {}
    if sample and every:
        check_samples(sample, every, schemas, findings)
    findings.problems = sorted(
        dict.fromkeys(findings.problems), key=lambda each: (each.origin, each.line, each.column)
    )
    interface_report.FORMATS[output](findings)
    raise typer.Exit(lint.exit_code(findings.problems, strict=strict))


def own_documents(files: list[str], findings: Findings) -> list[SourceDocument]:
    """The definitions in the files; other documents are problems."""
    documents, problems = read_all(files)
    findings.problems += problems
    own = []
    for each in documents:
        if definitions.is_definition(each.data):
            own.append(each)
            continue
        line, column = each.position(())
        fix = "write a ResourceInterface, a Karta or a WorkloadProfile"
        found = "a document that defines no kind"
        findings.problems.append(Problem(each.origin, "", found, fix, "wrong-kind", line, column))
    return own


def check_fields(
    every: Sequence[Definition], documents: Sequence[SourceDocument], findings: Findings
) -> None:
    """Report field names that the catalogue does not have."""
    known = frozenset({*TABLE.fields, *TABLE.attributes})
    for each in every:
        source = profile_of(each, documents)
        if source is not None:
            findings.problems += check_profile(each.profile, each.interface, source, known)


def profile_of(
    definition: Definition, documents: Sequence[SourceDocument]
) -> SourceDocument | None:
    """The document of a definition's profile."""
    wanted = (definition.interface.group, definition.interface.kind)
    profiles = [each for each in documents if not is_interface(each.data)]
    return next((each for each in profiles if kind_of(each)[:2] == wanted), None)


def kind_of(document: SourceDocument) -> tuple[str, str, tuple[str, ...]]:
    """Group, kind and versions of a document, as far as they are set."""
    spec = read(document.data, ("spec",))
    if is_interface(document.data):
        spec = read(spec, ("structureDefinition", "rootComponent", "kind"))
    body = spec if isinstance(spec, dict) else {}
    listed = body.get("versions")
    versions = listed if isinstance(listed, list) else [body.get("version")]
    named = tuple(each for each in versions if isinstance(each, str))
    return str(body.get("group")), str(body.get("kind")), named


def check_crds(
    paths: list[str],
    documents: Sequence[SourceDocument],
    every: Sequence[Definition],
    findings: Findings,
) -> Schemas:
    """Check every path against the schema, and the pods of the schema against the definitions."""
    crds, problems = read_all(paths, kubernetes=True)
    findings.problems += problems
    schemas = definitions.schemas_in(crds)
    for each in documents:
        group, kind, _ = kind_of(each)
        versions = versions_of(each, documents)
        known = schemas.get((group, kind), {})
        served = {version: known[version] for version in versions if version in known}
        if not served:
            findings.problems.append(no_schema(each, kind, versions))
        findings.problems += check_schemas(each, served)
    for definition in every:
        known = schemas.get((definition.interface.group, definition.interface.kind), {})
        source = interface_of(definition, documents) or documents[0]
        for version in filter(known.__contains__, definition.versions):
            findings.problems += check_coverage(definition, version, known[version], source)
    return schemas


def versions_of(document: SourceDocument, documents: Sequence[SourceDocument]) -> tuple[str, ...]:
    """The versions that a document applies to.

    An interface also applies to those versions of its profile that have no interface of their own.
    """
    group, kind, versions = kind_of(document)
    if not is_interface(document.data):
        return versions
    same = [each for each in documents if kind_of(each)[:2] == (group, kind)]
    own = {name for each in same if is_interface(each.data) for name in kind_of(each)[2]}
    of_profiles = [
        name for each in same if not is_interface(each.data) for name in kind_of(each)[2]
    ]
    return (*versions, *(name for name in of_profiles if name not in own))


def no_schema(document: SourceDocument, kind: str, versions: Sequence[str]) -> Problem:
    """Report that no given CRD has a document's kind."""
    line, column = document.position(())
    fix = "give the CRD of this kind and version, or leave --crd out"
    found = f"no schema of {kind} {' or '.join(versions)}"
    return Problem(document.origin, "", found, fix, "schema-missing", line, column, "warning")


def interface_of(
    definition: Definition, documents: Sequence[SourceDocument]
) -> SourceDocument | None:
    """The document of a definition's interface."""
    raw = definition.interface.raw
    return next((each for each in documents if each.data is raw), None)


def check_samples(
    paths: list[str], every: Sequence[Definition], schemas: Schemas, findings: Findings
) -> None:
    """What the definitions find in objects, and the paths in them that the schemas do not have."""
    samples, problems = read_all(paths, kubernetes=True)
    findings.problems += problems
    totals: Counter[tuple[str, str]] = Counter()
    for each in samples:
        definition = definitions.fitting(every, each.data)
        if definition is None:
            line, column = each.position(())
            found = f"an object of {' '.join(definitions.kind_of_object(each.data)) or 'no kind'}"
            fix = "give an object of a kind and version that the definitions are for"
            findings.problems.append(
                Problem(each.origin, "", found, fix, "sample-kind", line, column)
            )
            continue
        group, version, kind = definitions.kind_of_object(each.data)
        schema = schemas.get((group, kind), {}).get(version)
        if schema is not None:
            findings.problems += check_keys(version, schema, each)
        counts, problems_of_sample = check_sample(definition, each, get_evaluator())
        findings.problems += problems_of_sample
        findings.samples.append((each, counts))
        totals.update({(definitions.label(definition), row.component): row.pods for row in counts})
    report_empty(totals, every, samples, findings)


def report_empty(
    totals: Counter[tuple[str, str]],
    every: Sequence[Definition],
    samples: Sequence[SourceDocument],
    findings: Findings,
) -> None:
    """Report components without a pod in any sample, for kinds with samples."""
    for (name, component), pods in totals.items():
        definition = next(each for each in every if definitions.label(each) == name)
        body = definition.interface.component(component)
        if pods or body is None or body.form is None:
            continue
        fix = "add a sample that has one, or check its path"
        found = f"component `{component}` of {name} has no pod in any sample"
        findings.problems.append(
            Problem(samples[0].origin, "", found, fix, "component-empty", 0, 0, "warning")
        )
