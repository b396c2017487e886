"""What match conditions leave out, by Kubernetes' own evaluator: no error, little cost, nothing lost."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import pytest

from tests import everything
from tests.building import policy, shipped, table
from tests.e2e.condition_oracle import Answer, evaluate
from tests.e2e.conftest import bed_or_skip
from tests.reviews.record import RECORDED
from tests.test_matrix import NOTHING_GOES, SUBRESOURCES, definitions, objects
from webhook.admission.judge import decide_review
from webhook.admission.review import parse_review
from webhook.catalog.build import Choices, assemble
from webhook.catalog.catalog import Catalog
from webhook.controller.match_conditions import conditions, senders_of, skips_of
from webhook.documents.yaml_source import read_documents
from webhook.evaluation.outcome import Allowed, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, Stage
from webhook.pods.coverage import members

pytestmark = pytest.mark.e2e

Json = dict[str, Any]
MOST = {"expression": 1_000_000 / 10, "webhook": 2_500_000 / 10}
"""A tenth of what the API server lets an expression and a webhook cost."""
MEGABYTES = 3 * 1024 * 1024
CONTROLLED = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u"}
REPLICA_SET = ("apps", "v1", "ReplicaSet")
ROLLS = "system:serviceaccount:kube-system:deployment-controller"
RUN = {"containers": [{"name": "x", "image": "evil:1", "securityContext": {"privileged": True}}]}


@pytest.fixture(scope="module", autouse=True)
def bed() -> None:
    with bed_or_skip():
        list(evaluate({}, []))


def of(document: Json) -> Catalog:
    """The shipped documents and one policy, with the settings that its fields need."""
    documents, faults = read_documents(json.dumps(document), "given.yaml")
    assert not faults
    choices = Choices(config=everything.WORDS)
    built, problems = assemble(shipped(), documents, choices, table())
    assert built is not None, problems
    return built


@cache
def catalogs() -> dict[str, Catalog]:
    """Policies that refuse nearly everything, tolerant and strict; defaults and rules of every field."""
    return {
        "tolerant": of(policy(NOTHING_GOES)),
        "strict": of(policy(NOTHING_GOES, existing="strict")),
        "defaults": of(everything.policy("defaults", defaults=everything.defaults())),
        "rules": of(everything.policy("rules", rules=everything.rules())),
    }


def webhooks(found: Catalog) -> dict[str, list[Json]]:
    """The conditions of both webhooks for all kinds, as the controller registers them."""
    strict = any(not each.tolerates_existing for each in found.policies)
    skips = skips_of(found.definitions, strict=strict)
    return {
        stage.value: conditions(
            skips, found.definitions, ["break-glass"], mutating=stage is Stage.MUTATE
        )
        for stage in Stage
    }


def review(kind: Sequence[str], operation: str, new: Any, old: Any = None, **more: Any) -> Json:
    """An AdmissionReview; it has what is optional in `more` only."""
    group, version, name = kind
    request = {
        "uid": "u",
        "kind": {"group": group, "version": version, "kind": name},
        "resource": {"group": group, "version": version, "resource": "things"},
        "namespace": "team",
        "operation": operation,
        "userInfo": {"username": "alice"},
        "object": new,
        "oldObject": old,
        **more,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


# Totality and cost

BARE: list[Any] = [
    {},
    {"metadata": {}},
    {"metadata": None, "spec": None, "status": None},
    {"metadata": {"labels": None, "annotations": None, "ownerReferences": None}},
    {"metadata": {"ownerReferences": [{}, {"controller": None}, {"controller": True}]}},
    {"metadata": {"ownerReferences": [{"controller": True, "kind": "Job", "apiVersion": "v1"}]}},
    {"metadata": {"ownerReferences": [{"controller": True, "kind": "Job", "apiVersion": "/"}]}},
    {"spec": [], "status": {"storedTemplates": None}},
    {"spec": "text", "status": "text"},
]
BARE_USERS: list[Json] = [
    {},
    {"username": ""},
    {"username": "system:serviceaccount:kube-system:job-controller", "groups": []},
    {"groups": ["break-glass"]},
]


def bare_reviews() -> Iterator[Json]:
    """Every kind and subresource, with nothing that may be absent."""
    kinds = [(d.interface.group, v, d.interface.kind) for d in definitions() for v in d.versions]
    for kind in kinds:
        for subresource in SUBRESOURCES:
            more = {"subResource": subresource} if subresource else {}
            for number, new in enumerate(BARE):
                who = BARE_USERS[number % len(BARE_USERS)]
                for operation, pair in (
                    ("CREATE", (new, None)),
                    ("UPDATE", (new, BARE[(number + 1) % len(BARE)])),
                    ("UPDATE", (new, copy.deepcopy(new))),
                    ("DELETE", (None, new)),
                    ("CONNECT", (None, None)),
                ):
                    yield review(kind, operation, *pair, userInfo=who, **more)


def large_reviews() -> Iterator[Json]:
    """Objects of 3 MiB that are large in each way, before and after an update that changes nothing."""
    pod, workflow = ("", "v1", "Pod"), ("argoproj.io", "v1alpha1", "Workflow")
    count = MEGABYTES // 64
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "n", "uid": "u"}
    wide = {f"key-{number}": "x" * 48 for number in range(count)}
    for part in (
        {"spec": {"containers": [{"env": [{"name": k, "value": v} for k, v in wide.items()]}]}},
        {"spec": {"text": "x" * MEGABYTES}},
        {"metadata": {"labels": wide}},
        {"metadata": {"annotations": {"a": "x" * MEGABYTES}}},
        {"metadata": {"ownerReferences": [owner | {"controller": False}] * count}},
        {"metadata": {"ownerReferences": [owner | {"controller": True}] * 100}},
        {
            "metadata": {
                "ownerReferences": [{"controller": True, "kind": "x" * (MEGABYTES // 100)}] * 100
            }
        },
        {"metadata": {"ownerReferences": [{"controller": True, "apiVersion": "/" * MEGABYTES}]}},
        wide,
        {"x" * MEGABYTES: 1},
        {"status": {"storedTemplates": wide, "nodes": wide}},
    ):
        who = {
            "username": "system:kube-controller-manager",
            "groups": [f"group-{n}" for n in range(1000)],
        }
        yield review(pod, "CREATE", part, userInfo=who)
        yield review(workflow, "UPDATE", part, part, userInfo=who)
        whole = {**part, "spec": {"replicas": 1, "template": part}}
        yield review(REPLICA_SET, "UPDATE", whole, copy.deepcopy(whole), userInfo=who)


@pytest.mark.parametrize("name", ["tolerant", "strict"])
def test_no_condition_ever_fails(name: str) -> None:
    count = 0
    for asked, answers in evaluate(webhooks(catalogs()[name]), bare_reviews()):
        assert not any(each.errors for each in answers.values()), (asked, answers)
        count += 1
    assert count > 10_000


def test_an_object_of_3_mib_costs_less_than_a_tenth_of_the_limit() -> None:
    dearest: dict[str, float] = {"expression": 0, "webhook": 0}
    for _, answers in evaluate(webhooks(catalogs()["tolerant"]), large_reviews()):
        for answer in answers.values():
            assert not answer.errors
            dearest["expression"] = max(dearest["expression"], *answer.costs.values())
            dearest["webhook"] = max(dearest["webhook"], sum(answer.costs.values()))
    assert dearest["expression"] <= MOST["expression"], dearest
    assert dearest["webhook"] <= MOST["webhook"], dearest


# What is skipped would neither have been refused nor changed


@cache
def bodies() -> tuple[Json, ...]:
    """Objects of the golden cases, four of a kind at most."""
    found: dict[tuple[str, str], list[Json]] = {}
    for each in objects():
        if isinstance(each, dict) and each.get("kind") and each.get("apiVersion"):
            known = found.setdefault((each["apiVersion"], each["kind"]), [])
            if len(known) < 4:
                known.append({**each, "metadata": {"name": "n", **(each.get("metadata") or {})}})
    return tuple(each for known in found.values() for each in known)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every path in a document."""
    for key, each in members(value):
        yield (*path, key)
        yield from places(each, (*path, key))


