"""Somebody else keeps writing the webhook configurations: podgate neither gives in nor fights for ever."""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from webhook.catalog.catalog import Catalog
from webhook.cluster.client import ApiError, ApiServer
from webhook.controller import contests
from webhook.controller.contests import FREE, LONGEST, QUIET, Contests, notes, writer_of
from webhook.controller.hooks import Wanted, differs, platform_selectors
from webhook.controller.platforms import AKS
from webhook.controller.registrar import Registrar
from webhook.controller.registration import Options, Target, configurations
from webhook.service.controller_metrics import ControllerMetrics
from webhook.sources.load import Sources, load

Json = dict[str, Any]
Edit = Callable[[Json], None]
GKE = {
    "key": "kubernetes.io/metadata.name",
    "operator": "NotIn",
    "values": ["kube-system", "gke-gmp-system", "gke-managed-cim"],
}
ROUND = 10.0


@pytest.fixture(scope="module")
def documents() -> list[Json]:
    catalog, _ = load(Sources())
    assert catalog is not None
    return configurations(catalog.definitions, Target(url="https://podgate", ca=b"PEM"))


@pytest.fixture(scope="module")
def small() -> Json:
    """The configuration for validation without kinds: hours of rounds go by in a moment."""
    return configurations({}, Target(url="https://podgate", ca=b"PEM"))[1]


def edited(body: Json, edit: Edit) -> Json:
    found = copy.deepcopy(body)
    for entry in found["webhooks"]:
        entry.setdefault("namespaceSelector", {})
        entry["objectSelector"] = {}
        edit(entry)
    return found


def adding(*expressions: Json) -> Edit:
    def edit(entry: Json) -> None:
        entry["namespaceSelector"].setdefault("matchExpressions", []).extend(
            copy.deepcopy(expressions)
        )

    return edit


def naming(*names: str) -> Edit:
    """Names among those that podgate leaves out itself, as GKE may write them."""

    def edit(entry: Json) -> None:
        for each in entry["namespaceSelector"].get("matchExpressions") or ():
            each["values"] += names

    return edit


@pytest.mark.parametrize(
    "edit",
    [
        adding(*AKS),
        adding(AKS[0]),
        adding(GKE),
        naming("gke-managed-cim", "gmp-public"),
        lambda entry: entry["namespaceSelector"].update(
            matchExpressions=[GKE, *(entry["namespaceSelector"].get("matchExpressions") or ())]
        ),
    ],
    ids=["aks", "aks-older", "gke", "gke-in-our-expression", "gke-before-ours"],
)
def test_what_a_platform_adds_is_left_there_and_reported(documents: list[Json], edit: Edit) -> None:
    found = edited(documents[0], edit)
    assert not differs(documents[0], found)
    assert platform_selectors(documents[0], found)
    assert platform_selectors(documents[0], edited(documents[0], lambda _: None)) == ()


@pytest.mark.parametrize(
    "edit",
    [
        adding({**GKE, "values": ["kube-system", "team-vision"]}),
        naming("team-vision"),
        adding({"key": "control-plane", "operator": "Exists"}),
        adding({**AKS[2], "values": ["aks", "team"]}),
        adding({**GKE, "operator": "In"}),
        lambda entry: entry["namespaceSelector"].update(matchExpressions=[]),
        lambda entry: entry["namespaceSelector"].update(matchLabels={"other": "label"}),
        lambda entry: entry["objectSelector"].update(matchExpressions=[AKS[0]]),
    ],
    ids=[
        "a-team-beside-the-platform",
        "a-team-among-ours",
        "another-operator",
        "another-value",
        "only-the-platform",
        "ours-removed",
        "label-changed",
        "object-selector",
    ],
)
def test_what_no_platform_adds_is_a_difference(documents: list[Json], edit: Edit) -> None:
    assert differs(documents[0], edited(documents[0], edit))


def test_a_ca_is_left_to_an_injector_only_where_podgate_names_none(documents: list[Json]) -> None:
    (bare, *_) = configurations({}, Target(url="https://podgate"))

    def inject(entry: Json) -> None:
        entry["clientConfig"]["caBundle"] = "T1RIRVI="

    assert not differs(bare, edited(bare, inject))
    assert differs(documents[0], edited(documents[0], inject))
    assert differs(bare, edited(bare, lambda entry: entry["clientConfig"].update(url="https://x")))


