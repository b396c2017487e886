"""Kinds whose pods only jq can find: asked in the worker, before the decision."""

from __future__ import annotations

import contextlib
import copy
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests import building
from tests.building import container, pod_spec, policy
from tests.conformance.fixtures import compile_jq
from webhook.admission.facts import find_facts, questions_of
from webhook.admission.judge import decide_review
from webhook.catalog.build import Choices, assemble
from webhook.catalog.catalog import Catalog
from webhook.documents.source import SourceDocument
from webhook.evaluation.outcome import Allowed, Decision, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import ObjectRead, Request, Stage
from webhook.jq.expressions import Evaluator, JqError
from webhook.libjq.worker import JqWorker
from webhook.policy.envelope import Context

POLICY = """
defaults: {compute: {cpuCoreRequest: 0.5}}
rules:
  security: {privileged: {canEdit: false}}
  scale: {replicas: {max: 5}}
"""
CHOSEN = 'if .spec.mode == "b" then .spec.b else .spec.a end'
RUNNING = "[.spec.shifts[].people] | add"
EACH = ".spec.shifts[] | first(.template, .spare | select(. != null))"


def interface(paths: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A definition of a kind that nobody has heard of."""
    component: dict[str, Any] = {
        "name": "crew",
        "ownerRef": "root",
        "specDefinition": paths,
        "podSelector": {
            "componentTypeSelector": {"matchLabels": {"crew": "yes"}},
            "componentInstanceSelector": {"idPath": ".metadata.labels.shift"},
        },
        **more,
    }
    if "instanceIdPath" not in more:
        del component["podSelector"]["componentInstanceSelector"]
    return {
        "apiVersion": "run.ai/v1alpha1",
        "kind": "Karta",
        "metadata": {"name": "ferry"},
        "spec": {
            "structureDefinition": {
                "rootComponent": {
                    "name": "root",
                    "kind": {"group": "sea.example.com", "version": "v1", "kind": "Ferry"},
                    "statusDefinition": {"statusMappings": {}},
                },
                "childComponents": [component],
            }
        },
    }


def catalog(*documents: dict[str, Any]) -> Catalog:
    given = [
        SourceDocument(f"given-{at}.yaml", 1, each, {}, {}) for at, each in enumerate(documents)
    ]
    found, problems = assemble(
        building.shipped(), given, Choices(context=Context()), building.table(), 1, compile_jq
    )
    assert found is not None, problems
    return found


def ferry(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "sea.example.com/v1",
        "kind": "Ferry",
        "metadata": {"name": "f", "namespace": "team"},
        "spec": spec,
    }


def template(*containers: dict[str, Any]) -> dict[str, Any]:
    return {"spec": pod_spec(*containers)}


BAD = container(securityContext={"privileged": True})


def request(
    new: dict[str, Any], old: dict[str, Any] | None = None, stage: Stage = Stage.MUTATE
) -> Request:
    return Request(
        "sea.example.com",
        "v1",
        "Ferry",
        "UPDATE" if old else "CREATE",
        new,
        old=old,
        namespace="team",
        stage=stage,
        user="alice",
    )


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with JqWorker(deadline=10, queue_timeout=20) as worker:
        yield Evaluator(worker.compile)


Judge = Callable[..., Decision]


@pytest.fixture(name="judge")
def judge_with(evaluator: Evaluator) -> Judge:
    def judge(found: Catalog, *objects: dict[str, Any], stage: Stage = Stage.MUTATE) -> Decision:
        return decide_review(request(*objects, stage=stage), found, References(), evaluator)

    return judge


def reasons(decision: Decision) -> list[tuple[str, str]]:
    assert isinstance(decision, Denied)
    told = [(each.reason, ".".join(map(str, each.path))) for each in decision.violations]
    return list(dict.fromkeys(told))  # the system policy says some of it too


def written(decision: Allowed) -> list[str]:
    """Where requests were written."""
    paths = (each["path"] for each in decision.patch)
    return [each for each in paths if each.endswith("/resources")]


@pytest.fixture(scope="module")
def chosen() -> Catalog:
    return catalog(interface({"podTemplateSpecPath": CHOSEN}), policy(POLICY))


@pytest.fixture(scope="module")
def shifts() -> Catalog:
    own = interface(
        {"podTemplateSpecPath": EACH},
        instanceIdPath=".spec.shifts[] | .name | ascii_downcase",
        scaleDefinition={"replicasPath": ".spec.shifts[].people"},
    )
    return catalog(own, policy(POLICY))


def test_the_place_that_jq_chooses_is_written_and_judged(chosen: Catalog, judge: Judge) -> None:
    decision = judge(chosen, ferry(mode="b", b=template()))
    assert isinstance(decision, Allowed)
    assert written(decision) == ["/spec/b/spec/containers/0/resources"]
    assert reasons(judge(chosen, ferry(mode="b", b=template(BAD)))) == [
        ("canEdit", "spec.b.spec.containers.0.securityContext.privileged")
    ]


def test_writing_again_changes_nothing(chosen: Catalog, judge: Judge) -> None:
    decision = judge(chosen, ferry(mode="b", b=template()))
    assert isinstance(decision, Allowed)
    again = judge(chosen, decision.object)
    assert isinstance(again, Allowed)
    assert not again.patch
    assert isinstance(judge(chosen, decision.object, stage=Stage.VALIDATE), Allowed)


def test_what_jq_did_not_choose_is_a_way_round_and_refused(chosen: Catalog, judge: Judge) -> None:
    decision = judge(chosen, ferry(mode="a", a=template(), b=template(BAD)))
    assert reasons(decision) == [("uncovered", "spec.b.spec")]


def test_an_update_is_compared_with_what_jq_chose_before(chosen: Catalog, judge: Judge) -> None:
    old = ferry(mode="b", b=template(BAD))
    same = copy.deepcopy(old)
    same["metadata"]["labels"] = {"a": "b"}
    assert isinstance(judge(chosen, same, old), Allowed)
    worse = copy.deepcopy(old)
    worse["spec"]["b"]["spec"]["containers"][0]["image"] = "registry.example.com/other:1"
    assert ("canEdit", "spec.b.spec.containers.0.securityContext.privileged") in reasons(
        judge(chosen, worse, old)
    )


def test_pods_ids_and_numbers_are_paired_by_their_number(shifts: Catalog, judge: Judge) -> None:
    two = [
        {"name": "Day", "people": 2, "spare": template()},
        {"name": "Night", "people": 9, "template": template(BAD)},
    ]
    assert reasons(judge(shifts, ferry(shifts=two))) == [
        ("max", "spec.shifts.1.people"),
        ("canEdit", "spec.shifts.1.template.spec.containers.0.securityContext.privileged"),
    ]
    two[1] = {"name": "Night", "people": 5, "template": template()}
    decision = judge(shifts, ferry(shifts=two))
    assert isinstance(decision, Allowed)
    assert written(decision) == [
        "/spec/shifts/0/spare/spec/containers/0/resources",
        "/spec/shifts/1/template/spec/containers/0/resources",
    ]


def test_as_many_ids_as_pods_or_the_object_is_refused(shifts: Catalog, judge: Judge) -> None:
    crooked = [{"name": "Day"}, {"name": "Night", "template": template()}]
    ((reason, _), *_) = reasons(judge(shifts, ferry(shifts=crooked)))
    assert reason == "instance-ids"
    unnamed = [{"template": template()}]
    ((reason, _), *_) = reasons(judge(shifts, ferry(shifts=unnamed)))
    assert reason == "instance-ids"


def test_a_computed_number_of_replicas_is_judged(judge: Judge) -> None:
    own = interface(
        {"podTemplateSpecPath": ".spec.template"}, scaleDefinition={"replicasPath": RUNNING}
    )
    found = catalog(own, policy(POLICY))
    shifts = [{"people": 3}, {"people": 3}]
    decision = judge(found, ferry(template=template(), shifts=shifts))
    assert reasons(decision) == [("max", "")]  # the number of a result is no path
    decision = judge(found, ferry(template=template(), shifts=shifts[:1]))
    assert isinstance(decision, Allowed)


def test_fragments_may_need_jq(judge: Judge) -> None:
    paths = {
        "containersPath": ".spec | if .crew then .crew else .people end",
        "schedulerNamePath": ".spec.scheduler",
    }
    found = catalog(interface({"fragmentedPodSpecDefinition": paths}), policy(POLICY))
    assert reasons(judge(found, ferry(people=[BAD]))) == [
        ("canEdit", "spec.people.0.securityContext.privileged")
    ]
    decision = judge(found, ferry(crew=[container()]))
    assert isinstance(decision, Allowed)
    assert written(decision) == ["/spec/crew/0/resources"]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("{spec: .spec.pod}", "computes a value"),
        (".spec.pod | error", "fails"),
        (".spec.pod | tonumber", "fails"),
        ("[limit] | .[0]", ""),
    ],
)
def test_a_path_that_fails_refuses_and_is_never_absent(
    path: str, told: str, evaluator: Evaluator
) -> None:
    document = SourceDocument("x", 1, interface({"podTemplateSpecPath": path}), {}, {})
    # Without jq at load nothing but forbidden words is known of a text.
    found, problems = assemble(building.shipped(), [document], Choices(), building.table())
    if found is None:
        assert {each.reason for each in problems} == {"forbidden-function"}
        return
    decision = decide_review(request(ferry(pod=pod_spec())), found, References(), evaluator)
    assert isinstance(decision, Denied)
    ((reason, text),) = [(each.reason, each.allowed) for each in decision.violations]
    assert reason == "path-failed"
    assert told in (text or "")


def test_a_computed_pod_is_told_when_its_definition_is_read() -> None:
    document = SourceDocument("x", 1, interface({"podSpecPath": "{a: .spec.b}"}), {}, {})
    found, problems = assemble(
        building.shipped(), [document], Choices(), building.table(), 1, compile_jq
    )
    assert found is None
    assert [each.reason for each in problems if each.severity == "error"] == ["not-a-place"]


def test_what_is_no_jq_is_told_with_the_position() -> None:
    document = SourceDocument("x", 1, interface({"podSpecPath": '.spec."a'}), {}, {})
    found, problems = assemble(
        building.shipped(), [document], Choices(), building.table(), 1, compile_jq
    )
    assert found is None
    (problem,) = [each for each in problems if each.severity == "error"]
    assert problem.reason == "not-jq"
    assert "position" in problem.found


def test_nobody_to_ask_is_a_refusal(chosen: Catalog) -> None:
    decision = decide_review(request(ferry(b=template())), chosen, References())
    assert [reason for reason, _ in reasons(decision)] == ["path-failed"]


def test_a_place_counted_from_the_end_is_the_place_itself(judge: Judge) -> None:
    own = interface({"podTemplateSpecPath": ".spec.crews[-1], .spec.crews[0]"})
    found = catalog(own, policy(POLICY))
    decision = judge(found, ferry(crews=[template(), template(BAD)]))
    assert reasons(decision) == [
        ("canEdit", "spec.crews.1.spec.containers.0.securityContext.privileged")
    ]


def test_jq_is_asked_for_objects_that_were_looked_up_too(
    chosen: Catalog, evaluator: Evaluator
) -> None:
    owner = ferry(mode="b", b=template())
    objects = {"/owner": ObjectRead(owner), "/gone": ObjectRead()}
    asked = replace(building.request(building.pod()), objects=objects)
    facts = find_facts(asked, chosen, evaluator)
    assert facts is not None
    assert facts.of(owner)


def test_native_kinds_ask_nobody() -> None:
    found = catalog(policy(POLICY))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod_spec()}
    asked = Request("", "v1", "Pod", "CREATE", pod, namespace="team", user="alice")
    assert questions_of(asked, found) == []

    def never(text: str) -> Any:
        raise AssertionError(text)

    assert isinstance(decide_review(asked, found, References(), Evaluator(never)), Allowed)


def test_every_shipped_definition_is_native() -> None:
    definitions = catalog().definitions.values()
    assert [path.text for each in definitions for one in each for path in one.foreign] == []


def test_a_killed_worker_neither_drops_nor_wrongly_answers_a_review(chosen: Catalog) -> None:
    good, bad = ferry(mode="b", b=template()), ferry(mode="b", b=template(BAD))
    decisions: list[tuple[bool, Decision]] = []
    with JqWorker(2, deadline=10, queue_timeout=20) as worker:
        evaluator = Evaluator(worker.compile)
        done = threading.Event()

        def kill() -> None:
            while not done.wait(0.02):
                for each in worker.processes:
                    process = each.process
                    if process is not None:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(process.pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            for number in range(60):
                allowed = number % 2 == 0
                asked = request(copy.deepcopy(good if allowed else bad))
                decisions.append((allowed, decide_review(asked, chosen, References(), evaluator)))
        finally:
            done.set()
            killer.join()
    assert len(decisions) == 60
    for allowed, decision in decisions:
        if isinstance(decision, Allowed):
            # Never without the worker's word: what passes is what would pass, and completed.
            assert allowed
            assert decision.patch
        else:
            told = {reason for reason, _ in reasons(decision)}
            assert told <= ({"path-failed"} if allowed else {"path-failed", "canEdit"})


def test_the_call_that_meets_a_dead_worker_is_made_again(chosen: Catalog) -> None:
    calls = []

    class DiedError(JqError):
        passes = True

    def flaky(text: str) -> Any:
        run = compile_jq(text)
        calls.append(text)

        def once(document: Any) -> Any:
            if len(calls) == 1:
                raise DiedError("killed")
            return run(document)

        return once

    decision = decide_review(
        request(ferry(mode="b", b=template())), chosen, References(), Evaluator(flaky)
    )
    assert isinstance(decision, Allowed)
    assert decision.patch


def wrapped(*objects: dict[str, Any]) -> dict[str, Any]:
    """An AppWrapper of these objects."""
    body = {"components": [{"template": each} for each in objects]}
    return building.shell("workload.codeflare.dev/v1beta2", "AppWrapper", body)


def test_jq_is_asked_for_wrapped_objects_too(chosen: Catalog, evaluator: Evaluator) -> None:
    """Each by its own: the same text chooses one place in one object and another in the next."""

    def judge(new: Any, old: Any = None) -> Decision:
        return decide_review(building.request(new, old), chosen, References(), evaluator)

    both = wrapped(ferry(mode="b", b=template()), wrapped(ferry(mode="a", a=template())))
    assert questions_of(building.request(both), chosen)
    decision = judge(both)
    assert isinstance(decision, Allowed)
    assert written(decision) == [
        "/spec/components/0/template/spec/b/spec/containers/0/resources",
        "/spec/components/1/template/spec/components/0/template/spec/a/spec/containers/0/resources",
    ]
    at = "spec.components.0.template.spec.b.spec.containers.0.securityContext.privileged"
    bad = wrapped(ferry(mode="b", b=template(BAD)))
    assert reasons(judge(bad)) == [("canEdit", at)]
    same = copy.deepcopy(bad)
    same["spec"]["suspend"] = True
    assert isinstance(judge(same, bad), Allowed)
    worse = copy.deepcopy(bad)
    worse["spec"]["components"][0]["template"]["spec"]["b"]["spec"]["containers"][0]["tty"] = True
    worse["spec"]["components"][0]["template"]["spec"]["b"]["spec"]["containers"][0]["args"] = ["x"]
    assert reasons(judge(worse, bad)) == [("canEdit", at)]
    without = decide_review(building.request(both), chosen, References())
    assert {reason for reason, _ in reasons(without)} == {"path-failed"}