def change_body(new: Json, chance: random.Random) -> None:
    """Change, remove or add one value somewhere outside the metadata."""
    found = [each for each in places(new) if each[0] not in ("apiVersion", "kind", "metadata")]
    if not found:
        return
    *around, last = chance.choice(found)
    node: Any = new
    for step in around:
        node = node[step]
    match chance.randrange(3):
        case 0:
            node[last] = chance.choice(["other", 7, None, [], {}, True, copy.deepcopy(RUN)])
        case 1:
            del node[last]
        case _ if isinstance(node, dict):
            node[chance.choice(["more", "spec", "containers"])] = copy.deepcopy(RUN)


def change_status(new: Json, chance: random.Random) -> None:
    """What a controller, or a tenant where no subresource guards it, writes into the status."""
    template = {"name": "t", "container": RUN["containers"][0]}
    new["status"] = chance.choice(
        [
            {"phase": "Running"},
            {"template": {"spec": RUN}},
            {"storedTemplates": {"t": template}},
            {"storedWorkflowTemplateSpec": {"templates": [template], "entrypoint": "t"}},
            RUN,
        ]
    )


def put_metadata(member: str, value: Any) -> Callable[[Json, random.Random], None]:
    def change(new: Json, chance: random.Random) -> None:
        picked = chance.choice(value)
        if isinstance(picked, dict):
            picked = {**(new["metadata"].get(member) or {}), **picked}
        new["metadata"][member] = picked

    return change


