"""CRDs that are installed, changed and removed while podgate runs: on a real API server, no restart."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e.api import Api, Json, StatusError
from tests.e2e.served import free_port
from tests.e2e.test_controller import (  # noqa: F401 - fixtures
    PROBE,
    VALIDATING,
    Controllers,
    Living,
    api,
    controllers,
    living,
    policy_of,
    said,
    soon,
)
from tests.e2e.test_living_cluster import POLICIES, A, B, images, put

pytestmark = pytest.mark.e2e

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = "pytorchjobs.kubeflow.org"
JOBS = f"/apis/kubeflow.org/v1/namespaces/{PROBE}/pytorchjobs"
TEXT: Json = {"type": "string"}


def crd(*versions: str, **container: Json) -> Json:
    """A PyTorchJob whose containers have a name, an image and nothing but `container`."""

    def whole(**inside: Json) -> Json:
        return {"type": "object", "properties": inside}

    containers = {"type": "array", "items": whole(name=TEXT, image=TEXT, **container)}
    template = whole(spec=whole(containers=containers))
    replicas = whole(replicas={"type": "integer"}, template=template)
    spec = whole(pytorchReplicaSpecs={"type": "object", "additionalProperties": replicas})
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": "kubeflow.org",
            "scope": "Namespaced",
            "names": {"kind": "PyTorchJob", "plural": "pytorchjobs"},
            "versions": [
                {
                    "name": each,
                    "served": True,
                    "storage": each == versions[0],
                    "schema": {"openAPIV3Schema": whole(spec=spec)},
                }
                for each in versions
            ],
        },
    }


PLURAL = "kubeflow.org/pytorchjobs"
V2 = "PyTorchJob.kubeflow.org/v2"


def job(image: str) -> Json:
    container = {"name": "pytorch", "image": image}
    worker = {"replicas": 1, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "j"},
        "spec": {"pytorchReplicaSpecs": {"Worker": worker}},
    }


def install(api: Api, body: Json) -> None:  # noqa: F811 - not the fixture
    query = "?fieldManager=t&force=true"
    api.request("PATCH", f"{CRDS}/{NAME}{query}", body, "application/apply-patch+yaml")


def writes_requests(living: Living) -> bool:  # noqa: F811 - not the fixture
    """Whether mutation writes a default into the job's container, in twenty tries in a row."""
    group = {"group": "kubeflow.org", "version": "v1"}
    request = {
        "uid": "u",
        "operation": "CREATE",
        "namespace": PROBE,
        "kind": {**group, "kind": "PyTorchJob"},
        "resource": {**group, "resource": "pytorchjobs"},
        "userInfo": {"username": "alice"},
        "object": job(A),
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    seen = {"patch" in living.ask("/mutate?timeout=5s", body)["response"] for _ in range(20)}
    return seen == {True}


def registered(api: Api) -> set[str]:  # noqa: F811 - not the fixture
    rules = (api.find(VALIDATING) or {"webhooks": [{}]})["webhooks"][0].get("rules") or []
    return {
        f"{group}/{each}"
        for rule in rules
        for group in rule["apiGroups"]
        for each in rule["resources"]
    }


def take_away(api: Api) -> None:  # noqa: F811 - not the fixture
    with contextlib.suppress(StatusError):
        api.request("DELETE", f"{CRDS}/{NAME}")


@pytest.fixture
def clean(api: Api) -> Iterator[None]:  # noqa: F811 - the fixture
    """Without the CRD, which other tests of the cluster may have installed, before and after."""
    take_away(api)
    yield
    take_away(api)


def converted(port: int) -> float:
    """How many versions without a definition the controller tells, whose objects are converted."""
    name = 'podgate_versions_without_definition{objects="converted"} '
    lines = [each for each in said(port, "metrics").splitlines() if each.startswith(name)]
    return float(lines[0].removeprefix(name)) if lines else 0.0


def refused(api: Api, image: str) -> bool:  # noqa: F811 - not the fixture
    try:
        api.request("POST", f"{JOBS}?dryRun=All", job(image))
    except StatusError as error:
        return "podgate refused" in str(error)
    except json.JSONDecodeError:
        return False  # a path that is not served yet is answered in plain text
    return False


@pytest.mark.usefixtures("clean")
def test_a_crd_that_comes_changes_and_goes_is_followed_without_a_restart(
    controllers: Controllers,  # noqa: F811 - the fixture
    living: Living,  # noqa: F811 - the fixture
    api: Api,  # noqa: F811 - the fixture
) -> None:
    port = free_port()
    controllers.start("first", living.plain, "--metrics-listen", f"127.0.0.1:{port}")

    def wait(holds: Callable[[], object]) -> float:
        begun = time.monotonic()
        try:
            soon(holds, controllers.log)
        except AssertionError:
            print(living.log.read_text("utf-8"))
            raise
        return time.monotonic() - begun

    policy = images(A)
    policy["spec"]["defaults"] = {"compute": {"cpuCoreRequest": 0.5}}
    put(api, policy)
    wait(lambda: policy_of(api) == "Fail")
    assert "/pods" in registered(api)
    assert "apps/deployments/scale" in registered(api)
    wait(lambda: PLURAL not in registered(api))
    wait(lambda: writes_requests(living))  # nobody knows of a schema that would prune it

    install(api, crd("v1"))
    taken = wait(lambda: refused(api, B))
    print(f"governed {taken:.1f} s after the CRD was installed")
    assert not refused(api, A)
    assert PLURAL in registered(api)
    assert "kubeflow.org/pytorchjobs/scale" not in registered(api), "it declares none"
    wait(lambda: not writes_requests(living))

    before = converted(port)
    install(
        api,
        crd("v1", "v2", resources={"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
    )
    wait(lambda: writes_requests(living))

    def lacking() -> Any:
        status = api.request("GET", f"{POLICIES}/images").get("status") or {}
        return status.get("withoutDefinition") or []

    wait(lambda: V2 in lacking())
    wait(lambda: converted(port) == before + 1)
    assert "PyTorchJob.kubeflow.org/v2 is served" in controllers.log.read_text("utf-8")

    api.request("DELETE", f"{CRDS}/{NAME}")
    wait(lambda: PLURAL not in registered(api))
    wait(lambda: V2 not in lacking())
