"""Claims that policies mount, created by the controller where createClaims is on: a real API server."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e.api import Api, StatusError
from tests.e2e.served import free_port
from tests.e2e.test_controller import (  # noqa: F401 - fixtures
    Controllers,
    controllers,
    policy_of,
    pytestmark,
    said,
    soon,
)
from tests.e2e.test_living_cluster import (  # noqa: F401 - fixtures
    POLICIES,
    A,
    Living,
    api,
    living,
    put,
)
from webhook.controller.created_claims import LABEL

Json = dict[str, Any]
MERGE = "application/merge-patch+json"
ITEM = {"claimName": "team-home", "path": "/home", "claimInfo": {"size": "1Gi"}}
POLICY = {
    "apiVersion": "podgate.dev/v1alpha1",
    "kind": "ClusterWorkloadPolicy",
    "metadata": {"name": "home"},
    "spec": {
        "namespaceSelector": {"matchLabels": {"claims": "yes"}},
        "defaults": {"storage": {"pvc": {"instances": [ITEM]}}},
        "rules": {"storage": {"pvc": {"instances": {"locked": ["team-home"]}}}},
    },
}
CLAIM = {
    "metadata": {"name": "team-home"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    },
}
NewSpace = Callable[[str], str]


@pytest.fixture
def space(api: Api) -> Iterator[NewSpace]:  # noqa: F811 - the fixture
    """Makes governed namespaces, which are no more governed after the test."""
    made: list[str] = []

    def new(name: str) -> str:
        name = f"{name}-{time.time_ns() % 10**9}"
        labels = {"podgate.dev/governed": "true", "claims": "yes"}
        api.request("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        made.append(name)
        return name

    yield new
    for name in made:
        labels = {"podgate.dev/governed": None, "claims": None}
        path = f"/api/v1/namespaces/{name}"
        api.request("PATCH", path, {"metadata": {"labels": labels}}, MERGE)
        with contextlib.suppress(StatusError):
            delete(api, name)


def claims(name: str) -> str:
    return f"/api/v1/namespaces/{name}/persistentvolumeclaims"


def claim(api: Api, name: str) -> Json:  # noqa: F811 - not the fixture
    return api.find(f"{claims(name)}/team-home") or {}


def delete(api: Api, name: str) -> None:  # noqa: F811 - not the fixture
    """Delete the claim, and do what the controller does that protects claims in use."""
    api.request("DELETE", f"{claims(name)}/team-home")
    body = {"metadata": {"finalizers": None}}
    api.request("PATCH", f"{claims(name)}/team-home", body, MERGE)


def ready(api: Api) -> tuple[str, str]:  # noqa: F811 - not the fixture
    """Status of the condition Ready, and its message."""
    status = api.request("GET", f"{POLICIES}/home").get("status") or {}
    for each in status.get("conditions") or ():
        if each["type"] == "Ready":
            return each["status"], each["message"]
    return "", ""


def reasons(api: Api) -> list[str]:  # noqa: F811 - not the fixture
    status = api.request("GET", f"{POLICIES}/home").get("status") or {}
    return [each["reason"] for each in status.get("problems") or ()]


def deployment() -> Json:
    labels = {"app": "d"}
    pod = {"containers": [{"name": "main", "image": A}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def test_a_claim_is_created_in_each_governed_namespace_and_again_when_somebody_deletes_it(
    controllers: Controllers,  # noqa: F811 - the fixture
    living: Living,  # noqa: F811 - the fixture
    api: Api,  # noqa: F811 - the fixture
    space: NewSpace,
) -> None:
    port = free_port()
    listen = "--metrics-listen", f"127.0.0.1:{port}"
    first = space("first")
    controllers.start("maker", living.plain, "--create-claims", *listen)
    soon(lambda: policy_of(api) == "Fail", controllers.log)
    put(api, POLICY)
    soon(lambda: ready(api)[0] == "True", controllers.log)
    made = claim(api, first)
    assert made["metadata"]["labels"][LABEL] == "true"
    assert made["metadata"]["annotations"]["podgate.dev/policy"] == "ClusterWorkloadPolicy home"
    assert made["spec"]["resources"] == CLAIM["spec"]["resources"]
    assert made["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert reasons(api) == ["claim-created"]

    admitted = api.create(deployment(), first)["spec"]["template"]["spec"]
    assert admitted["volumes"] == [
        {"name": "team-home", "persistentVolumeClaim": {"claimName": "team-home"}}
    ]
    assert admitted["containers"][0]["volumeMounts"] == [
        {"name": "team-home", "mountPath": "/home"}
    ]

    later = space("later")
    soon(lambda: claim(api, later), controllers.log)
    uid = made["metadata"]["uid"]
    delete(api, first)
    soon(lambda: claim(api, first).get("metadata", {}).get("uid", uid) != uid, controllers.log)
    soon(
        lambda: 'podgate_created_claims{state="present"} 2.0' in said(port, "metrics"),
        controllers.log,
    )

    size = {"claimName": "team-home", "path": "/home", "claimInfo": {"size": "5Gi"}}
    larger = {**POLICY["spec"], "defaults": {"storage": {"pvc": {"instances": [size]}}}}
    put(api, {**POLICY, "spec": larger})
    soon(lambda: "claim-differs" in reasons(api), controllers.log)
    soon(lambda: ready(api)[0] == "True", controllers.log)
    assert claim(api, first)["spec"]["resources"] == CLAIM["spec"]["resources"], "never resized"
    api.request("DELETE", f"{POLICIES}/home")
    soon(lambda: 'state="present"} 0.0' in said(port, "metrics"), controllers.log)
    assert "deletionTimestamp" not in claim(api, first)["metadata"], "never deleted"


def test_a_claim_of_somebody_else_is_not_adopted(
    controllers: Controllers,  # noqa: F811 - the fixture
    living: Living,  # noqa: F811 - the fixture
    api: Api,  # noqa: F811 - the fixture
    space: NewSpace,
) -> None:
    name = space("foreign")
    theirs = api.request("POST", claims(name), CLAIM)["metadata"]["uid"]
    controllers.start("maker", living.plain, "--create-claims")
    put(api, POLICY)
    soon(lambda: "does not adopt it" in ready(api)[1], controllers.log)
    status, message = ready(api)
    assert status == "False"
    assert f"not Ready in namespace {name}: PersistentVolumeClaim team-home" in message
    found = claim(api, name)["metadata"]
    assert (found["uid"], found.get("labels")) == (theirs, None)

    delete(api, name)
    soon(lambda: ready(api)[0] == "True", controllers.log)
    assert claim(api, name)["metadata"]["labels"][LABEL] == "true"
    # Somebody takes our label away: from then on it may be anybody's.
    path = f"{claims(name)}/team-home"
    api.request("PATCH", path, {"metadata": {"labels": {LABEL: None}}}, MERGE)
    soon(lambda: ready(api)[0] == "False", controllers.log)
    api.request("PATCH", path, {"metadata": {"labels": {LABEL: "true"}}}, MERGE)
    soon(lambda: ready(api)[0] == "True", controllers.log)


def test_a_refusal_by_a_quota_is_reported(
    controllers: Controllers,  # noqa: F811 - the fixture
    living: Living,  # noqa: F811 - the fixture
    api: Api,  # noqa: F811 - the fixture
    space: NewSpace,
) -> None:
    name, free = space("full"), space("free")
    hard = {"persistentvolumeclaims": "0"}
    quotas = f"/api/v1/namespaces/{name}/resourcequotas"
    api.request("POST", quotas, {"metadata": {"name": "small"}, "spec": {"hard": hard}})
    # No controller here counts what is used.
    counted = {"status": {"hard": hard, "used": {"persistentvolumeclaims": "0"}}}
    api.request("PATCH", f"{quotas}/small/status", counted, MERGE)
    controllers.start("maker", living.plain, "--create-claims")
    put(api, POLICY)
    soon(lambda: "exceeded quota: small" in ready(api)[1], controllers.log)
    status, message = ready(api)
    assert status == "False"
    assert f"namespace {name}: PersistentVolumeClaim team-home cannot be created" in message
    assert claim(api, free)
    assert not claim(api, name)
    assert "exceeded quota: small" in controllers.log.read_text("utf-8")

    api.request("DELETE", f"{quotas}/small")
    soon(lambda: ready(api)[0] == "True", controllers.log)
    assert claim(api, name)


def test_without_the_setting_nothing_is_created_and_the_status_says_who_has_to(
    controllers: Controllers,  # noqa: F811 - the fixture
    living: Living,  # noqa: F811 - the fixture
    api: Api,  # noqa: F811 - the fixture
    space: NewSpace,
) -> None:
    name = space("off")
    controllers.start("looker", living.plain)
    soon(lambda: policy_of(api) == "Fail", controllers.log)
    put(api, POLICY)
    soon(lambda: ready(api)[0] == "True", controllers.log)
    assert reasons(api) == ["claim-not-created"]
    (problem,) = api.request("GET", f"{POLICIES}/home")["status"]["problems"]
    assert "an administrator creates PersistentVolumeClaim team-home" in problem["fix"]
    time.sleep(12)  # longer than a round
    assert not claim(api, name)
