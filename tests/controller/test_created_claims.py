"""The claims that the controller creates where createClaims is on: which, where, and what it reports."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from tests.building import catalog, policy
from tests.listing import page, query_of
from webhook.catalog.catalog import Catalog
from webhook.catalog.watched_documents import DocumentStatus, Outcome
from webhook.cluster.client import ApiError, ApiServer
from webhook.cluster.lease import Election
from webhook.cluster.list_and_watch import Collection
from webhook.controller.claim_creator import AGAIN, ClaimCreator
from webhook.controller.controller import AskWorkers, Controller
from webhook.controller.created_claims import LABEL, wanted_claims
from webhook.controller.registration import Options, Target
from webhook.controller.status import LoadedGenerations
from webhook.sources.load import Sources

Json = dict[str, Any]
HOME = "{name: home, claimName: home, path: /home, claimInfo: {size: 10Gi}}"
SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}
ASSET = {
    "apiVersion": "podgate.dev/v1alpha1",
    "kind": "WorkloadAsset",
    "metadata": {"name": "home"},
    "spec": {
        "meta": {"id": "home", "name": "home", "kind": "pvc", "scope": "tenant"},
        "spec": yaml.safe_load("{claimName: home, path: /home, claimInfo: {size: 10Gi}}"),
    },
}
SHARED = (
    "{claimName: home, path: /h, claimInfo: {size: 5G, volumeMode: Block,"
    " accessModes: {readWriteMany: true, readOnlyMany: true}}}"
)
CLOSED = "{rules: {storage: {pvc: {instances: {canAdd: false}}}}}"
WORKER = f"{{defaults: {{worker: {{storage: {{pvc: {{instances: [{HOME}]}}}}}}}}}}"
KEY = ("ClusterWorkloadPolicy", "", "rules")
A, B = {"tier": "a"}, {"tier": "b"}


def claims(*items: str, attributes: str = "{}", rules: str = "{}", **more: Any) -> Json:
    """A policy with default claims."""
    pvc = f"storage: {{pvc: {{instances: [{', '.join(items)}], attributes: {attributes}}}}}"
    return policy(f"{{defaults: {{{pvc}}}, rules: {rules}}}", **more)


def names(*documents: Json, spaces: Mapping[str, Mapping[str, str]] | None = None) -> list[str]:
    """The claims that are wanted in two namespaces, as NAMESPACE/NAME."""
    found = wanted_claims(catalog(*documents), spaces or {"a": A, "b": B})
    return sorted("/".join(each) for each in found)


# Which


@pytest.mark.parametrize(
    ("documents", "wanted"),
    [
        ([claims(HOME)], ["a/home", "b/home"]),
        ([policy("{imposedAssets: [home]}"), ASSET], ["a/home", "b/home"]),
        ([ASSET], []),
        ([claims(HOME, namespace="a", scope="project")], ["a/home"]),
        ([claims(HOME, namespaceSelector={"matchLabels": A})], ["a/home"]),
        ([claims(HOME, excludeNamespaces=["a"])], ["b/home"]),
        ([claims(HOME, enforcement="Warn")], []),
        ([claims(HOME, enforcement="Audit")], []),
        ([claims(HOME, workloadTypes=["training"])], ["a/home", "b/home"]),
        ([claims(HOME, kinds=[{"group": "apps", "kind": "Deployment"}])], ["a/home", "b/home"]),
        ([claims("{name: home, claimName: home, path: /h, existingPvc: true}")], []),
        ([claims(HOME, attributes="{existingPvc: true}")], []),
        ([claims("{name: h, path: /h, ephemeral: true, claimInfo: {size: 1Gi}}")], []),
        ([policy(WORKER)], ["a/home", "b/home"]),
        ([policy(WORKER.replace("worker:", "components: {head:") + "}")], ["a/home", "b/home"]),
        # A list that is closed for another kind shuts nothing out.
        (
            [
                policy(CLOSED, kinds=[{"group": "batch", "kind": "Job"}]),
                claims(
                    HOME, name="own", namespace="a", kinds=[{"group": "apps", "kind": "Deployment"}]
                ),
            ],
            ["a/home"],
        ),
        (
            [claims(HOME), claims("{name: home, exclude: true}", name="own", namespace="a")],
            ["b/home"],
        ),
        (
            [
                policy(CLOSED),
                claims(HOME, name="own", namespace="a"),
            ],
            [],
        ),
    ],
    ids=range(18),
)  # fmt: skip
def test_a_claim_is_wanted_where_a_policy_in_force_mounts_it(
    documents: list[Json], wanted: list[str]
) -> None:
    assert names(*documents) == wanted


@pytest.mark.parametrize(
    ("item", "attributes", "spec"),
    [
        (HOME, "{}", SPEC),
        (HOME, "{claimInfo: {storageClass: fast}}", {**SPEC, "storageClassName": "fast"}),
        (
            SHARED,
            "{}",
            {
                "accessModes": ["ReadOnlyMany", "ReadWriteMany"],
                "resources": {"requests": {"storage": "5G"}},
                "volumeMode": "Block",
            },
        ),
    ],
)
def test_the_claim_has_size_class_and_modes_of_the_policy(
    item: str, attributes: str, spec: Json
) -> None:
    found = wanted_claims(catalog(claims(item, attributes=attributes)), {"a": {}})
    ((wanted,),) = found.values()
    assert wanted.spec == spec


# Creating


class Server:
    """An API server with namespaces and claims, which may refuse to create."""

    def __init__(self) -> None:
        self.namespaces: dict[str, Json] = {"a": {"podgate.dev/governed": "true"}}
        self.ending: set[str] = set()
        self.claims: dict[tuple[str, str], Json] = {}
        self.error: ApiError | None = None
        self.asked = 0
        self.statuses: list[Json] = []

    async def ask(self, method: str, path: str, accept: str = "") -> Json:
        path, query = query_of(path)
        if path == "/api/v1/namespaces":
            rows = [
                {"name": name, "labels": labels}
                | ({"deletionTimestamp": "now"} if name in self.ending else {})
                for name, labels in self.namespaces.items()
            ]
            found: list[Json] = [{"metadata": each} for each in rows]
        else:
            found = list(self.claims.values())
        key, _, value = query.get("labelSelector", "").partition("=")
        chosen = [e for e in found if not key or e["metadata"].get("labels", {}).get(key) == value]
        return page(chosen, query)

    async def find(self, path: str) -> Json | None:
        self.asked += 1
        _, _, _, _, namespace, _, name = path.split("/")
        return self.claims.get((namespace, name))

    async def create(self, path: str, body: Json) -> Json:
        if self.error is not None:
            raise self.error
        metadata = body["metadata"]
        assert path == f"/api/v1/namespaces/{metadata['namespace']}/persistentvolumeclaims"
        self.claims[metadata["namespace"], metadata["name"]] = body
        return body

    async def merge(self, path: str, body: Json) -> Json:
        self.statuses.append(body["status"])
        return body


def controller(
    server: Server, *documents: Json, governed: str = "label", **more: Any
) -> Controller:
    made = Controller(
        cast("ApiServer", server),
        Sources(),
        Target(url="https://podgate.example.com"),
        Options(governed, exempt=("exempt",)),
        Election("podgate-system", "podgate", "one"),
        cast("AskWorkers", None),
        "probe",
        create_claims=True,
        **more,
    )
    made.leads, made.catalog = True, renamed(catalog(*documents))
    made.collections[KEY[0]].objects = {("", KEY[2]): {"metadata": {"name": KEY[2]}}}
    return made


def renamed(found: Catalog) -> Catalog:
    """The catalog with origins as documents of the cluster have them."""
    for each in found.policies:
        kind = "WorkloadPolicy" if each.namespace else "ClusterWorkloadPolicy"
        where = f"{each.namespace}/" if each.namespace else ""
        object.__setattr__(each, "origin", f"{kind} {where}{each.name}")
    return found


def creator(made: Controller) -> ClaimCreator:
    assert made.creator is not None
    return made.creator


def look(made: Controller) -> bool:
    """One round over what the API server has; whether it is done."""

    async def run() -> bool:
        one = creator(made)
        for each in (one.namespaces, one.claims):
            await seen(each, made.server)
        assert made.catalog is not None
        return await one.create(made.catalog)

    return asyncio.run(run())


async def seen(collection: Collection, server: ApiServer) -> None:
    await collection.read(server)
    collection.was_read, collection.trouble = True, ""


def later(made: Controller) -> None:
    """Let the time between two tries go by."""
    one = creator(made)
    one.tried = {name: at - AGAIN for name, at in one.tried.items()}


def states(made: Controller) -> dict[str, int]:
    """The numbers of the metric."""
    lines = made.metrics.text().decode().splitlines()
    rows = [each for each in lines if each.startswith("podgate_created_claims{")]
    found = {each.split('"')[1]: int(float(each.split()[-1])) for each in rows}
    return {state: number for state, number in found.items() if number}


def ready(made: Controller) -> tuple[str, str, str]:
    """Status, reason and message of Ready as it is written."""
    outcome = Outcome(made.catalog, {KEY: DocumentStatus(1, 1)}, ())
    made.registrar.written = float("-inf")
    asyncio.run(made.write_statuses(outcome, LoadedGenerations(1, {KEY: 1})))
    status = cast("Server", made.server).statuses[-1]
    (found,) = (each for each in status["conditions"] if each["type"] == "Ready")
    return found["status"], found["reason"], found["message"]


def test_a_claim_is_created_with_our_label_and_the_policy_is_ready_once_it_is_there() -> None:
    server = Server()
    made = controller(server, claims(HOME))
    assert look(made)
    body = server.claims["a", "home"]
    assert body["metadata"]["labels"][LABEL] == "true"
    assert body["metadata"]["annotations"] == {"podgate.dev/policy": "ClusterWorkloadPolicy rules"}
    assert body["spec"] == SPEC
    assert ready(made)[:2] == ("False", "ClaimsMissing")
    look(made)
    assert states(made) == {"present": 1}
    assert ready(made)[:2] == ("True", "InForce")


def test_only_governed_namespaces_get_claims_and_none_that_is_being_deleted() -> None:
    server = Server()
    labels = {"podgate.dev/governed": "true"}
    server.namespaces |= {"free": {}, "kube-system": labels, "exempt": labels, "probe": labels}
    server.namespaces["ends"], server.ending = labels, {"ends"}
    look(controller(server, claims(HOME)))
    assert set(server.claims) == {("a", "home")}
    server.claims.clear()
    look(controller(server, claims(HOME), governed="all"))
    assert set(server.claims) == {("a", "home"), ("free", "home")}


@pytest.mark.parametrize(
    "claim",
    [
        {"metadata": {"name": "home", "namespace": "a"}, "spec": SPEC},
        {
            "metadata": {"name": "home", "namespace": "a", "labels": {LABEL: "false"}},
            "spec": SPEC,
        },
        # Whoever may create claims may write our label too, but podgate copies no data.
        *(
            {
                "metadata": {"name": "home", "namespace": "a", "labels": {LABEL: "true"}},
                "spec": {**SPEC, name: {"name": "theirs"}},
            }
            for name in ("dataSource", "dataSourceRef", "selector")
        ),
    ],
    ids=range(5),
)
def test_a_claim_of_somebody_else_is_not_adopted_and_the_policy_is_not_ready(
    claim: Json, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server()
    server.claims["a", "home"] = claim
    made = controller(server, claims(HOME))
    for _ in range(2):
        later(made)
        look(made)
    assert server.claims == {("a", "home"): claim}
    assert states(made) == {"foreign": 1}
    status, reason, message = ready(made)
    assert (status, reason) == ("False", "ClaimsMissing")
    assert "not Ready in namespace a: PersistentVolumeClaim home" in message
    assert "does not adopt it" in message
    assert f"label {LABEL}=true" in message
    (problem,) = server.statuses[-1]["problems"]
    assert (problem["reason"], problem["severity"]) == ("claim-not-adopted", "error")
    assert len([each for each in caplog.messages if "does not adopt" in each]) <= 1
    # Once it is gone podgate makes its own.
    server.claims.clear()
    look(made)
    later(made)
    look(made)
    look(made)
    assert states(made) == {"present": 1}
    assert ready(made)[0] == "True"


QUOTA = 'persistentvolumeclaims "home" is forbidden: exceeded quota: small, requested: requests.storage=10Gi'


def test_a_refusal_by_a_quota_is_reported_and_tried_again_after_a_while(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server()
    server.error = ApiError(403, f"POST /api/v1/namespaces/a/persistentvolumeclaims: {QUOTA}")
    made = controller(server, claims(HOME))
    look(made)
    asked = server.asked
    look(made)
    assert server.asked == asked, "not at every round"
    assert states(made) == {"refused": 1}
    status, reason, message = ready(made)
    assert (status, reason) == ("False", "ClaimsMissing")
    assert "PersistentVolumeClaim home cannot be created: " + QUOTA in message
    assert "raise the quota of the namespace" in message
    assert 'podgate_api_errors_total{code="403",task="claims"} 1.0' in made.metrics.text().decode()
    assert len([each for each in caplog.messages if "exceeded quota" in each]) == 1
    server.error = None
    later(made)
    look(made)
    look(made)
    assert ready(made)[0] == "True"


@pytest.mark.parametrize("code", [0, 404, 409, 429, 500])
def test_what_may_pass_by_itself_keeps_no_status_from_being_written(code: int) -> None:
    server = Server()
    server.error = ApiError(code, "POST /api: later")
    made = controller(server, claims(HOME))
    look(made)
    assert states(made) == {"pending": 1}
    assert "is not there yet: later" in ready(made)[2]


def test_a_claim_that_somebody_deletes_is_created_again_but_not_in_a_tight_loop() -> None:
    server = Server()
    made = controller(server, claims(HOME))
    look(made)
    look(made)
    server.claims["a", "home"]["metadata"]["deletionTimestamp"] = "now"
    look(made)
    assert "it is being deleted" in ready(made)[2]
    server.claims.clear()
    look(made)
    assert not server.claims
    assert "is not there yet; wait" in ready(made)[2]
    for _ in range(2):  # created again, and gone again before anybody has seen it end
        later(made)
        look(made)
        assert set(server.claims) == {("a", "home")}
        look(made)
        assert states(made) == {"present": 1}
        server.claims.clear()
        look(made)
        assert states(made) == {"pending": 1}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"resources": {"requests": {"storage": "5Gi"}}}, "size is 5Gi, not 10Gi"),
        ({"resources": {}}, "size is None, not 10Gi"),
        ({"resources": {"requests": {"storage": "20Gi"}}}, ""),
        ({"resources": {"requests": {"storage": "10240Mi"}}}, ""),
        ({"accessModes": ["ReadWriteMany"]}, "accessModes is ['ReadWriteMany']"),
        ({"storageClassName": "other", "volumeName": "pv-1"}, ""),
    ],
)
def test_a_claim_that_differs_is_left_as_it_is_and_reported(spec: Json, told: str) -> None:
    server = Server()
    made = controller(server, claims(HOME))
    look(made)
    server.claims["a", "home"]["spec"] = before = {**SPEC, **spec}
    look(made)
    assert server.claims["a", "home"]["spec"] == before
    assert ready(made)[0] == "True"
    problems = server.statuses[-1]["problems"] if server.statuses else []
    assert [each["reason"] for each in problems] == (["claim-differs"] if told else [])
    assert told in str(problems)


def test_policies_that_want_one_claim_share_the_first_and_the_other_is_told_of_the_difference() -> (
    None
):
    other = claims("{name: h, claimName: home, path: /h, claimInfo: {size: 50Gi}}", name="second")
    server = Server()
    made = controller(server, claims(HOME), other)
    look(made)
    look(made)
    second = ("ClusterWorkloadPolicy", "", "second")
    notes = creator(made).notes([KEY, second])
    assert server.claims["a", "home"]["spec"] == SPEC
    assert [each.reason for each in notes[second]] == ["claim-differs"]
    assert KEY not in notes


def test_a_round_has_a_budget_and_the_next_one_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()
    labels = {"podgate.dev/governed": "true"}
    server.namespaces = {f"n-{number}": labels for number in range(3)}
    made = controller(server, claims(HOME))
    monkeypatch.setattr("webhook.controller.claim_creator.BUDGET", -1.0)
    assert not look(made)
    assert states(made) == {"pending": 3}
    status, _, message = ready(made)
    assert (status, message.rpartition(",")[2]) == ("False", " and 2 more")
    monkeypatch.setattr("webhook.controller.claim_creator.BUDGET", 60.0)
    assert look(made)
    assert len(server.claims) == 3


def test_what_was_tried_longest_ago_is_tried_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else claims that are refused would keep the others from their turn."""
    server = Server()
    server.error = ApiError(403, "POST /api: no")
    server.namespaces = {f"n-{number}": {"podgate.dev/governed": "true"} for number in range(3)}
    made = controller(server, claims(HOME))
    seconds = itertools.count(100.0)
    monkeypatch.setattr("webhook.controller.claim_creator.AGAIN", 0.0)
    clock = SimpleNamespace(monotonic=lambda: next(seconds))
    monkeypatch.setattr("webhook.controller.claim_creator.time", clock)
    for tried in (1, 2, 3):
        assert not look(made), "a round of two seconds has time for one"
        assert states(made).get("refused") == tried


def test_without_the_rights_every_policy_with_claims_says_so() -> None:
    server = Server()
    made = controller(server, claims(HOME))
    one = creator(made)
    one.namespaces.trouble = one.claims.trouble = "forbidden"
    assert made.catalog is not None
    assert asyncio.run(one.create(made.catalog))
    status, reason, message = ready(made)
    assert (status, reason) == ("False", "ClaimsMissing")
    assert "/api/v1/persistentvolumeclaims: forbidden" in message
    assert "ClusterRole podgate-claims" in message


def test_only_what_matters_here_begins_a_round() -> None:
    made = controller(Server(), claims(HOME))
    one = creator(made)
    claim = {"metadata": {"name": "home", "labels": {LABEL: "true"}}, "spec": SPEC}
    for phase, begins in (("Pending", True), ("Bound", False)):
        one.claims.put(("a", "home"), one.claims.brief({**claim, "status": {"phase": phase}}))
        made.dirty.clear()
        one.note(one.claims)
        assert made.dirty.is_set() is begins


def test_off_is_the_default_and_follows_nothing() -> None:
    made = controller(Server(), claims(HOME))
    plain = Controller(
        made.server, Sources(), made.target, made.options, made.election, made.ask_workers
    )
    assert plain.creator is None