CHANGES: dict[str, Callable[[Json, random.Random], None]] = {
    "body": change_body,
    "status": change_status,
    "labels": put_metadata("labels", [{"team": "x"}, {"kai.scheduler/node-pool": "x"}, None]),
    "annotations": put_metadata(
        "annotations",
        [{"x": "y"}, {"podgate.dev/exclude": '{"labels": ["a"]}'}, {"gpu-fraction": "0.5"}, None],
    ),
    "finalizers": put_metadata("finalizers", [["example.com/held"], []]),
    "owners": put_metadata(
        "ownerReferences",
        [[], [CONTROLLED | {"controller": True}], [CONTROLLED | {"controller": False}]],
    ),
    "fields": put_metadata("managedFields", [[{"manager": "m", "operation": "Update"}], []]),
    "version": put_metadata("resourceVersion", ["1", "2"]),
    "end": put_metadata("deletionTimestamp", ["2026-11-22T10:00:00Z"]),
}


def kind_of(body: Json) -> tuple[str, str, str]:
    group, _, version = str(body["apiVersion"]).rpartition("/")
    return group, version, str(body["kind"])


def updates(chance: random.Random, count: int) -> Iterator[Json]:
    """Each object with one random change, by a person and by a controller of its owner."""
    senders = senders_of(catalogs()["tolerant"].definitions)
    for number in range(count):
        body = bodies()[number % len(bodies())]
        old = copy.deepcopy(body)
        user = "alice"
        if chance.random() < 0.4:
            sender = chance.choice(sorted(senders))
            group, kind = chance.choice(sorted(senders[sender]))
            user = chance.choice([sender, sender, sender, "alice"])
            version = f"{group}/v1" if group else "v1"
            owner = {"apiVersion": version, "kind": kind, "name": "o", "uid": "u"}
            old["metadata"]["ownerReferences"] = [owner | {"controller": True}]
        new = copy.deepcopy(old)
        CHANGES[chance.choice(sorted(CHANGES))](new, chance)
        operation = "CREATE" if chance.random() < 0.15 else "UPDATE"
        before = old if operation == "UPDATE" else None
        yield review(kind_of(body), operation, new, before, userInfo={"username": user})


