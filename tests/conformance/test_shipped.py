"""The library on shipped kinds and real objects: it agrees with what admission sees, and holds."""

from __future__ import annotations

import contextlib
import copy
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from tests.conformance.fixtures import compile_jq, evaluator, pod
from tests.definitions import POLICIES, read_file
from tests.upstream import data
from webhook.access.component import FORMS, Replicas
from webhook.access.errors import AccessError
from webhook.access.gang import component_of, instance_of, summarize
from webhook.access.object import Bound, bind
from webhook.access.pod_count import subtree_scale
from webhook.documents.read_model import Report
from webhook.documents.source import SourceDocument
from webhook.documents.yaml_source import read_documents
from webhook.interface.document import Mode
from webhook.interface.jq_rules import check_expressions
from webhook.jq.expressions import JqError
from webhook.pods.definition import Definition
from webhook.pods.locate import locate
from webhook.pods.replicas import read_scales

Kind = tuple[str, str, str]
CHANGES = 400


@cache
def definitions() -> dict[Kind, Definition]:
    """The shipped definitions by group, version and kind."""
    found: dict[Kind, Definition] = {}
    for path in sorted(POLICIES.glob("*.yaml")):
        interface, profile, _ = read_file(path)
        found[interface.group, interface.version, interface.kind] = Definition(interface, profile)
    return found


@cache
def objects() -> list[tuple[Definition, Any]]:
    """The real objects of shipped kinds."""
    found = []
    for path in sorted((data.folder() / "manifests").rglob("*.y*ml")):
        documents, _ = read_documents(path.read_bytes(), path.name)
        for each in documents:
            if isinstance(each.data, dict) and isinstance(each.data.get("apiVersion"), str):
                group, _, version = each.data["apiVersion"].rpartition("/")
                definition = definitions().get((group, version, str(each.data.get("kind"))))
                if definition is not None:
                    found.append((definition, each.data))
    return found


def test_shipped_definitions_contain_nothing_forbidden() -> None:
    for definition in definitions().values():
        report = Report(SourceDocument("shipped", 1, {}, {}, {}))
        check_expressions(definition.interface.spec, report, ("spec",), compile_jq)
        assert report.problems == []


def specs(bound: Bound) -> dict[tuple[str, str], Any]:
    """Every pod spec that is stated as a whole, by component and instance."""
    found = {}
    for name, component in bound.components.items():
        for instance, template in (component.templates() or {}).items():
            found[name, instance] = template.get("spec") or {}
        for instance, spec in (component.pod_specs() or {}).items():
            found[name, instance] = spec
    return found


def scales(bound: Bound) -> dict[tuple[str, str], Replicas]:
    """Every scale, by component and instance."""
    return {
        (name, instance): scale
        for name, component in bound.components.items()
        for instance, scale in (component.scales() or {}).items()
    }


def test_components_are_what_admission_sees() -> None:
    assert len(objects()) > 100
    for definition, document in objects():
        bound = bind(definition, document, evaluator())
        assert specs(bound) == {
            (each.component, each.instance): each.spec
            for each in locate(definition, document)
            if each.fragments is None
        }
        scaled = {each.name for each in definition.interface.components if each.scales}
        assert scales(bound) == {
            (each.component, each.instance): Replicas(each.replicas, each.minimum, each.maximum)
            for each in read_scales(definition, document)
            if each.component in scaled
        }
        assert bound.patch == []


def test_parity_reads_every_real_object() -> None:
    for definition, document in objects():
        bound = bind(definition, document, evaluator(), "parity")
        assert bound.root.status() is not None
        for component in bound.components.values():
            with contextlib.suppress(AccessError):
                # Upstream fails where a list of the object is absent; it must not fail otherwise.
                component.instances()


ODD: tuple[Any, ...] = (None, 7, -1, 1.5, True, "x", "", [], {}, [None], [[1]], {"": 7}, 2**40)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a document."""
    if at:
        yield at
    members: Any = ()
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list):
        members = enumerate(value)
    for key, each in members:
        yield from places(each, (*at, key))


def changed(document: Any, choice: random.Random) -> Any:
    """A copy with odd values at some places."""
    found = copy.deepcopy(document)
    for _ in range(choice.randint(1, 3)):
        path = choice.choice(list(places(found)))
        node = found
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = copy.deepcopy(choice.choice(ODD))
    return found


def write_back(bound: Bound, name: str) -> None:
    """Read and write every form of a component."""
    component = bound.component(name)
    for form in FORMS:
        values = component.by_instance(form)
        if values:
            component.update(form, values)


def use(bound: Bound, document: Any, mode: Mode) -> None:
    """Call all that there is; errors of the library are answers."""
    answers = (AccessError, JqError)
    query = pod(document, mode)
    for name, component in bound.components.items():
        for call in (
            component.instances,
            component.status,
            component.suspend,
            component.resume,
            lambda name=name: subtree_scale(bound, name),
            lambda name=name: instance_of(bound, query, name),
            lambda name=name: write_back(bound, name),
            lambda: component_of(summarize(bound.spec, mode), query),
        ):
            with contextlib.suppress(*answers):
                call()


@pytest.mark.parametrize("mode", ["parity", "admission"])
def test_odd_objects_are_answered_or_refused_and_nothing_else(mode: Mode) -> None:
    choice = random.Random(5)
    for _ in range(CHANGES):
        definition, document = choice.choice(objects())
        odd = changed(document, choice)
        before = copy.deepcopy(odd)
        use(bind(definition, odd, evaluator(), mode), odd, mode)
        assert odd == before
