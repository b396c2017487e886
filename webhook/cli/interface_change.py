"""podgate interface update and suspend: an object with values written where its definition says."""

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
from webhook.libjq import evaluator as jq

FORMATS = ("yaml", "json", "patch")
NUMBERS = ("replicas", "minimum", "maximum")
Component = Annotated[str, typer.Option("--component", "-c", help="Name of the component.")]
Instances = Annotated[
    list[str] | None,
    typer.Option("--instance", "-i", help="Only this instance; may repeat. None: all."),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A fragment of the pods (schedulerName, labels, annotations, image, containers, …), "
        "or replicas, minimum, maximum. VALUE is text or JSON; null removes. May repeat.",
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Let it go on instead.")]
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

    Nothing is sent to a cluster: pipe the output to `kubectl apply -f -`.
    Exit code 0: printed, 1: the object has no such component, instance or place, 2: bad input.
    """

    def write(bound: Bound) -> None:
        target = bound.component(component)
        for form, value in by_form(values or []).items():
            target.update(form, dict.fromkeys(instance or target.instance_ids(), value))

    changed(given, manifest, output, write)


def suspend(
    given: Given, manifest: Manifest, resume: Resume = False, output: Output = "yaml"
) -> None:
    """Print an object suspended, or resumed with --resume, as its definition says.

    Nothing is sent to a cluster: pipe the output to `kubectl apply -f -`.
    Exit code 0: printed, 1: the kind has no way to do that, 2: bad input.
    """

    def write(bound: Bound) -> None:
        able = [each for each in bound.components.values() if each.definition.suspend_definition]
        if not able:
            text = f"the definition of {bound.document.get('kind')} has no suspendDefinition"
            raise AccessError("no-suspend", text)
        for each in able:
            resumed_or_suspended(each, resume)

    changed(given, manifest, output, write)


def resumed_or_suspended(component: BoundComponent, resume: bool) -> None:
    """Write what a component's definition lists."""
    if resume:
        component.resume()
    else:
        component.suspend()


def by_form(values: list[str]) -> dict[Form, Any]:
    """The values of --set by the form that they are of; BadInput once a fault is reported."""
    fragments: dict[str, Any] = {}
    numbers: dict[str, int] = {}
    for each in values:
        name, equals, text = each.partition("=")
        if not equals or not name:
            loading.complain(f"error: --set {each}: write NAME=VALUE, such as schedulerName=mine")
            raise loading.BadInput
        value = meant(name, text)
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


def meant(name: str, text: str) -> Any:
    """The value of a text: JSON where it is some, but a text fragment stays text."""
    if name in TEXTS and text != "null":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def changed(given: str, manifest: str, output: str, write: Callable[[Bound], None]) -> None:
    """Write into the one object of a manifest, and print it; exits with 1 or 2 where that fails."""
    try:
        loading.checked(output, FORMATS, "--output")
        found = definitions.definitions_of(given)
        body = one_of(manifest, *objects_of(manifest, found))
        definition = definitions.fitting(found, body)
        assert definition is not None
        bound = bind(definition, body, jq.evaluator())
        write(bound)
        show(bound, output)
    except (AccessError, JqError) as error:
        loading.complain(f"error: {texts.clean(manifest)}: {error}; {CORRECT}")
        raise typer.Exit(1) from None
    except loading.BadInput:
        raise typer.Exit(loading.BAD_INPUT) from None


def one_of(manifest: str, objects: list[SourceDocument], unread: bool) -> Any:
    """The one object of a manifest; BadInput where it is reported that there are more."""
    if unread:
        raise loading.BadInput
    if len(objects) > 1:
        loading.complain(f"error: {manifest}: found {len(objects)} objects; give one")
        raise loading.BadInput
    return objects[0].data


def show(bound: Bound, output: str) -> None:
    """Print the object, or what was changed."""
    if output == "patch":
        write_json(bound.patch)
    elif output == "json":
        write_json(bound.document)
    else:
        dumper = yaml.CSafeDumper
        text = yaml.dump(bound.document, Dumper=dumper, sort_keys=False, allow_unicode=True)
        sys.stdout.write(text)
