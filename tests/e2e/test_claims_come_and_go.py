"""Claim templates that are made, replaced and deleted while podgate runs: on a real API server."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.running import podgate
from tests.e2e.api import Api, Json, StatusError
from tests.e2e.test_controller import (  # noqa: F401 - fixtures
    PROBE,
    Controllers,
    Living,
    api,
    controllers,
    living,
    policy_of,
    soon,
)
from tests.e2e.test_living_cluster import A, put
from tests.e2e.testbed.cluster import Cluster

pytestmark = pytest.mark.e2e

TEMPLATES = f"/apis/resource.k8s.io/v1/namespaces/{PROBE}/resourceclaimtemplates"
CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{PROBE}/resourceclaims"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{PROBE}/deployments"
UNCOUNTED = "cannot be counted"


def devices(count: int) -> Json:
    asked = {"deviceClassName": "gpu.nvidia.com", "count": count}
    return {"devices": {"requests": [{"name": "gpu", "exactly": asked}]}}


def template(name: str, count: int) -> Json:
    return {"metadata": {"name": name}, "spec": {"spec": devices(count)}}


def deployment(name: str, **claim: str) -> Json:
    """A Deployment of one replica whose pods name a claim or a template."""
    labels = {"app": name}
    pod: Json = {
        "containers": [
            {"name": "main", "image": A, "resources": {"claims": [{"name": "gpus"}]}},
        ],
        "resourceClaims": [{"name": "gpus", **claim}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def of_template(name: str) -> Json:
    return deployment("d", resourceClaimTemplateName=name)


def tried(api: Api, body: Json) -> tuple[str, float]:  # noqa: F811 - not the fixture
    """Why creating a Deployment is refused, "" if it is not, and how long the answer took."""
    begun = time.monotonic()
    try:
        api.request("POST", f"{DEPLOYMENTS}?dryRun=All", body)
    except StatusError as error:
        return str(error), time.monotonic() - begun
    return "", time.monotonic() - begun


@pytest.fixture
def governed(
    controllers: Controllers,  # noqa: F811 - the fixture
    living: Living,  # noqa: F811 - the fixture
    api: Api,  # noqa: F811 - the fixture
) -> Iterator[Api]:
    """The API server, while at most four GPUs a pod are allowed and podgate fails closed."""
    controllers.start("first", living.plain)
    # A policy for all kinds would refuse large templates themselves.
    kinds = [{"group": "apps", "kind": "Deployment"}]
    document: Json = {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": "ClusterWorkloadPolicy",
        "metadata": {"name": "gpus"},
        "spec": {"kinds": kinds, "rules": {"compute": {"gpuDevicesRequest": {"max": 4}}}},
    }
    put(api, document)
    soon(lambda: policy_of(api) == "Fail", controllers.log)
    soon(lambda: "nobody-has-it" in tried(api, of_template("nobody-has-it"))[0], controllers.log)
    yield api
    for each in (f"{TEMPLATES}/team", f"{CLAIMS}/own", f"{DEPLOYMENTS}/kept"):
        with contextlib.suppress(StatusError):
            api.request("DELETE", each)


def test_a_template_counts_from_the_moment_that_it_is_there(governed: Api) -> None:
    late = 0  # on a busy machine the watch may need more than the 0.3 s that podgate waits for it
    for number in range(10):
        large, small = f"large-{number}", f"small-{number}"
        governed.request("POST", TEMPLATES, template(large, 8))
        told = tried(governed, of_template(large))[0]
        late += UNCOUNTED in told
        assert UNCOUNTED in told or "8" in told, told
        governed.request("POST", TEMPLATES, template(small, 2))
        told = tried(governed, of_template(small))[0]
        late += UNCOUNTED in told
        assert UNCOUNTED in told or not told, told
        for name in (large, small):
            governed.request("DELETE", f"{TEMPLATES}/{name}")
    assert late < 5


def test_a_claim_counts_as_a_template_does(governed: Api) -> None:
    governed.request("POST", CLAIMS, {"metadata": {"name": "own"}, "spec": devices(8)})
    told, _ = tried(governed, deployment("d", resourceClaimName="own"))
    assert "8" in told
    assert UNCOUNTED not in told


def test_a_template_that_goes_or_is_another_now_counts_as_what_it_is(
    governed: Api,
    controllers: Controllers,  # noqa: F811 - the fixture
) -> None:
    governed.request("POST", TEMPLATES, template("team", 2))
    assert tried(governed, of_template("team"))[0] == ""
    governed.request("DELETE", f"{TEMPLATES}/team")
    soon(lambda: UNCOUNTED in tried(governed, of_template("team"))[0], controllers.log)
    governed.request("POST", TEMPLATES, template("team", 8))
    assert UNCOUNTED not in tried(governed, of_template("team"))[0]
    governed.request("DELETE", f"{TEMPLATES}/team")
    governed.request("POST", TEMPLATES, template("team", 4))
    soon(lambda: tried(governed, of_template("team"))[0] == "", controllers.log)


def test_a_workload_that_is_applied_before_its_template_is_refused_and_passes_the_next_time(
    governed: Api,
) -> None:
    told, seconds = tried(governed, of_template("team"))
    assert "devices of ResourceClaimTemplate team cannot be counted" in told
    assert 0.3 <= seconds < 9.0
    governed.request("POST", TEMPLATES, template("team", 2))
    assert tried(governed, of_template("team"))[0] == ""


def test_audit_knows_the_templates_too(governed: Api, bare: Cluster) -> None:
    governed.request("POST", TEMPLATES, template("team", 2))
    made: Any = deployment("kept", resourceClaimTemplateName="team")
    governed.request("POST", DEPLOYMENTS, made)
    config = ("--kubeconfig", str(bare.kubeconfig()), "-n", PROBE)
    assert "Deployment" not in podgate("audit", *config).stdout
    governed.request("DELETE", f"{TEMPLATES}/team")
    governed.request("POST", TEMPLATES, template("team", 8))
    told = podgate("audit", *config).stdout
    assert f"Deployment {PROBE}/kept\n  refused" in told
    assert "8" in told