def test_aks_is_asked_to_leave_every_configuration_alone(documents: list[Json]) -> None:
    for body in documents:
        assert body["metadata"]["annotations"] == {"admissions.enforcer/disabled": "true"}
        found = edited(body, lambda _: None)
        del found["metadata"]["annotations"]
        assert differs(body, found)


class Server:
    """An API server with one other writer, who edits what is written at once, or deletes it."""

    manager = "podgate-controller"

    def __init__(self, edit: Edit | None) -> None:
        self.edit, self.stored, self.writes = edit, dict[str, Json](), 0

    async def find(self, path: str) -> Json | None:
        return copy.deepcopy(self.stored.get(path))

    async def apply(self, path: str, body: Json) -> None:
        self.writes += 1
        if self.edit is not None:
            self.stored[path] = edited(body, self.edit)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("webhook.controller.registrar.time", clock)
    return clock


def registrar_for(server: Server) -> Registrar:
    metrics = ControllerMetrics.new()
    return Registrar(cast("ApiServer", server), Options(), metrics, is_proven=True)


def rounds(registrar: Registrar, clock: Clock, body: Json, seconds: float) -> Iterator[int]:
    server = cast("Server", registrar.server)
    end = clock.now + seconds
    while clock.now < end:
        asyncio.run(registrar.apply_all([body], current=True))
        clock.now += ROUND
        yield server.writes


