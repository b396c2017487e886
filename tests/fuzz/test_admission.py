"""20,000 objects that break a rule: none is let in, and no compliant one beside them is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fuzz import numbers
from tests.fuzz.disguises import pod_of
from tests.fuzz.engine import Generator, carries, control, outcomes
from tests.fuzz.kinds import every
from tests.fuzz.places import FILE, NOT_PODS, rows_of
from tests.fuzz.report import SPELLINGS, Report
from tests.fuzz.reviews import send
from webhook.pods.locate import locate

SEED = 13
COUNT = 20_500
PARTS = 4
GENERATOR = Generator(SEED)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_violation_is_let_in_and_no_compliant_object_refused(part: int) -> None:
    report = Report(SEED)
    for index, outcome in outcomes(GENERATOR, range(part, COUNT, PARTS)):
        report.note(index, outcome)
    first = [cases[0] for cases in report.cases.values()]
    assert not first, "\n---\n".join([f"{report.let_in} let in", *first])
    assert not report.over
    assert not report.masked
    assert report.objects - report.controls > 19_000 / PARTS


def test_every_plain_compliant_object_is_let_in() -> None:
    assert not GENERATOR.bases.refused


def test_an_index_is_the_same_object_whatever_was_sent_before() -> None:
    fresh = Generator(SEED)
    for index in (7, 4_711, 20_000):
        one, other = GENERATOR.attempt(index), fresh.attempt(index)
        assert one is not None
        assert other is not None
        assert one[0].object == other[0].object
        assert one[0].old == other[0].old
        assert send(*one).admitted == send(*other).admitted


def test_every_class_and_every_rule_is_tried() -> None:
    ways = {(breach, way) for breach in GENERATOR.breaches for way in breach.ways}
    usable = {
        (breach, way) for breach, way in ways for place in every() if carries(place, breach, way)
    }
    assert ways == usable
    assert {way.spelling for _, way in ways} | {"control"} == SPELLINGS


def test_every_shipped_kind_has_a_place() -> None:
    """A kind that only wraps others is one of the disguises."""
    wrappers = {"workload.codeflare.dev/v1beta2 AppWrapper"}
    assert {each.kind for each in every()} == numbers.kinds_shipped() - wrappers


ELSEWHERE = {
    "artifact-gc": "the object states labels and annotations of these pods, which are evaluated",
    "artifact-gc-of-output": "the object states labels and annotations of these pods",
    "dummy": "an image alone, in a field of another name",
    "tool": "an image alone, in a field of another name",
    "dataset-initializer": "variables alone; everything else is the runtime's",
    "model-initializer": "variables alone; everything else is the runtime's",
    "run": "it names a Pipeline elsewhere; what it says of all tasks is in the places of tasks",
    "stored": "in the status, which only the controller writes",
    "stored-template": "in the status, which only the controller writes",
    "stored-defaults": "in the status, which only the controller writes",
    "stored-artifact-gc": "in the status, which only the controller writes",
    "stored-artifact-gc-of-output": "in the status, which only the controller writes",
}
"""Components with pods that no violation is put into, with the reason."""


@pytest.mark.parametrize("kind", sorted({each.kind for each in every()}))
def test_every_component_with_pods_has_a_place(kind: str) -> None:
    definition = numbers.definition_of(kind)
    stated = {each.name for each in definition.interface.components if each.form is not None}
    located: set[str] = set()
    for place in every():
        if place.kind == kind:
            document = control(place)
            if "schedulerName" in place.pod and place.slot:
                pod_of(place, document)["schedulerName"] = "volcano"
            located |= {each.component for each in locate(definition, document)}
    assert sorted(stated - located - set(ELSEWHERE)) == []


def test_what_is_no_place_of_a_pod_says_why() -> None:
    assert all(reason for reason in (*NOT_PODS.values(), *ELSEWHERE.values()))


@pytest.mark.parametrize("name", ["jobset.jobset.x-k8s.io", "pytorchjob.kubeflow.org"])
def test_the_file_of_places_is_what_the_crds_give(name: str, upstream_data: Path) -> None:
    found = rows_of([name], upstream_data)
    assert found
    known = json.loads(FILE.read_text())
    assert [row for row in known if row["kind"] in {each["kind"] for each in found}] == found
