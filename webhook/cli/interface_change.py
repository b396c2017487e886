"""podgate interface update and suspend: write values into an object at the paths of its definition."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
import yaml

from webhook.access.component import Form, Replicas
from webhook.access.element import TEXTS
from webhook.access.errors import AccessError
from webhook.access.object import Bound, BoundComponent, bind
from webhook.cli import definitions, loading
from webhook.cli.interface_extract import CORRECT, Given, Manifest, objects_of
from webhook.cli.lint import write_json
from webhook.documents import texts
from webhook.documents.source import SourceDocument
from webhook.jq.expressions import JqError
from webhook.libjq.evaluator import get_evaluator

FORMATS = ("yaml", "json", "patch")
NUMBERS = ("replicas", "minimum", "maximum")
Component = Annotated[str, typer.Option("--component", "-c", help="Name of the component.")]
Instances = Annotated[
    list[str] | None,
    typer.Option("--instance", "-i", help="Only this instance. Repeatable. Default: all."),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A fragment of the pods (schedulerName, labels, annotations, image, containers, …), "
        "or replicas, minimum, maximum. VALUE is text or JSON; null removes. Repeatable.",
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Resume instead.")]
Output = Annotated[
    str, typer.Option("--output", "-o", help="yaml, json, or patch (operations of RFC 6902).")
]


def update(
    given: Given,
    manifest: Manifest,
    component: Component,
    values: Sets = None,
    instance: Instances = None,
    output: Output = "yaml",
) -> None:
    """Print an object with values written into the pods of one component.

    Does not change a cluster: pipe the output to `kubectl apply -f -`.
    Exit code 0: printed, 1: the object has no such component, instance or path, 2: bad input.
    """

    def write(bound: Bound) -> None:
        target = bound.component(component)
        for form, value in by_form(values or []).items():
            target.update(form, dict.fromkeys(instance or target.instance_ids(), value))

    change_manifest(given, manifest, output, write)


def suspend(
    given: Given, manifest: Manifest, resume: Resume = False, output: Output = "yaml"
) -> None:
    """Print an object suspended, or resumed with --resume.

    Does not change a cluster: pipe the output to `kubectl apply -f -`.
    Exit code 0: printed, 1: the kind cannot be suspended, 2: bad input.
    """

    def write(bound: Bound) -> None:
        able = [each for each in bound.components.values() if each.definition.suspend_definition]
        if not able:
            text = f"the definition of {bound.document.get('kind')} has no suspendDefinition"
            raise AccessError("no-suspend", text)
        for each in able:
            resumed_or_suspended(each, resume)

    change_manifest(given, manifest, output, write)


def resumed_or_suspended(component: BoundComponent, resume: bool) -> None:
    """Write the values that a component's definition lists."""
    if resume:
        component.resume()
    else:
        component.suspend()


def by_form(values: list[str]) -> dict[Form, Any]:
    """The values of --set by their form; BadInput after reporting an error."""
    fragments: dict[str, Any] = {}
    numbers: dict[str, int] = {}
    for each in values:
        name, equals, text = each.partition("=")
        if not equals or not name:
            loading.complain(f"error: --set {each}: write NAME=VALUE, such as schedulerName=mine")
            raise loading.BadInput
        value = parse_value(name, text)
        if name not in NUMBERS:
            fragments[name] = value
        elif isinstance(value, int) and not isinstance(value, bool):
            numbers[name] = value
        else:
            loading.complain(f"error: --set {each}: {name} takes a whole number")
            raise loading.BadInput
    if not values:
        loading.complain("error: nothing to write; add --set NAME=VALUE")
        raise loading.BadInput
    found: dict[Form, Any] = {"fragments": fragments} if fragments else {}
    return {**found, "scale": Replicas(**numbers)} if numbers else found


def parse_value(name: str, text: str) -> Any:
    """Parse a value: JSON if possible, except for text fragments."""
    if name in TEXTS and text != "null":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def change_manifest(given: str, manifest: str, output: str, write: Callable[[Bound], None]) -> None:
    """Change the one object of a manifest, and print it; exits with 1 or 2 if that fails."""
    try:
        loading.check_choice(output, FORMATS, "--output")
        found = definitions.definitions_of(given)
        body = one_of(manifest, *objects_of(manifest, found))
        definition = definitions.fitting(found, body)
        assert definition is not None
        bound = bind(definition, body, get_evaluator())
        write(bound)
        show(bound, output)
    except (AccessError, JqError) as error:
        loading.complain(f"error: {texts.clean(manifest)}: {error}; {CORRECT}")
        raise typer.Exit(1) from None
    except loading.BadInput:
        raise typer.Exit(loading.BAD_INPUT) from None


def one_of(manifest: str, objects: list[SourceDocument], unread: bool) -> Any:
    """The one object of a manifest; BadInput after reporting that there are several."""
    if unread:
        raise loading.BadInput
    if len(objects) > 1:
        loading.complain(f"error: {manifest}: found {len(objects)} objects; give one")
        raise loading.BadInput
    return objects[0].data


def show(bound: Bound, output: str) -> None:
    """Print the object, or the changes."""
    if output == "patch":
        write_json(bound.patch)
    elif output == "json":
        write_json(bound.document)
    else:
        dumper = yaml.CSafeDumper
        text = yaml.dump(bound.document, Dumper=dumper, sort_keys=False, allow_unicode=True)
        sys.stdout.write(text)
