"""podgate interface extract: what a definition finds in one object."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from webhook.access.errors import AccessError
from webhook.access.object import bind
from webhook.cli import definitions, loading
from webhook.cli.lint import write_json
from webhook.documents import texts
from webhook.documents.source import SourceDocument
from webhook.jq.expressions import Evaluator
from webhook.jq.external import evaluate
from webhook.libjq.evaluator import get_evaluator
from webhook.objects.path import display
from webhook.pods.coverage import find_uncovered
from webhook.pods.definition import Definition
from webhook.pods.locate import locate
from webhook.pods.location import LocationError, PodLocation
from webhook.pods.replicas import Scale, read_scales
from webhook.sources.files import read_all

Given = Annotated[
    str,
    typer.Argument(metavar="FILE|KIND", help="Definitions in a file, or a shipped kind."),
]
Manifest = Annotated[str, typer.Argument(metavar="MANIFEST", help="The object, or - for stdin.")]
Output = Annotated[str, typer.Option("--output", "-o", help="text or json.")]
CORRECT = "correct the object there, or the path in its definition"


def extract(given: Given, manifest: Manifest, output: Output = "text") -> None:
    """Print what the definition of its kind finds in an object: instances, pods, replicas, status.

    Exit code 0: printed, 1: the object has containers outside the paths of the definition, 2: bad
    input; the other objects are printed.
    """
    try:
        loading.check_choice(output, ("text", "json"), "--output")
        found = definitions.definitions_of(given)
        objects, unread = objects_of(manifest, found)
    except loading.BadInput:
        raise typer.Exit(loading.BAD_INPUT) from None
    faults = loading.Faults()
    bodies: list[dict[str, Any]] = []
    for each in objects:
        with faults.report_faults(each.origin):
            body = read_one(found, each)
            bodies += [body] if body is not None else []
    if output == "json" and bodies:
        write_json(bodies[0] if len(objects) == 1 else bodies)
    elif output == "text":
        for number, body in enumerate(bodies):
            as_text(body, first=not number)
    code = loading.BAD_INPUT if unread or len(bodies) < len(objects) else 0
    raise typer.Exit(faults.code(code or int(any(body["uncovered"] for body in bodies))))


def objects_of(manifest: str, found: list[Definition]) -> tuple[list[SourceDocument], bool]:
    """The objects of a manifest whose kinds have a definition, and whether others are unreadable.

    Objects of other kinds are skipped with a note. BadInput if there is no object at all.
    """
    documents, problems = read_all([manifest], kubernetes=True)
    loading.print_problems(problems)
    documents = definitions.unpack_lists(documents)
    fitting = [each for each in documents if definitions.fitting(found, each.data) is not None]
    known = ", ".join(f"{definitions.label(each)} {'/'.join(each.versions)}" for each in found)
    severity = "note" if fitting else "error"
    for each in documents:
        if definitions.fitting(found, each.data) is None:
            kind = " ".join(filter(None, definitions.kind_of_object(each.data))) or "no object"
            at = texts.clean(each.origin)
            message = f"found {texts.cut(kind)}; the definition is of {known}"
            loading.complain(f"{severity}: {at}: {message}")
    if not (documents or problems):
        loading.complain(f"error: {texts.clean(manifest)}: no object; write one of {known}")
    if not fitting:
        raise loading.BadInput
    return fitting, bool(problems)


def read_one(found: list[Definition], document: SourceDocument) -> dict[str, Any] | None:
    """Everything that a definition finds in one object, as JSON; None, after reporting the problem,
    if it is unreadable.
    """
    definition = definitions.fitting(found, document.data)
    assert definition is not None
    evaluator = get_evaluator()
    facts = evaluate(definition.foreign, evaluator, (document.data,))
    definition = definition.with_results(facts.results(document.data))
    try:
        pods = locate(definition, document.data)
        scales = read_scales(definition, document.data)
        others = find_uncovered(document.data, pods, definition)
    except LocationError as error:
        line, column = document.position(error.path)
        where = f"{texts.clean(document.origin)}:{line}:{column}"
        loading.complain(f"error: {where}: {error.text}; {CORRECT} [{error.reason}]")
        return None
    metadata = document.data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return {
        "kind": definition.interface.kind,
        "name": name if isinstance(name, str) else "",
        "pods": [pod_json(each) for each in pods],
        "scales": [scale_json(each) for each in scales],
        "status": status_json(definition, document, evaluator),
        "uncovered": [{"path": display(path), "what": what} for path, what in others],
    }


def status_json(
    definition: Definition, document: SourceDocument, evaluator: Evaluator
) -> dict[str, Any] | None:
    """The status of the object; None if it is empty or the kind has none."""
    if not document.data.get("status"):
        return None
    try:
        found = bind(definition, document.data, evaluator).root.status()
    except AccessError as error:
        return {"state": None, "problem": str(error)}
    if found is None:
        return None
    conditions = {each.type: each.status for each in found.conditions}
    return {
        "state": found.state,
        "matching": list(found.matching),
        "phase": found.phase,
        "conditions": conditions,
    }


def pod_json(pod: PodLocation) -> dict[str, Any]:
    """One pod location."""
    listed = pod.spec.get("containers")
    return {
        "component": pod.component,
        "instance": pod.instance,
        "path": display(pod.place),
        "inPieces": pod.fragments is not None,
        "roles": list(pod.roles),
        "children": pod.children,
        "containers": len(listed) if isinstance(listed, list) else 0,
        "containersOutside": [display(path) for path, _ in pod.extra],
    }


def scale_json(scale: Scale) -> dict[str, Any]:
    """One instance's replicas."""
    return {
        "component": scale.component,
        "instance": scale.instance,
        "replicas": scale.replicas,
        "minimum": scale.minimum,
        "maximum": scale.maximum,
        "path": display(scale.path) if scale.path else None,
    }