def rollouts(chance: random.Random, count: int) -> Iterator[Json]:
    """ReplicaSets of Deployments with other numbers of pods, and at times with another change."""
    sets = [each for each in bodies() if kind_of(each) == REPLICA_SET]
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "o", "uid": "u"}
    for number in range(count):
        old = copy.deepcopy(sets[number % len(sets)])
        old["metadata"]["ownerReferences"] = [owner | {"controller": chance.random() < 0.8}]
        new = copy.deepcopy(old)
        new["spec"]["replicas"] = chance.choice([0, 1, 900, None])
        if chance.random() < 0.5:
            CHANGES[chance.choice(["body", "body", "labels", "annotations"])](new, chance)
        user = chance.choice([ROLLS, ROLLS, ROLLS, "alice"])
        yield review(REPLICA_SET, "UPDATE", new, old, userInfo={"username": user})


def reviews() -> Iterator[Json]:
    """Some thousand of all kinds, rollouts, and the recorded ones."""
    yield from rollouts(random.Random(20261122), 500)
    for file in sorted(RECORDED.iterdir()):
        yield json.loads(file.read_text("utf-8"))
    yield from updates(random.Random(20261122), 6000)


def decide(asked: Json, found: Catalog, stage: Stage) -> Any:
    request = parse_review(json.dumps(asked).encode(), stage)
    assert isinstance(request, Request), request
    return decide_review(request, found, References())


def loss(asked: Json, answer: dict[str, Answer], found: Catalog) -> tuple[str, Any] | None:
    """What a webhook that is not asked about a review would have refused or changed, None if nothing.

    What the mutating one would refuse may be left to the validating one, if that refuses it too.
    """
    mutate, validate = answer["mutate"].sent, answer["validate"].sent
    if mutate and validate:
        return None
    final = decide(asked, found, Stage.VALIDATE)
    refuses = isinstance(final, Denied)
    if refuses and not validate:
        return "refused", final
    first = None if mutate else decide(asked, found, Stage.MUTATE)
    if isinstance(first, Allowed) and first.patch:
        return "changed", first
    return ("refused", first) if isinstance(first, Denied) and not refuses else None


@pytest.mark.parametrize("name", ["tolerant", "strict", "defaults", "rules"])
def test_nothing_is_skipped_that_would_have_been_refused_or_changed(name: str) -> None:
    found = catalogs()[name]
    skipped = {stage.value: 0 for stage in Stage}
    for asked, answer in evaluate(webhooks(found), reviews()):
        lost = loss(asked, answer, found)
        assert lost is None, f"{lost}: {json.dumps(asked)[:3000]}"
        for stage in skipped:
            skipped[stage] += not answer[stage].sent
    assert skipped["validate"] > (500 if name != "strict" else 0), skipped
    assert skipped["mutate"] > skipped["validate"]


WEAKENED = {
    "labels are forgotten": ("metadata.?labels", "metadata.?nothing"),
    "annotations are forgotten": ("metadata.?annotations", "metadata.?nothing"),
    "the body is forgotten": ("'metadata', 'status'", "'metadata', 'status', 'spec'"),
    "what Argo stores in the status is forgotten": ("status.?storedTemplates", "status.?nothing"),
    "an owner reference by anybody is enough": (
        "request.?userInfo.?username.orValue('')",
        "'system:kube-controller-manager'",
    ),
    "a rollout may change the pods": ("== oldObject.spec.?template", "!= object.spec.?other"),
    "controllers may change the body of a Pod": (
        "request.operation == 'CREATE' || request.kind.kind != 'Pod'",
        "true",
    ),
}