@pytest.mark.parametrize("kind", ["edits", "deletes"])
def test_writes_over_another_writer_are_spaced_out_and_never_stop(
    small: Json, clock: Clock, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(adding({"key": "x", "operator": "Exists"}) if kind == "edits" else None)
    registrar = registrar_for(server)
    with caplog.at_level(logging.WARNING, "podgate.registrar"):
        first = list(rounds(registrar, clock, small, 3600))[-1]
        later = list(rounds(registrar, clock, small, 4 * 3600))[-1] - first
    assert first <= 1 + FREE + 12
    assert 4 * 3600 / LONGEST - 2 <= later <= 4 * 3600 / LONGEST + 2
    assert not registrar.is_spread
    assert [each for each in caplog.messages if "contested" in each]
    name = "validatingwebhookconfiguration/podgate"
    assert (
        f'podgate_hooks_contested{{configuration="{name}"}} 1.0'
        in registrar.metrics.text().decode()
    )


def test_a_contest_ends_when_the_other_writer_stops(small: Json, clock: Clock) -> None:
    server = Server(adding({"key": "x", "operator": "Exists"}))
    registrar = registrar_for(server)
    list(rounds(registrar, clock, small, 3600))
    server.edit = lambda _: None
    list(rounds(registrar, clock, small, LONGEST + 2 * ROUND))
    assert registrar.is_spread
    assert not differs(small, next(iter(server.stored.values())))
    list(rounds(registrar, clock, small, QUIET + ROUND))
    assert not registrar.contests.known
    assert "podgate_hooks_contested{" in registrar.metrics.text().decode()
    assert " 1.0" not in [
        line[-4:]
        for line in registrar.metrics.text().decode().splitlines()
        if line.startswith("podgate_hooks_contested{")
    ]


def test_what_podgate_itself_wants_otherwise_is_written_at_once(small: Json, clock: Clock) -> None:
    """A new CA must not wait for the end of a contest: hooks would fail meanwhile."""
    server = Server(adding({"key": "x", "operator": "Exists"}))
    registrar = registrar_for(server)
    before = list(rounds(registrar, clock, small, 3600))[-1]
    body = copy.deepcopy(small)
    body["webhooks"][0]["clientConfig"]["caBundle"] = "TkVX"
    assert next(rounds(registrar, clock, body, ROUND)) == before + 1
    assert "TkVX" in str(server.stored[Wanted(body).path])


def test_the_switch_is_no_contest(small: Json, clock: Clock) -> None:
    server = Server(lambda _: None)
    registrar = registrar_for(server)
    list(rounds(registrar, clock, small, ROUND))
    (found,) = server.stored.values()
    found["metadata"]["annotations"]["podgate.dev/switched-off"] = "true"
    list(rounds(registrar, clock, small, 10 * ROUND))
    assert not registrar.contests.known


@pytest.mark.parametrize(
    ("managers", "writer"),
    [
        ([("podgate-controller", 1), ("admissionsenforcer", 2)], "admissionsenforcer"),
        ([("kubectl", 1), ("argocd-controller", 3), ("kubectl", 2)], "argocd-controller"),
        ([("podgate-controller", 1)], contests.UNRECORDED),
        ([], contests.UNRECORDED),
    ],
)
def test_the_other_writer_is_named(managers: list[tuple[str, int]], writer: str) -> None:
    fields = [
        {"manager": name, "time": f"2026-11-22T10:00:0{at}Z", "fieldsV1": {"f:webhooks": {}}}
        for name, at in managers
    ]
    labels = {"manager": "labeller", "time": "2027", "fieldsV1": {"f:metadata": {}}}
    found = {"metadata": {"managedFields": [*fields, labels]}}
    assert writer_of(found, "podgate-controller") == writer


def test_every_policy_says_that_the_registration_is_contested() -> None:
    known = Contests()
    now = 0.0
    policy, other = ("ClusterWorkloadPolicy", "", "p"), ("ResourceInterface", "", "i")
    for _ in range(FREE):
        assert known.may_write("validatingwebhookconfiguration/podgate", "flux", now)
    assert notes(known.bounded_contests(), [policy, other]) == {}
    assert known.may_write("validatingwebhookconfiguration/podgate", "flux", now)
    assert not known.may_write("validatingwebhookconfiguration/podgate", "flux", now + 29)
    told = notes(known.bounded_contests(), [policy, other])
    assert list(told) == [policy]
    (problem,) = told[policy]
    assert problem.severity == "warning"
    assert "flux" in problem.found
    assert "6 times" in problem.found


class Probed(Server):
    """An API server that refuses the probe by a hook of one registration or of both."""

    def __init__(self, suffix: str) -> None:
        super().__init__(lambda _: None)
        self.suffix = suffix

    async def ask(self, method: str, path: str, body: Json | None = None, accept: str = "") -> Json:
        if not path.endswith("pods?dryRun=All"):
            raise ApiError(404, path)
        assert body is not None
        stage = body["metadata"]["labels"]["podgate.dev/probe"]
        hook = f"{stage}.podgate.dev{self.suffix}"
        raise ApiError(403, f'admission webhook "{hook}" denied the request: podgate refused it')


def probing(suffix: str, *, static: bool) -> Registrar:
    server = cast("ApiServer", Probed(suffix))
    return Registrar(server, Options(), ControllerMetrics.new(), "probe", static=static)


def register(registrar: Registrar) -> None:
    asyncio.run(registrar.register(Catalog(), Target(url="https://podgate"), []))


def registered_twice(registrar: Registrar) -> bool:
    return "podgate_registered_twice 1.0" in registrar.metrics.text().decode()


def test_with_files_nothing_is_written_and_what_the_api_has_is_reported() -> None:
    registrar = probing(".static.k8s.io", static=True)
    server = cast("Probed", registrar.server)
    register(registrar)
    assert (server.writes, registrar.is_proven, registrar.twice) == (0, True, "")
    body = configurations({}, Target(url="https://podgate"))[0]
    server.stored[Wanted(body).path] = body
    register(registrar)
    assert server.writes == 0
    assert registrar.twice == "the API has mutatingwebhookconfiguration/podgate beside the files"
    assert registered_twice(registrar)
    server.stored.clear()
    register(registrar)
    assert not registered_twice(registrar)


def test_with_files_a_hook_of_the_api_proves_nothing() -> None:
    registrar = probing("", static=True)
    register(registrar)
    assert not registrar.is_proven


def test_without_files_a_hook_of_a_file_shows_that_reviews_come_twice(clock: Clock) -> None:
    registrar = probing("", static=False)
    register(registrar)
    assert registrar.is_proven
    assert not registered_twice(registrar)
    cast("Probed", registrar.server).suffix = ".static.k8s.io"
    clock.now += 400
    register(registrar)
    assert registrar.twice == "the hook mutate of a file has answered"
    assert registered_twice(registrar)
    cast("Probed", registrar.server).suffix = ""
    clock.now += 400
    register(registrar)
    assert not registered_twice(registrar)


def test_while_writes_are_spaced_out_the_metric_reports_the_cluster(
    small: Json, clock: Clock
) -> None:
    def open_up(entry: Json) -> None:
        entry["failurePolicy"] = "Ignore"

    registrar = registrar_for(Server(open_up))
    list(rounds(registrar, clock, small, 3600))
    assert registrar.contests.bounded_contests()
    name = "validatingwebhookconfiguration/podgate"
    assert f'fail_closed{{configuration="{name}"}} 0.0' in registrar.metrics.text().decode()
