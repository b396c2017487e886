"""What the API server decides without asking, while nobody answers and hooks fail closed."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator

import pytest
import yaml

from tests.e2e.api import Api, Json, StatusError
from tests.e2e.testbed.cluster import Cluster
from webhook.controller.registration import Options, Target, configurations
from webhook.sources.load import Sources, load

pytestmark = [pytest.mark.e2e, pytest.mark.core]

SPACE, EXEMPT = "unanswered", "network"
JOBS = f"/apis/batch/v1/namespaces/{SPACE}/jobs"
MERGE = "application/merge-patch+json"


def pod(name: str, **metadata: object) -> Json:
    spec = {"containers": [{"name": "m", "image": "registry.example.com/a:1"}]}
    body = {"name": name, "labels": {"a": "b"}, **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": body, "spec": spec}


def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


@pytest.fixture(scope="module")
def api(bare: Cluster) -> Iterator[Api]:
    """Two governed namespaces, one of them exempt, and hooks that nobody answers."""
    catalog, problems = load(Sources())
    assert catalog is not None, problems
    options = Options(timeout_seconds=1, exempt=(EXEMPT,), break_glass=('brea"kers',))
    documents = configurations(catalog.definitions, Target(url="https://127.0.0.1:9"), options)
    with contextlib.closing(Api(bare)) as made:
        for name in (SPACE, EXEMPT):
            labels = {"podgate.dev/governed": "true"}
            body = {"metadata": {"name": name, "labels": labels}}
            made.request("POST", "/api/v1/namespaces", body)
            account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
            until = time.monotonic() + 20
            while made.find(account) is None and time.monotonic() < until:
                time.sleep(0.1)
        made.request("POST", pods(SPACE), pod("held", finalizers=["example.com/held"]))
        made.request("POST", JOBS, job("held", finalizers=["example.com/held"]))
        bare.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(documents))
        try:
            until = time.monotonic() + 20
            while time.monotonic() < until and not refused(made, SPACE):
                time.sleep(0.2)
            yield made
        finally:
            for each in documents:
                kind, name = each["kind"].lower(), each["metadata"]["name"]
                bare.kubectl("delete", kind, name)
            for name in (SPACE, EXEMPT):
                made.request("DELETE", f"/api/v1/namespaces/{name}")


def job(name: str, **metadata: object) -> Json:
    found = pod(name, **metadata)
    template = {"spec": {**found["spec"], "restartPolicy": "Never"}}
    spec = {"suspend": True, "template": template}
    return {**found, "apiVersion": "batch/v1", "kind": "Job", "spec": spec}


def refused(api: Api, namespace: str) -> bool:
    """Whether a new Pod is refused since nobody answers."""
    try:
        api.request("POST", f"{pods(namespace)}?dryRun=All", pod("fresh"))
    except StatusError as error:
        return "failed calling webhook" in str(error)
    return False


def test_a_new_pod_waits_for_podgate_but_not_where_the_cluster_boots_from(api: Api) -> None:
    assert refused(api, SPACE)
    assert not refused(api, EXEMPT)


@pytest.mark.parametrize(
    ("place", "spec"),
    [
        (f"{pods(SPACE)}/held", {"activeDeadlineSeconds": 9}),
        (f"{JOBS}/held", {"suspend": False}),
    ],
)
def test_what_only_goes_needs_nobody(api: Api, place: str, spec: Json) -> None:
    api.request("PATCH", place, {"metadata": {"finalizers": ["example.com/other"]}}, MERGE)
    for change in ({"labels": {"x": "y"}}, {"annotations": {"x": "y"}}):
        with pytest.raises(StatusError) as error:
            api.request("PATCH", place, {"metadata": change}, MERGE)
        assert "failed calling webhook" in str(error.value)
    with pytest.raises(StatusError):
        api.request("PATCH", place, {"spec": spec}, MERGE)
    api.request("DELETE", f"{place}?propagationPolicy=Background")
    assert api.find(place) is not None, "its finalizer holds it"
    api.request("PATCH", place, {"metadata": {"finalizers": None}}, MERGE)
    until = time.monotonic() + 40
    while api.find(place) is not None and time.monotonic() < until:
        time.sleep(0.2)
    assert api.find(place) is None


def test_a_request_without_any_group_is_no_error(bare: Cluster, api: Api) -> None:
    """Every condition is total: with an error the API server would not say who failed to answer."""
    create = ("create", "--dry-run=server", "-n", SPACE, "-f", "-")
    held = bare.kubectl(*create, "--as", "jane", input=json.dumps(pod("glass")), check=False)
    assert "match condition" not in held.stderr


def test_who_breaks_the_glass_is_not_asked_about(bare: Cluster, api: Api) -> None:
    create = ("create", "--dry-run=server", "-n", SPACE, "-f", "-")
    who = ("--as", "jane", "--as-group", "system:masters")
    held = bare.kubectl(*create, *who, input=json.dumps(pod("glass")), check=False)
    assert "failed calling webhook" in held.stderr
    done = bare.kubectl(*create, *who, "--as-group", 'brea"kers', input=json.dumps(pod("glass")))
    assert "created (server dry run)" in done.stdout
