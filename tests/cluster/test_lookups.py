"""Owners are read over real TLS on loopback: only where something is violated, once, and in time."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from certs.pair import KeyPair
from tests.building import catalog, container, deployment, pod
from tests.cluster.test_kubernetes import Clock, FakeApi, api, ca, in_loop, reply
from tests.server.test_http import Documents, Running, review, start
from webhook.cli.serve import build_judge
from webhook.cluster.client import ApiServer
from webhook.cluster.credentials import Credentials, Kubeconfig
from webhook.cluster.lookups import FRESH, KEPT_BYTES, TURNS, Lookups
from webhook.evaluation.outcome import NeededObject
from webhook.evaluation.request import ObjectRead
from webhook.server import call

__all__ = ["api", "ca"]

Json = dict[str, Any]
PATH = "/apis/apps/v1/namespaces/team-a/replicasets/web"
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "r1"}
REPLICAS = "system:serviceaccount:kube-system:replicaset-controller"


class Objects:
    """What the fake API server answers by path; `wait` holds every answer back."""

    def __init__(self, api: FakeApi) -> None:
        self.known: dict[str, Json | int] = {}
        self.wait = threading.Event()
        self.wait.set()
        self.most = self.now = 0
        self.lock = threading.Lock()
        api.act = self.answer

    def answer(self, handler: BaseHTTPRequestHandler) -> bool:
        """The object at a path, else the status that is told of it."""
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        self.wait.wait(60)
        found = self.known.get(handler.path, 404)
        status = found if isinstance(found, int) else 200
        body = {"kind": "Status", "code": status} if isinstance(found, int) else found
        with self.lock:
            self.now -= 1
        reply(handler, status, json.dumps(body).encode())
        return True


@pytest.fixture
def objects(api: FakeApi) -> Objects:
    """The objects of the fake API server."""
    return Objects(api)


def lookups(api: FakeApi, **more: Any) -> Lookups:
    """Asks it, with its kubeconfig."""
    return Lookups(ApiServer(Credentials(Kubeconfig(api.kubeconfig()))), **more)


def needed(name: str = "web", uid: str = "r1") -> NeededObject:
    return NeededObject(f"/apis/apps/v1/namespaces/team-a/replicasets/{name}", uid)


def replica_set(**more: Any) -> Json:
    """The ReplicaSet as it is stored."""
    found = deployment(container(**more))
    return {
        **found,
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "team-a", "uid": "r1"},
    }


@in_loop
async def test_an_object_is_read_once_for_all_who_need_it(api: FakeApi, objects: Objects) -> None:
    objects.known[PATH] = replica_set()
    outcomes: list[str] = []
    clock = Clock()
    reader = lookups(api, clock=clock, counted=outcomes.append)
    assert reader.known(needed(), 1) is None
    found = await asyncio.gather(*(reader.read(needed(), 1, 60) for _ in range(50)))
    assert found == [ObjectRead(replica_set())] * 50
    assert api.paths == [PATH]
    assert outcomes == ["found"]
    assert not reader.running
    assert reader.known(needed(), 1) == ObjectRead(replica_set())
    assert reader.known(needed(), 2) is None, "another catalog"
    assert reader.known(needed(uid="r2"), 1) is None, "another object"
    clock.now += FRESH + 1
    assert reader.known(needed(), 1) is None


@in_loop
async def test_no_more_than_eight_are_read_at_a_time(api: FakeApi, objects: Objects) -> None:
    objects.wait.clear()
    reader = lookups(api)
    waiting = [asyncio.ensure_future(reader.read(needed(f"web-{n}"), 1, 60)) for n in range(20)]
    while objects.now < TURNS:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    assert objects.most == TURNS
    objects.wait.set()
    assert await asyncio.gather(*waiting) == [ObjectRead()] * 20
    assert objects.most == TURNS


@in_loop
async def test_what_an_answer_means(api: FakeApi, objects: Objects) -> None:
    outcomes: list[str] = []
    reader = lookups(api, counted=outcomes.append)
    assert await reader.read(needed(), 1, 60) == ObjectRead()
    objects.known[PATH] = 403
    assert await reader.read(needed(), 1, 60) == ObjectRead(forbidden=True)
    objects.known[PATH] = 500
    assert await reader.read(needed(), 1, 60) == "the API server answered with HTTP 500"
    objects.known[PATH] = {"kind": "Status"}
    assert "no object" in str(await reader.read(needed(), 1, 60))
    assert outcomes == ["not-found", "forbidden", "failed", "failed"]
    assert reader.known(needed(), 1) is None, "only what was found is remembered"
    objects.wait.clear()
    assert "did not answer within 0.2 s" in str(await reader.read(needed(), 1, 0.2))
    objects.wait.set()
    await asyncio.gather(*reader.running.values())


@in_loop
@pytest.mark.parametrize(
    "name", ["../../../secrets/x", "a b", "a\r\nX: y", "a?x=1", "a#", "%2e%2e", "", ".", "é"]
)
async def test_a_name_that_no_object_can_have_is_not_asked_for(
    api: FakeApi, objects: Objects, name: str
) -> None:
    """The name is that of an owner reference, which whoever sends the object may choose."""
    assert await lookups(api).read(needed(name), 1, 60) == ObjectRead()
    assert api.paths == []


@in_loop
async def test_what_is_remembered_is_bounded(api: FakeApi, objects: Objects) -> None:
    reader = lookups(api)
    for number in range(12):
        owner = needed(f"web-{number}")
        objects.known[owner.path] = {"metadata": {"x": "y" * 1_000_000}}
        await reader.read(owner, 1, 60)
    assert reader.size <= KEPT_BYTES
    assert len(reader.kept) == 8
    assert reader.known(needed("web-11"), 1) is not None
    assert reader.known(needed("web-0"), 1) is None


POLICY = "rules: {image: {options: [{value: 'registry.example.com/main:1'}]}}"
EVIL = "evil.example.com/main:1"


def asked(image: str = "registry.example.com/main:1", **more: Any) -> bytes:
    """The review of a Pod of that ReplicaSet by its controller."""
    document = pod({"name": "main", "image": image}, **more)
    document["metadata"]["namespace"] = "team-a"
    document["metadata"]["ownerReferences"] = [{**OWNER, "controller": True}]
    return review(object=document, userInfo={"username": REPLICAS})


@pytest.fixture
def launch(
    ca: KeyPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, api: FakeApi
) -> Iterator[Running]:
    """A server with a policy of images, and access to the fake API server."""
    running = start(
        tmp_path / "own",
        ca,
        Documents(build_judge(catalog(POLICY))),
        kubeconfig=api.kubeconfig(),
        owner_events=False,
    )
    yield running
    running.stop()


def answered(running: Running, body: bytes) -> tuple[int, bool, str]:
    """HTTP status, verdict and message of the validating pass."""
    status, answer = running.post(body, "/validate")
    response = answer["response"]
    return status, response["allowed"], response.get("status", {}).get("message", "")


def test_only_what_violates_something_is_looked_up(
    launch: Running, api: FakeApi, objects: Objects
) -> None:
    objects.known[PATH] = replica_set()
    for _ in range(5):
        assert answered(launch, asked())[:2] == (200, True)
    assert api.paths == []
    status, allowed, message = answered(launch, asked(EVIL))
    assert (status, allowed) == (200, False)
    assert "ReplicaSet web does not have it" in message
    assert api.paths == [PATH]


def test_what_is_remembered_lets_pass_and_never_refuses(
    launch: Running, api: FakeApi, objects: Objects
) -> None:
    objects.known[PATH] = replica_set(image=EVIL)
    for _ in range(5):
        assert answered(launch, asked(EVIL))[:2] == (200, True)
    assert api.paths == [PATH]
    other = "evil.example.com/other:1"
    assert answered(launch, asked(other))[:2] == (200, False)
    assert api.paths == [PATH] * 2, "it is read again before it refuses"
    objects.known[PATH] = replica_set(image=other)
    assert answered(launch, asked(other))[:2] == (200, True)


def test_an_owner_that_cannot_be_read_leaves_it_to_the_failure_policy(
    launch: Running, api: FakeApi, objects: Objects
) -> None:
    objects.known[PATH] = 500
    status, allowed, message = answered(launch, asked(EVIL))
    assert (status, allowed) == (500, False)
    assert PATH in message
    assert answered(launch, asked())[:2] == (200, True)


def test_labels_claims_and_owners_share_their_time(
    launch: Running, objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call, "LOOKUP_SECONDS", 0.7)
    objects.wait.clear()
    status, _, message = answered(launch, asked(EVIL))
    objects.wait.set()
    assert status == 500
    assert "did not answer within 0.7 s" in message