def as_text(body: dict[str, Any], *, first: bool) -> None:
    """Tables as text."""
    if not first:
        print()
    print(f"{body['kind']}/{body['name'] or '(unnamed)'}")
    rows = [("COMPONENT", "INSTANCE", "ROLE", "CONTAINERS", "POD")]
    for each in body["pods"]:
        count = str(each["containers"] + len(each["containersOutside"]))
        where = each["path"] + (" (in fragments)" if each["inPieces"] else "")
        rows.append(
            (each["component"], each["instance"] or "-", "/".join(each["roles"]), count, where)
        )
    table(rows)
    rows_of_scales = [("COMPONENT", "INSTANCE", "REPLICAS", "LEAST", "MOST")]
    for each in body["scales"]:
        numbers = [each[key] for key in ("replicas", "minimum", "maximum")]
        shown = ["-" if number is None else str(number) for number in numbers]
        rows_of_scales.append(
            (each["component"], each["instance"] or "-", shown[0], shown[1], shown[2])
        )
    if body["scales"]:
        print()
        table(rows_of_scales)
    if body["status"] is not None:
        print()
        print(status_text(body["status"]))
    for each in body["uncovered"]:
        print(f"not covered: a {each['what']} at {each['path']}")


def table(rows: list[tuple[str, str, str, str, str]]) -> None:
    """Rows in columns; the last one is not padded."""
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row[:4], widths, strict=True)]
        print("  ".join([*cells, row[4]]).rstrip())


def status_text(status: dict[str, Any]) -> str:
    """The resulting state, other states that apply, and the phase and conditions they come from."""
    if status["state"] is None:
        return f"status: {status['problem']}"
    others = [each for each in status["matching"] if each != status["state"]]
    details = [f"also {', '.join(others)}"] if others else []
    details += [f"phase {status['phase']}"] if status["phase"] else []
    details += [f"{name}={value}" for name, value in status["conditions"].items()]
    return f"status: {status['state']}" + (f" ({'; '.join(details)})" if details else "")
