"""The controller asks whether the webhook may read owners, and says where it may not."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.building import catalog
from webhook.catalog.watched_documents import DocumentStatus, Outcome
from webhook.cluster.client import ApiError, ApiServer
from webhook.cluster.lease import Election
from webhook.controller import controller as controllers
from webhook.controller.controller import AskWorkers, Controller
from webhook.controller.owner_access import notes_on, owners_of, review_of
from webhook.controller.registration import Options, Target
from webhook.controller.status import LoadedGenerations
from webhook.documents.enclosed import origin_of
from webhook.sources.load import Sources

USER = "system:serviceaccount:podgate-system:podgate-admission"
SETS = ("apps", "ReplicaSet")


class Server:
    """Allows everything but some resources."""

    def __init__(self, *forbidden: str) -> None:
        self.forbidden = set(forbidden)
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.error = 0

    async def ask(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((path, body["spec"]))
        if self.error:
            raise ApiError(self.error, "no")
        assert method == "POST"
        wanted = body["spec"]["resourceAttributes"]
        assert wanted["verb"] == "get"
        return {"status": {"allowed": wanted["resource"] not in self.forbidden}}


def controller(server: Server, user: str = USER) -> Controller:
    made = Controller(
        cast("ApiServer", server),
        Sources(),
        Target(url="https://podgate.example.com"),
        Options(),
        Election("podgate-system", "podgate", "one"),
        cast("AskWorkers", None),
        webhook_user=user,
    )
    made.leads, made.catalog = True, catalog()
    return made


def test_the_question_is_about_the_account_of_the_webhook() -> None:
    path, body = review_of("apps", "replicasets", USER)
    assert path.endswith("/subjectaccessreviews")
    assert body["kind"] == "SubjectAccessReview"
    assert body["spec"]["user"] == USER
    groups = ["system:serviceaccounts", "system:serviceaccounts:podgate-system"]
    assert body["spec"]["groups"] == [*groups, "system:authenticated"]
    path, body = review_of("apps", "replicasets", "")
    assert path.endswith("/selfsubjectaccessreviews")
    assert set(body["spec"]) == {"resourceAttributes"}


def test_every_kind_that_owns_is_asked_for_once_unless_the_settings_only_warn() -> None:
    made = catalog()
    owners = owners_of(made)
    assert owners[SETS] == "replicasets"
    assert ("", "Pod") not in owners or made.definitions["", "Pod"][0].profile.controllers
    config = replace(made.config, unreadable_owner="warn")
    assert owners_of(replace(made, config=config)) == {}


def test_what_may_not_be_read_is_logged_once_and_in_the_status_of_its_definition(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server("replicasets")
    made = controller(server)
    assert made.catalog is not None
    for _ in range(2):
        made.note_unreadable(asyncio.run(made.forbidden_of(owners_of(made.catalog))))
    assert made.unreadable == {SETS}
    (line,) = [each for each in caplog.messages if "may not read ReplicaSet.apps" in each]
    assert "podgate.dev/aggregate-to-owners" in line
    assert "unreadableOwner" in line
    assert made.dirty.is_set()

    key = ("WorkloadProfile", "", "sets")
    definition = next(each for each in made.catalog.statuses if each.document.key == SETS)
    source = replace(definition.document.document, origin=origin_of(key))
    given = replace(definition, document=replace(definition.document, document=source))
    other = ("WorkloadProfile", "", "other")
    found = notes_on(made.unreadable, replace(made.catalog, statuses=(given,)), [key, other])
    assert set(found) == {key}
    assert (found[key][0].reason, found[key][0].severity) == ("owner-forbidden", "warning")


class Written(Server):
    """Keeps the statuses that are written."""

    def __init__(self) -> None:
        super().__init__("replicasets")
        self.statuses: dict[str, dict[str, Any]] = {}

    async def merge(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.statuses[path.split("/")[-3]] = body["status"]
        return body


@pytest.mark.parametrize("kind", ["WorkloadProfile", "ResourceInterface", "Karta"])
def test_the_status_of_a_definition_says_what_may_not_be_read(kind: str) -> None:
    """Those of other projects' kinds have conditions alone: their schemas drop the rest."""
    server = Written()
    made = controller(server)
    assert made.catalog is not None
    key = (kind, "", "sets")
    definition = next(each for each in made.catalog.statuses if each.document.key == SETS)
    source = replace(definition.document.document, origin=origin_of(key))
    given = replace(definition, document=replace(definition.document, document=source))
    made.catalog = replace(made.catalog, statuses=(given,))
    made.collections[kind].objects = {("", "sets"): {"metadata": {"name": "sets"}}}
    outcome = Outcome(made.catalog, {key: DocumentStatus(1, 1)}, ())

    def message() -> tuple[str, str]:
        asyncio.run(made.write_statuses(outcome, LoadedGenerations(1, {key: 1})))
        (status,) = server.statuses.values()
        (accepted,) = (each for each in status["conditions"] if each["type"] == "Accepted")
        assert accepted["status"] == "True"
        return accepted["reason"], accepted["message"]

    assert message() == ("Accepted", "nothing is wrong with it")
    made.unreadable = frozenset({SETS})
    reason, text = message()
    assert reason == "AcceptedWithWarnings"
    assert "owner-forbidden" in text
    assert "may not read ReplicaSet.apps" in text
    assert "podgate.dev/aggregate-to-owners" in text
    made.unreadable = frozenset()
    assert message()[0] == "Accepted"


def test_it_is_asked_again_only_after_some_minutes_or_where_kinds_change(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(controllers, "RENEWED", 0.001)
    server = Server("replicasets")
    made = controller(server)
    assert made.catalog is not None
    number = len(owners_of(made.catalog))

    async def run() -> None:
        task = asyncio.create_task(made.ask_rights())
        async with asyncio.timeout(60):
            while made.unreadable != {SETS}:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert len(server.asked) == number
        monkeypatch.setattr(controllers, "RIGHTS_EVERY", 0.0)
        server.error = 403
        async with asyncio.timeout(60):
            while "is not known" not in caplog.text:
                await asyncio.sleep(0.01)
        assert made.unreadable == {SETS}, "an answer that does not come changes nothing"
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(run())
