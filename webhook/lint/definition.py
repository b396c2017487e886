"""Checks a definition against its CRD's schema and against sample objects, all problems at once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from webhook.documents.problem import Problem
from webhook.documents.read_model import Report, show_value
from webhook.documents.source import SourceDocument
from webhook.documents.suggestions import closest
from webhook.interface.crd_schema import Schema, expression, spots
from webhook.interface.jq_paths import Text, texts
from webhook.interface.pruning import Shapes
from webhook.interface.schema_path import At, NotInSchemaError, targets
from webhook.interface.schema_places import is_open, kind_of
from webhook.jq.compile import QueryError
from webhook.jq.expressions import Evaluator
from webhook.jq.external import Facts, evaluate
from webhook.jq.pair import pair_values
from webhook.objects.path import Path
from webhook.pods.coverage import find_uncovered
from webhook.pods.definition import Definition
from webhook.pods.locate import locate
from webhook.pods.location import LocationError
from webhook.pods.replicas import Scale, read_scales
from webhook.pods.schema_proof import find_gaps

FORMS = {"podTemplateSpecPath": "pod template", "podSpecPath": "pod spec"}


class Count(NamedTuple):
    """Counts of one component in one object: pods, named instances, and instances with a scale."""

    component: str
    pods: int
    ids: int | None
    scales: int
    replicas: int | None


def check_schemas(document: SourceDocument, schemas: Mapping[str, Schema]) -> tuple[Problem, ...]:
    """Check every version. A path that only some versions lack is a warning."""
    found = [(version, check_schema(document, version, each)) for version, each in schemas.items()]
    lacking = Counter((each.path, each.reason) for _, problems in found for each in problems)
    merged: dict[tuple[str, str], Problem] = {}
    for _, problems in found:
        for each in problems:
            key = (each.path, each.reason)
            partly = lacking[key] < len(schemas) and each.reason == "not-in-schema"
            severity = "warning" if partly else each.severity
            merged.setdefault(key, replace(each, severity=severity))
    return tuple(merged.values())


def check_schema(document: SourceDocument, version: str, schema: Schema) -> tuple[Problem, ...]:
    """Report paths of an interface or a profile that the schema of a version does not have."""
    report = Report(document)
    for each in texts(document.data, version):
        if each.of_pod or each.key == "expression" or not applies(document.data, each.at, version):
            continue
        try:
            found = targets(each.text, schema)
        except NotInSchemaError as error:
            near = closest(error.path.rpartition(".")[2], error.known)
            fix = f"did you mean `{near}`?" if near else "follow the schema, or remove it"
            problem = f"`{show_value(each.text)}`: the schema of {version} has no `{show_value(error.path)}`"
            report.add(each.at, problem, fix, "not-in-schema")
            continue
        if each.key in FORMS:
            check_form(each, found, schema, report)
    return tuple(report.problems)


def applies(data: Any, at: Path, version: str) -> bool:
    """Whether a row of the profile is for this version."""
    if at[:2] != ("spec", "extraContainers") or len(at) < 3:
        return True
    row = data["spec"]["extraContainers"][at[2]]
    only = row.get("onlyIn") if isinstance(row, dict) else None
    return not isinstance(only, list) or not only or version in only


def check_form(each: Text, found: list[At], schema: Schema, report: Report) -> None:
    """Check that a path of pods leads to pods. For a path that is too short, suggest the full one."""
    wanted = FORMS[each.key]
    for place in found:
        if place.schema is None or is_open(place.schema) or kind_of(place.schema) == wanted:
            continue
        if wanted == "pod template" and kind_of(place.schema.get("properties", {}).get("spec", {})):
            continue
        below = [expression(spot.steps) for spot in spots(schema) if spot.what == wanted]
        near = [path for path in below if path.startswith(place.text)] or below
        fix = f"a {wanted} is at {' and '.join(near[:3])}" if near else f"name a {wanted}"
        problem = f"`{show_value(each.text)}` leads to no {wanted} in the schema"
        report.add(each.at, problem, fix, "not-a-pod")


def check_coverage(
    definition: Definition, version: str, schema: Schema, document: SourceDocument
) -> tuple[Problem, ...]:
    """Report paths of the schema that can have containers and that the definition does not cover."""
    report = Report(document)
    for spot in find_gaps(schema, definition):
        what = {"open": "an open subtree", "pieces": "a container in fragments"}
        place = expression(spot.steps)
        found = f"{what.get(spot.what, 'a ' + spot.what)} at {place} in the schema of {version}"
        fix = "add it to the definition, or to `notPods` with the reason"
        if spot.what == "open":
            fix = "add it to `openSubtrees`, or to `notPods` with the reason"
        if any(names_place(each.text, place) for each in definition.foreign):
            found = f"{found}, which a path that needs jq names, and no schema can prove it"
            fix = "check that jq finds it in every object that uses it, or give it a component"
            report.warn((), found, fix, "place-uncovered")
            continue
        report.add((), found, fix, "place-uncovered")
    return tuple(report.problems)


def names_place(text: str, place: str) -> bool:
    """Whether a jq text contains a path literally."""
    return re.search(rf"{re.escape(place)}(?!\w)", text) is not None


def check_keys(version: str, schema: Schema, sample: SourceDocument) -> tuple[Problem, ...]:
    """Report keys of a sample that its schema does not have. The API server would prune them."""
    report = Report(sample)
    for path, around in Shapes().of(schema).lacking(sample.data):
        name = str(path[-1])
        near = closest(name, around.keys)
        fix = f"did you mean `{near}`?" if near else "follow the schema, or remove it"
        found = f"the schema of {version} has no `{show_value(name)}` here"
        report.warn(path, found, fix, "not-in-schema")
    return tuple(report.problems)


def check_sample(
    definition: Definition, sample: SourceDocument, evaluator: Evaluator | None = None
) -> tuple[tuple[Count, ...], tuple[Problem, ...]]:
    """Return the counts of each component in a sample, and the problems of reading it."""
    facts = evaluate(definition.foreign, evaluator, (sample.data,)) if evaluator else Facts()
    definition = definition.with_results(facts.results(sample.data))
    report = Report(sample)
    try:
        found = locate(definition, sample.data)
        scales = read_scales(definition, sample.data)
        for path, what in find_uncovered(sample.data, found, definition):
            fix = "add it to the definition, or to `notPods` with the reason"
            report.add(path, f"a {what} that the definition does not know", fix, "uncovered")
    except LocationError as error:
        report.add(error.path, error.text, "change the definition, or the sample", error.reason)
        return (), tuple(report.problems)
    pods = [each.component for each in found]
    counts = list(count_pods(definition, sample.data, pods, scales, report))
    return tuple(counts), tuple(report.problems)


def count_pods(
    definition: Definition, document: Any, pods: list[str], scales: list[Scale], report: Report
) -> Iterator[Count]:
    """Return the counts of each component. Ids without pods are reported."""
    for component in definition.interface.components:
        own = [each for each in scales if each.component == component.name]
        numbers = [each.replicas for each in own if each.replicas is not None]
        ids = None
        if component.ids is not None:
            try:
                ids = len(pair_values(component.ids, component.ids, document))
            except QueryError as error:
                report.add((), str(error), "give each instance its own id", "instance-ids")
        count = pods.count(component.name)
        if component.form in {"template", "spec"} and ids is not None and count < ids:
            found = f"component `{component.name}` has {ids} ids, but {count} pods"
            report.warn((), found, "check the path to its pods", "ids-without-pods")
        total = sum(numbers) if own and len(numbers) == len(own) else None
        yield Count(component.name, count, ids, len(own), total)
