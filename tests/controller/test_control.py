"""What the controller decides: who leads, what is registered, what the status of a document says."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.building import catalog, policy
from tools import own_crds
from webhook.catalog.watched_documents import DocumentStatus
from webhook.cluster.lease import MICRO, Election
from webhook.controller.hooks import (
    SWITCHED_OFF,
    Wanted,
    desired_configuration,
    differs,
    fails_closed,
    switch_change,
)
from webhook.controller.match_conditions import UNCHANGED, UNCHANGED_POD, skips_of
from webhook.controller.registration import Target, configurations
from webhook.controller.status import Effect, find_effects, find_loaded, state_of, status_of
from webhook.documents.problem import Problem
from webhook.sources.load import Sources, load

NOW = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)
ELECTION = Election("podgate-system", "podgate", "one")
Json = dict[str, Any]


def lease(holder: str, age: float, **spec: Any) -> Json:
    renewed = (NOW - timedelta(seconds=age)).strftime(MICRO)
    body = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed, **spec}
    return {"metadata": {"name": "podgate", "resourceVersion": "7"}, "spec": body}


@pytest.mark.parametrize(
    ("found", "step"),
    [
        (None, "create"),
        (lease("one", 14), "renew"),
        (lease("two", 14), "wait"),
        (lease("two", 16), "take"),
        (lease("", 1), "take"),
        (lease("two", 1, renewTime="never"), "take"),
    ],
)
def test_the_lease_has_one_holder_until_it_is_silent(found: Json | None, step: str) -> None:
    assert ELECTION.step(found, NOW) == step


def test_taking_a_lease_is_of_the_version_that_was_read_and_counts_changes() -> None:
    body = ELECTION.lease_with_us(lease("two", 16, leaseTransitions=3), NOW)
    assert body["metadata"]["resourceVersion"] == "7"
    assert (body["spec"]["holderIdentity"], body["spec"]["leaseTransitions"]) == ("one", 4)
    assert ELECTION.step(body, NOW) == "renew"
    again = ELECTION.lease_with_us(
        body | {"metadata": body["metadata"]}, NOW + timedelta(seconds=5)
    )
    assert again["spec"]["acquireTime"] == body["spec"]["acquireTime"]
    assert (
        Election("podgate-system", "podgate", "two").step(ELECTION.lease_without_holder(body), NOW)
        == "take"
    )


@pytest.fixture(scope="module")
def documents() -> list[Json]:
    catalog, _ = load(Sources())
    assert catalog is not None
    return configurations(catalog.definitions, Target(url="https://podgate"))


def test_what_fails_closed_stays_so_for_a_leader_that_has_proven_nothing_yet(
    documents: list[Json],
) -> None:
    validating = documents[1]
    unproven = Wanted(validating, proven=False)
    assert desired_configuration(unproven, validating) == validating
    opened = switch_change(validating, off=True)
    assert not fails_closed(desired_configuration(unproven, opened))
    other = copy.deepcopy(validating)
    other["webhooks"][0]["name"] = "other.example.com"
    assert not fails_closed(desired_configuration(unproven, other))


def test_hooks_fail_closed_only_when_proven_and_not_switched_off(documents: list[Json]) -> None:
    validating = documents[1]
    assert fails_closed(desired_configuration(Wanted(validating), None))
    assert not fails_closed(desired_configuration(Wanted(validating, proven=False), None))
    off = {"metadata": {"annotations": {SWITCHED_OFF: "true"}}}
    assert not fails_closed(desired_configuration(Wanted(validating), off))
    change = switch_change(validating, off=True)
    assert not fails_closed(change)
    assert switch_change(validating, off=False)["metadata"]["annotations"] == {SWITCHED_OFF: None}


def as_stored(body: Json) -> Json:
    """A configuration with what the API server fills in."""
    found = copy.deepcopy(body)
    found["metadata"] |= {"uid": "u", "generation": 1}
    for entry in found["webhooks"]:
        entry.setdefault("namespaceSelector", {})
        entry["objectSelector"] = {}
    return found


def test_what_the_server_fills_in_is_no_difference_and_every_other_is(
    documents: list[Json],
) -> None:
    for body in documents:
        found = as_stored(body)
        assert not differs(body, found)
        assert differs(body, None)
        for change in (
            {"failurePolicy": "Other"},
            {"rules": []},
            {"timeoutSeconds": 30},
            {"objectSelector": {"matchLabels": {"a": "b"}}},
            {"matchConditions": [{"name": "x", "expression": "false"}]},
        ):
            drifted = copy.deepcopy(found)
            drifted["webhooks"][0] |= change
            assert differs(body, drifted), change
        renamed = copy.deepcopy(found)
        renamed["metadata"]["labels"] = {}
        assert differs(body, renamed)


def condition_names(body: Json) -> list[list[str]]:
    """The names of the match conditions of each webhook that has any."""
    listed = (entry["matchConditions"] for entry in body["webhooks"] if "matchConditions" in entry)
    return [[each["name"] for each in conditions] for conditions in listed]


def test_api_servers_leave_out_more_only_once_every_process_is_current(
    documents: list[Json],
) -> None:
    mutating = documents[0]
    probe, unchanged, child = condition_names(mutating)[0]
    assert condition_names(desired_configuration(Wanted(mutating, current=False), None)) == [
        [probe]
    ]
    assert desired_configuration(Wanted(mutating), None) == mutating
    # What the cluster has already stays, what it has otherwise goes at once.
    assert desired_configuration(Wanted(mutating, current=False), mutating) == mutating
    found = copy.deepcopy(mutating)
    found["webhooks"][0]["matchConditions"][2]["expression"] = "another"
    assert condition_names(desired_configuration(Wanted(mutating, current=False), found)) == [
        [probe, unchanged]
    ]
    assert (
        child
        not in condition_names(desired_configuration(Wanted(mutating, current=False), found))[0]
    )


def test_a_webhook_that_is_left_without_conditions_has_no_empty_list(documents: list[Json]) -> None:
    (entry, _) = desired_configuration(Wanted(documents[1], current=False), None)["webhooks"]
    assert "matchConditions" not in entry


def test_with_a_strict_policy_only_pods_are_spared_updates_that_change_nothing() -> None:
    definitions = catalog(policy("rules: {}", existing="strict")).definitions
    skips = skips_of(definitions, strict=True)
    strict = configurations(definitions, Target(url="https://podgate"), skips=skips)
    for body in strict[:2]:
        (names,) = condition_names(body)
        assert UNCHANGED not in names
        (only,) = (e for e in body["webhooks"][0]["matchConditions"] if e["name"] == UNCHANGED_POD)
        assert 'request.kind.kind == "Pod"' in only["expression"]
        # An older condition that spares more is taken away at once, before every process is current.
        tolerant = configurations(definitions, Target(url="https://podgate"))
        found = next(each for each in tolerant if each["kind"] == body["kind"])
        (left,) = condition_names(desired_configuration(Wanted(body, current=False), found))
        assert UNCHANGED not in left


def test_nothing_becomes_ready_before_api_servers_have_the_configuration() -> None:
    document, loaded = DocumentStatus(2, 2), find_loaded(said(2, 2))

    def because(found: Json, *, spread: bool) -> tuple[str, str]:
        status = status_of(document, loaded, KEY, Effect(), found, "now", spread=spread)
        (ready,) = (each for each in status["conditions"] if each["type"] == "Ready")
        return ready["status"], ready["reason"]

    assert because({}, spread=False) == ("False", "Registering")
    assert because({}, spread=True) == ("True", "InForce")
    before = {"type": "Ready", "status": "True", "observedGeneration": 2}
    assert because({"conditions": [before]}, spread=False) == ("True", "InForce")
    older = before | {"observedGeneration": 1}
    assert because({"conditions": [older]}, spread=False) == ("False", "Registering")


KEY = ("ClusterWorkloadPolicy", "", "p")
FAULT = Problem("x", "spec.rules.a", "`a`", "write b", "unknown-field")


def said(*numbers: int) -> list[Json]:
    return [{"in_force": [[*KEY, number]] if number else []} for number in numbers]


def ready(
    document: DocumentStatus, *numbers: int, found: Json | None = None
) -> tuple[str, str, Json]:
    status = status_of(
        document, find_loaded(said(*numbers)), KEY, Effect(("Pod",)), found or {}, "now"
    )
    condition = next(each for each in status["conditions"] if each["type"] == "Ready")
    return condition["status"], condition["reason"], status


@pytest.mark.parametrize(
    ("document", "numbers", "expected"),
    [
        (DocumentStatus(2, 2), (2, 2, 2), ("True", "InForce")),
        (DocumentStatus(2, 2), (2, 1, 2), ("False", "Waiting")),
        (DocumentStatus(2, 2), (2, 0), ("False", "Waiting")),
        (DocumentStatus(2, 2), (), ("False", "NoWorkers")),
        (DocumentStatus(2, 1, (FAULT,)), (1, 1), ("False", "LastGood")),
        (DocumentStatus(1, 0, (FAULT,)), (0, 0), ("False", "Faulty")),
    ],
)
def test_a_document_is_ready_when_every_process_judges_by_it(
    document: DocumentStatus, numbers: tuple[int, ...], expected: tuple[str, str]
) -> None:
    assert ready(document, *numbers)[:2] == expected


def test_the_status_tells_every_problem_and_the_lowest_generation() -> None:
    status = ready(DocumentStatus(2, 1, (FAULT,)), 1, 1)[2]
    assert status["generationInForce"] == 1
    assert status["problems"][0]["fix"] == "write b"
    accepted = status["conditions"][0]
    assert (accepted["type"], accepted["status"]) == ("Accepted", "False")
    assert "write b" in accepted["message"]


def test_an_exception_that_has_ended_says_so_and_is_not_ready() -> None:
    document, loaded = DocumentStatus(1, 1), find_loaded(said(1))
    until = "2026-11-22T10:00:00Z"
    for now, expected in (("2026-11-22T09:59:59Z", "InForce"), (until, "Ended")):
        status = status_of(document, loaded, KEY, Effect(until=until), {}, now)
        accepted, condition = status["conditions"]
        assert (accepted["status"], condition["reason"]) == ("True", expected)
        assert condition["status"] == ("False" if expected == "Ended" else "True")
        assert (until in condition["message"]) is (expected == "Ended")
    assert state_of(document, loaded, KEY, ended=True) == "ended"


def test_a_policy_that_states_nothing_is_shown_with_what_holds() -> None:
    own = policy("rules: {image: {required: true}}", name="p")
    del own["spec"]["scope"]
    known = find_effects(catalog(own), ())
    (effect,) = (each for origin, each in known.items() if "system" not in origin)
    status = status_of(DocumentStatus(1, 1), find_loaded(said(1)), KEY, effect, {}, "now")
    assert (status["scope"], status["enforcement"]) == ("cluster", "Enforce")
    assert "Deployment.apps" in status["kinds"]
    columns = {each["name"]: each["jsonPath"] for each in next(cluster_columns())}
    for name in ("Scope", "Enforcement"):
        assert columns[name] == f".status.{name.lower()}"
        assert name.lower() in status


def cluster_columns() -> Iterator[tuple[Json, ...]]:
    for each in own_crds.kinds():
        if each.names.kind == KEY[0]:
            yield each.columns


def test_times_of_transition_stay_while_nothing_changes() -> None:
    first = ready(DocumentStatus(1, 1), 1)[2]
    first["conditions"][1]["lastTransitionTime"] = "then"
    second = ready(DocumentStatus(1, 1), 1, found=first)[2]
    assert second == first
    third = ready(DocumentStatus(2, 2), 1, found=first)[2]
    assert third["conditions"][1]["lastTransitionTime"] == "now"


def test_the_namespace_of_the_webhook_is_never_governed() -> None:
    found = configurations({}, Target(service=("elsewhere", "podgate", 443)))
    for body in found[:2]:
        (expression,) = body["webhooks"][0]["namespaceSelector"]["matchExpressions"]
        assert {"elsewhere", "kube-system", "podgate-system"} <= set(expression["values"])
