"""Others who write the webhook configurations too, on a real API server."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Iterator
from typing import Any

from tests.e2e.api import Api, StatusError
from tests.e2e.served import free_port
from tests.e2e.test_controller import (  # noqa: F401 - fixtures
    VALIDATING,
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
    images,
    living,
    put,
)
from tests.e2e.testbed.cluster import Cluster
from webhook.controller.contests import FREE
from webhook.controller.platforms import AKS

Json = dict[str, Any]
HOOK = 'configuration="validatingwebhookconfiguration/podgate"'
THEIRS = {"matchExpressions": [{"key": "other", "operator": "DoesNotExist"}]}
GKE = {
    "key": "kubernetes.io/metadata.name",
    "operator": "NotIn",
    "values": ["kube-system", "gke-managed-cim"],
}


def drifts(port: int) -> int:
    """How often the controller has taken an edit back."""
    found = re.search(rf'written_total{{cause="drift",{HOOK}}} (\S+)', said(port, "metrics"))
    return int(float(found[1])) if found else 0


def edit(server: Api, change: Json) -> None:
    """Write the first hook of the validating configuration, as somebody else."""
    found = server.request("GET", VALIDATING)
    found["webhooks"][0] |= change
    with contextlib.suppress(StatusError):
        server.request("PUT", f"{VALIDATING}?fieldManager=insister", found)


@contextlib.contextmanager
def insisting(cluster: Cluster) -> Iterator[None]:
    """Somebody who puts an objectSelector back as soon as it is gone."""
    stop = threading.Event()

    def insist() -> None:
        with contextlib.closing(Api(cluster)) as server:
            while not stop.wait(0.2):
                found = server.request("GET", VALIDATING)
                if found["webhooks"][0].get("objectSelector") != THEIRS:
                    edit(server, {"objectSelector": THEIRS})

    thread = threading.Thread(target=insist)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(30)


def test_a_writer_that_insists_is_written_over_at_growing_intervals(
    controllers: Controllers,  # noqa: F811 - the fixture
    living: Living,  # noqa: F811 - the fixture
    api: Api,  # noqa: F811 - the fixture
    bare: Cluster,
) -> None:
    port = free_port()
    controllers.start("patient", living.plain, "--metrics-listen", f"127.0.0.1:{port}")
    soon(lambda: policy_of(api) == "Fail", controllers.log)
    put(api, images(A))
    contested = f"podgate_hooks_contested{{{HOOK}}} 1.0"
    with insisting(bare):
        soon(lambda: contested in said(port, "metrics"), controllers.log)
        assert FREE < drifts(port) <= FREE + 2
        known = drifts(port)
        time.sleep(12)
        assert drifts(port) <= known + 1, "thirty seconds are between two by now"
        log = controllers.log.read_text("utf-8")
        assert "the registration is contested: insister changes" in log

        def warned() -> bool:
            status = api.request("GET", f"{POLICIES}/images").get("status") or {}
            problems = status.get("problems") or ()
            return any(each["reason"] == "registration-contested" for each in problems)

        soon(warned, controllers.log)


def test_what_aks_and_gke_add_is_left_there(
    controllers: Controllers,  # noqa: F811 - the fixture
    living: Living,  # noqa: F811 - the fixture
    api: Api,  # noqa: F811 - the fixture
) -> None:
    port = free_port()
    controllers.start("tolerant", living.plain, "--metrics-listen", f"127.0.0.1:{port}")
    soon(lambda: policy_of(api) == "Fail", controllers.log)
    before = drifts(port)
    selector = api.request("GET", VALIDATING)["webhooks"][0]["namespaceSelector"]
    wider = {**selector, "matchExpressions": [*selector["matchExpressions"], *AKS, GKE]}
    edit(api, {"namespaceSelector": wider})
    narrowed = f"podgate_hooks_narrowed{{{HOOK}}} 4.0"
    soon(lambda: narrowed in said(port, "metrics"), controllers.log)
    time.sleep(12)
    assert drifts(port) == before
    assert api.request("GET", VALIDATING)["webhooks"][0]["namespaceSelector"] == wider
    assert "namespaces that do not match are not governed" in controllers.log.read_text("utf-8")