@pytest.mark.parametrize("name", WEAKENED)
def test_a_condition_that_looks_at_too_little_is_found(name: str) -> None:
    found = catalogs()["tolerant" if "forgotten" in name else "defaults"]
    change = WEAKENED[name]
    weak = {
        hook: [each | {"expression": each["expression"].replace(*change)} for each in several]
        for hook, several in webhooks(found).items()
    }
    assert weak != webhooks(found)
    assert any(loss(*each, found) for each in evaluate(weak, reviews()))


def test_whoever_is_no_controller_of_the_owner_is_asked_about() -> None:
    """What is made is skipped by the mutating webhook alone, by exact user, kind of owner and controller."""
    pod = bodies()[0] | {"apiVersion": "v1", "kind": "Pod"}
    controller = "system:serviceaccount:kube-system:replicaset-controller"
    rows = [
        (controller, CONTROLLED | {"controller": True}, False),
        (controller, CONTROLLED | {"controller": False}, True),
        (controller, CONTROLLED, True),
        (controller, CONTROLLED | {"controller": True, "kind": "DaemonSet"}, True),
        (controller, CONTROLLED | {"controller": True, "apiVersion": "v1"}, True),
        (controller, CONTROLLED | {"controller": True, "apiVersion": "evil.apps/v1"}, True),
        (f"{controller}x", CONTROLLED | {"controller": True}, True),
        (
            "system:serviceaccount:team:replicaset-controller",
            CONTROLLED | {"controller": True},
            True,
        ),
        ("alice", CONTROLLED | {"controller": True}, True),
    ]
    asked = [
        review(
            ("", "v1", "Pod"),
            "CREATE",
            pod | {"metadata": {"ownerReferences": [owner]}},
            userInfo={"username": user},
        )
        for user, owner, _ in rows
    ]
    answers = [each for _, each in evaluate(webhooks(catalogs()["tolerant"]), asked)]
    for row, answer in zip(rows, answers, strict=True):
        assert (answer["mutate"].sent, answer["validate"].sent) == (row[2], True), row


def test_a_rollout_is_not_sent_and_anything_else_of_a_replica_set_is() -> None:
    before = {"metadata": {}, "spec": {"replicas": 1, "template": {"spec": RUN}}}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "o", "uid": "u"}
    before["metadata"] = {"ownerReferences": [owner | {"controller": True}]}
    spec = before["spec"]
    rows = [
        (ROLLS, REPLICA_SET, spec | {"replicas": 0}, False),
        (ROLLS, REPLICA_SET, {"template": spec["template"]}, False),
        ("alice", REPLICA_SET, spec | {"replicas": 0}, True),
        (f"{ROLLS}x", REPLICA_SET, spec | {"replicas": 0}, True),
        (ROLLS, ("apps", "v1", "Deployment"), spec | {"replicas": 0}, True),
        (ROLLS, ("", "v1", "Pod"), spec | {"replicas": 0}, True),
        (ROLLS, REPLICA_SET, {"replicas": 0, "template": {"spec": {}}}, True),
        (ROLLS, REPLICA_SET, {"replicas": 0}, True),
        (ROLLS, REPLICA_SET, spec | {"replicas": 0, "more": RUN}, True),
    ]
    asked = [
        review(kind, "UPDATE", before | {"spec": after}, before, userInfo={"username": user})
        for user, kind, after, _ in rows
    ]
    answers = [each for _, each in evaluate(webhooks(catalogs()["tolerant"]), asked)]
    for row, answer in zip(rows, answers, strict=True):
        assert answer["validate"].sent is row[3], row


def test_members_that_definitions_read_outside_the_body_are_known() -> None:
    read = skips_of(catalogs()["tolerant"].definitions).read
    assert read == {
        ("argoproj.io", "Workflow"): {
            ("status", "storedTemplates"),
            ("status", "storedWorkflowTemplateSpec"),
        }
    }
