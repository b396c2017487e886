"""Operators that keep taking away what podgate writes: recognised, counted, reported."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.admission.test_controllers import FIXED, main_of
from tests.admission.test_exemptions import owned
from tests.building import catalog, deployment, edited, request, served
from webhook.admission.judge import decide_review
from webhook.cluster.events import rewriting_event
from webhook.controller.rewriting import find_rewriters, notes
from webhook.evaluation.outcome import Allowed
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, Stage, is_rewriting
from webhook.server.call import Observation
from webhook.server.rewriting import KEPT, OFTEN, SAME_REQUEST, Rewriting
from webhook.server.serve import Process
from webhook.service.metrics import Metrics
from webhook.sources.snapshot import Snapshot

OPERATOR = "system:serviceaccount:things-system:things-operator"
RULES = catalog(FIXED)


def answer(asked: Request) -> Allowed:
    found = decide_review(asked, RULES, References())
    assert isinstance(found, Allowed)
    return found


def round_of(change: Any = None, **more: Any) -> tuple[Request, Allowed]:
    """An operator sends what it wants of an object that podgate has completed."""
    wanted = owned(served(deployment()), "Thing", "example.com/v1")
    stored = answer(request(wanted, user=OPERATOR)).object
    stored = edited(
        stored,
        lambda each: each["metadata"].update(uid="u1", resourceVersion="7", generation=2),
    )
    sent = edited(wanted, lambda each: each["metadata"].update(uid="u1"))
    if change is not None:
        sent = edited(sent, change)
    asked = request(sent, stored, user=OPERATOR, name="web", **more)
    return asked, answer(asked)


def test_an_update_that_only_takes_away_what_was_written_is_recognised() -> None:
    asked, decision = round_of()
    assert decision.patch
    assert is_rewriting(asked, decision)


@pytest.mark.parametrize(
    "change",
    [
        lambda each: main_of(each).update(image="registry.example.com/main:2"),
        lambda each: each["metadata"].update(annotations={"a": "b"}),
        lambda each: each["spec"].update(replicas=3),
        lambda each: main_of(each).update(
            securityContext={"allowPrivilegeEscalation": False}, env=[{"name": "A", "value": "b"}]
        ),
    ],
)
def test_an_update_that_changes_more_or_takes_nothing_away_is_none(change: Any) -> None:
    assert not is_rewriting(*round_of(change))


def test_dry_runs_creations_and_validation_are_none() -> None:
    asked, decision = round_of()
    for other in (
        replace(asked, dry_run=True),
        replace(asked, operation="CREATE"),
        replace(asked, stage=Stage.VALIDATE),
        replace(asked, old=None),
    ):
        assert not is_rewriting(other, decision)
    assert not is_rewriting(asked, None)
    assert not is_rewriting(asked, replace(decision, patch=()))


@dataclass
class Clock:
    """A clock that stands until it is moved."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_reinvocation_counts_once_and_a_habit_is_counted() -> None:
    clock = Clock()
    seen = Rewriting(clock)
    asked, decision = round_of()
    found = []
    for _ in range(3):
        found.append(seen.note(asked, decision))
        clock.now += SAME_REQUEST / 2
        # The API server asks again, by another uid, after another webhook took it away once more.
        found.append(seen.note(replace(asked, uid="other"), decision))
        clock.now += SAME_REQUEST
    assert found == [1, 0, 2, 0, 3, 0]
    (row,) = seen.rows()
    assert (row["user"], row["count"], row["policies"]) == (OPERATOR, 3, [["", "rules-0"]])
    assert row["fields"] == ["environmentVariables", "security.allowPrivilegeEscalation"]
    clock.now += 10_000
    assert seen.rows() == []


def test_memory_is_bounded_however_many_objects_there_are() -> None:
    clock = Clock()
    seen = Rewriting(clock)
    asked, decision = round_of()
    for number in range(KEPT * 2):
        seen.note(replace(asked, name=f"{number}-" + "n" * 5_000), decision)
    assert len(seen.seen) == KEPT
    assert max(len(each.name) for each in seen.seen) < 300
    assert f"{KEPT * 2 - 1}-" in next(reversed(seen.seen)).name


def test_the_server_counts_it_and_tells_the_object_once_it_is_a_habit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = Process.__new__(Process)
    process.metrics, clock, sent = Metrics.new(), Clock(), []
    process.rewriting, process.traces = Rewriting(clock), None

    class Events:
        def send(self, event: Any) -> None:
            sent.append(event)

    process.owner_events = Events()  # type: ignore[assignment]
    asked, decision = round_of()
    for _ in range(OFTEN + 1):
        process.observe(Observation(Stage.MUTATE, 0.01, "u", asked, decision))
        clock.now += 2 * SAME_REQUEST
    ordinary = request(served(deployment()))
    process.observe(Observation(Stage.MUTATE, 0.01, "u", ordinary, answer(ordinary)))
    text = process.metrics.text().decode()
    assert f'podgate_rewritten_updates_total{{kind="Deployment"}} {OFTEN + 1}.0' in text
    assert len(sent) == 2
    assert sent[0]["involvedObject"]["name"] == "web"
    assert OPERATOR in sent[0]["message"]
    assert sent[0]["metadata"]["name"] == sent[1]["metadata"]["name"]


def test_the_event_is_about_the_object_and_holds_no_value() -> None:
    asked, _ = round_of()
    event = rewriting_event(asked, {"workingDir"}, datetime(2026, 11, 22, tzinfo=UTC))
    assert event is not None
    assert event["involvedObject"] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "namespace": "team",
        "name": "web",
        "uid": "u1",
    }
    assert "trustedControllers" in event["message"]
    assert rewriting_event(replace(asked, namespace=""), {"a"}, datetime.now(UTC)) is None


def row(count: int, **more: Any) -> dict[str, Any]:
    return {
        "group": "apps",
        "kind": "Deployment",
        "namespace": "team",
        "name": "web",
        "user": OPERATOR,
        "count": count,
        "policies": [["", "rules"], ["team", "own"]],
        "fields": ["workingDir"],
        **more,
    }


def test_the_controller_sums_over_all_processes_and_puts_a_line_into_statuses() -> None:
    workers = [
        {"in_force": [], "rewriting": [row(1), row(1, name="rare")]},
        {"in_force": [], "rewriting": [row(2, fields=["tty"])]},
        {"in_force": []},
        {"rewriting": [{"count": 9}, "text", row("many")]},  # type: ignore[arg-type]
    ]
    (found,) = find_rewriters(workers)
    assert (found.count, found.fields) == (3, ("tty", "workingDir"))
    told = notes([found])
    assert set(told) == {("ClusterWorkloadPolicy", "", "rules"), ("WorkloadPolicy", "team", "own")}
    (line,) = told["ClusterWorkloadPolicy", "", "rules"]
    assert OPERATOR in line.found
    assert "Deployment.apps team/web" in line.found
    assert "trustedControllers" in line.fix


def test_workers_leave_word_beside_what_they_judge_by(tmp_path: Any) -> None:
    snapshot = Snapshot(tmp_path)
    snapshot.acknowledge(os.getpid(), {"in_force": []})
    assert snapshot.acknowledgements() == [{"in_force": [], "rewriting": []}]
    snapshot.report_rewriting(os.getpid(), [row(1)])
    assert snapshot.acknowledgements()[0]["rewriting"] == [row(1)]
