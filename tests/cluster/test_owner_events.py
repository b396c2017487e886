"""Owners are told of refused children: once, within bounds, and never at an answer's expense."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from certs import authority
from tests.cluster.test_kubernetes import Clock, FakeApi, in_loop, reply
from webhook.cluster.client import ApiServer
from webhook.cluster.credentials import Credentials, Kubeconfig
from webhook.cluster.events import AGAIN, BURST, RUNNING, OwnerEvents, event_of
from webhook.documents.problem import Source
from webhook.evaluation.outcome import Denied, OwnerReference, Violation
from webhook.evaluation.request import Request

NOW = datetime(2026, 11, 22, 2, 0, tzinfo=UTC)
OWNER = OwnerReference("serving.kserve.io/v1beta1", "InferenceService", "llama", "u-1")
BROKEN = Violation(
    "image",
    ("spec", "template", "spec", "containers", 0, "image"),
    '"evil:1"',
    "good:1",
    "options",
    "options",
    Source("images", "cluster"),
)
DENIED = Denied((BROKEN,), report_to=OWNER)


def asked(**more: Any) -> Request:
    document = {"metadata": {"generateName": "llama-predictor-"}}
    given = {"namespace": "team", "user": "alice", **more}
    return Request("apps", "v1", "Deployment", "CREATE", document, **given)


def test_an_event_says_which_policy_refused_what_on_the_owner() -> None:
    event = event_of(asked(name="llama-predictor"), DENIED, NOW)
    assert event is not None
    assert event["involvedObject"] == {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "namespace": "team",
        "name": "llama",
        "uid": "u-1",
    }
    assert event["metadata"]["namespace"] == "team"
    assert event["type"] == "Warning"
    for fact in (
        "Deployment llama-predictor",
        "evil:1",
        "good:1",
        "policy images",
        "image at spec",
    ):
        assert fact in event["message"]
    generated = event_of(asked(), DENIED, NOW)
    assert generated is not None
    assert "Deployment llama-predictor-" in generated["message"]


def test_there_is_none_for_dry_runs_and_for_what_people_submit() -> None:
    assert event_of(asked(dry_run=True), DENIED, NOW) is None
    assert event_of(asked(), replace(DENIED, report_to=None), NOW) is None
    assert event_of(replace(asked(), namespace=""), DENIED, NOW) is None


def name_of(name: str = "", denied: Denied = DENIED, later: float = 0) -> str:
    event = event_of(asked(name=name), denied, NOW + timedelta(seconds=later))
    assert event is not None
    return str(event["metadata"]["name"])


def test_one_refusal_has_one_name_for_a_while_whichever_replica_tells_it() -> None:
    assert name_of("a") == name_of("b", later=100)
    assert name_of(later=AGAIN) != name_of()
    assert name_of(denied=replace(DENIED, report_to=OWNER._replace(uid="u-2"))) != name_of()
    other = Denied((replace(BROKEN, value='"evil:2"'),), report_to=OWNER)
    assert name_of(denied=other) != name_of()


def test_an_event_stays_within_what_the_api_server_takes() -> None:
    many = Denied((replace(BROKEN, value="x" * 80),) * 60, report_to=OWNER._replace(name="n" * 253))
    event = event_of(asked(name="d" * 253), many, NOW)
    assert event is not None
    assert len(event["message"]) <= 1024
    assert len(event["metadata"]["name"]) <= 253


@dataclass
class Posted:
    """What a fake API server was told, and what it answers."""

    api: FakeApi
    status: int = 201
    events: list[dict[str, Any]] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)

    def act(self, handler: BaseHTTPRequestHandler) -> bool:
        """Keep one event."""
        assert handler.command == "POST"
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        self.events.append(json.loads(body))
        reply(handler, self.status, b"{}")
        return True

    def reporter(self, **more: Any) -> OwnerEvents:
        """Tells it."""
        server = ApiServer(Credentials(Kubeconfig(self.api.kubeconfig())))

        def count(outcome: str) -> None:
            self.counted[outcome] += 1

        return OwnerEvents(server, count, loop=asyncio.get_running_loop(), **more)


@pytest.fixture(scope="module")
def ca() -> Any:
    return authority.create_authority(datetime.now(UTC), timedelta(days=1))


@pytest.fixture
def posted(ca: Any, tmp_path: Path) -> Iterator[Posted]:
    fake = FakeApi(ca, tmp_path)
    found = Posted(fake)
    fake.act = found.act
    with fake.running():
        yield found


async def settle(events: OwnerEvents) -> None:
    """Wait until nothing is under way."""
    for _ in range(3):
        await asyncio.sleep(0)
    while events.running:
        await asyncio.gather(*events.running)


def refusal(number: int) -> Denied:
    return Denied((BROKEN,), report_to=OWNER._replace(uid=f"u-{number}"))


@in_loop
async def test_a_refusal_is_posted_once(posted: Posted) -> None:
    events = posted.reporter()
    for _ in range(3):
        await asyncio.to_thread(events.report, asked(), DENIED)
    await settle(events)
    assert len(posted.events) == 1
    assert posted.api.paths == ["/api/v1/namespaces/team/events"]
    assert posted.counted == {"posted": 1}


@in_loop
async def test_a_dry_run_posts_nothing(posted: Posted) -> None:
    """The registration says `sideEffects: NoneOnDryRun`."""
    events = posted.reporter()
    events.report(asked(dry_run=True), DENIED)
    await settle(events)
    assert not posted.events
    assert not posted.counted


@in_loop
async def test_many_refusals_are_told_within_bounds_and_the_rest_is_counted(posted: Posted) -> None:
    clock = Clock()
    events = posted.reporter(clock=clock)
    for number in range(60):
        events.report(asked(), refusal(number))
        await settle(events)
    assert len(posted.events) == BURST
    assert posted.counted == {"posted": 20, "dropped": 40}
    clock.now += 2
    for number in range(60, 70):
        events.report(asked(), refusal(number))
        await settle(events)
    assert posted.counted["posted"] == 22


@in_loop
async def test_no_more_than_a_few_are_under_way(posted: Posted) -> None:
    events = posted.reporter()
    for number in range(RUNNING + 3):
        events.report(asked(), refusal(number))
    await settle(events)
    assert posted.counted == {"posted": RUNNING, "dropped": 3}


@pytest.mark.parametrize(("status", "outcome"), [(409, "known"), (403, "failed"), (500, "failed")])
def test_what_cannot_be_told_is_counted_and_logged_once(
    status: int, outcome: str, posted: Posted, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        posted.status = status
        events = posted.reporter()
        for number in range(2):
            events.report(asked(), refusal(number))
            await settle(events)

    with caplog.at_level(logging.WARNING, "podgate.events"):
        asyncio.run(run())
    assert posted.counted == {outcome: 2}
    told = [each for each in caplog.records if each.name == "podgate.events"]
    assert len(told) == (status != 409)
    if status == 403:
        assert "grant `create` on `events`" in caplog.text


@in_loop
async def test_without_anybody_to_ask_nothing_happens() -> None:
    counted: Counter[str] = Counter()
    events = OwnerEvents(None, lambda outcome: counted.update([outcome]))
    events.loop = asyncio.get_running_loop()
    events.report(asked(), DENIED)
    await settle(events)
    assert not counted


@in_loop
async def test_an_api_server_that_is_gone_harms_nobody(posted: Posted) -> None:
    posted.api.port = 1
    events = posted.reporter()
    events.report(asked(), DENIED)
    await settle(events)
    assert posted.counted == {"failed": 1}


@pytest.mark.parametrize(
    "owner, user",
    [
        (OWNER._replace(name="a/../b"), "alice"),
        (OWNER._replace(uid="u 1"), "alice"),
        (OWNER._replace(kind="A B"), "alice"),
        (OWNER, ""),
    ],
)
def test_a_review_that_no_api_server_sends_makes_no_event(owner: Any, user: str) -> None:
    denied = replace(DENIED, report_to=owner)
    assert event_of(asked(user=user), denied, NOW) is None
    assert event_of(asked(), DENIED, NOW) is not None
