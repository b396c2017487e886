"""Everything of podgate's is gone while its hooks fail closed: what starts, what does not, the way out.

Everything is governed here, but for a network plugin's namespace that the installer named. kwok plays
the nodes' kubelets.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.api import Api, Json, StatusError
from tests.e2e.conftest import bed_or_skip
from tests.e2e.install.helm import NAMESPACE
from tests.e2e.install.pages import commands, run
from tests.e2e.install.release import Release
from tests.e2e.operators import nodes
from tests.e2e.operators.operator import Running
from tests.e2e.testbed import programs
from tests.e2e.testbed.cluster import Cluster

pytestmark = pytest.mark.e2e

NETWORK, STORAGE, TEAM = "network-plugin", "storage-driver", "team"
VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/podgate"
VALUES = {"governed": "all", "exempt": [NETWORK]}
NO_ANSWER = 'failed calling webhook "validate.podgate.dev"'


@dataclass(slots=True)
class Dead:
    """A cluster whose podgate is gone; how much of it is back is up to each test, in order."""

    cluster: Cluster
    api: Api
    release: Release

    def failure_policy(self) -> str:
        """What happens to what podgate does not answer; "" where it is not asked."""
        entries = (self.api.find(VALIDATING) or {}).get("webhooks") or [{}]
        return str(entries[0].get("failurePolicy") or "")

    def running(self, space: str) -> dict[str, str]:
        """The Pods that run in a namespace, name to node."""
        return {
            each["metadata"]["name"]: each["spec"]["nodeName"]
            for each in self.api.items("Pod", space)
            if (each.get("status") or {}).get("phase") == "Running"
            and "deletionTimestamp" not in each["metadata"]
        }

    def runs_on(self, space: str, *names: str) -> float:
        """Wait until a Pod of a namespace runs on each of these nodes; the seconds that took."""
        begun = time.monotonic()
        why = f"no Pods of {space} on {', '.join(names)}"
        self.release.soon(lambda: set(names) <= {*self.running(space).values()}, why)
        return time.monotonic() - begun

    def delete_pods(self, space: str) -> None:
        """Delete every Pod of a namespace, and wait until these are gone."""
        for name in (gone := self.running(space)):
            self.api.request("DELETE", f"/api/v1/namespaces/{space}/pods/{name}")
        self.release.soon(lambda: not {*gone} & {*self.running(space)}, "they do not go")

    def start_webhooks(self) -> None:
        """The webhook's processes come back."""
        for number in (1, 2):
            self.release.start_webhook(number)
        self.release.wait_ready(1, 2)


def template(name: str, **spec: object) -> Json:
    """A pod template of one container."""
    containers = [{"name": "main", "image": f"registry.example.com/{name}:1"}]
    metadata = {"labels": {"app": name}}
    return {"metadata": metadata, "spec": {"containers": containers, **spec}}


def set_of(kind: str, name: str, **spec: object) -> Json:
    """A DaemonSet or Deployment as such programs have it."""
    selector = {"matchLabels": {"app": name}}
    body = {"selector": selector, "template": template(name, **spec)}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": body}


NODE_PROGRAM = {"hostNetwork": True, "tolerations": [{"operator": "Exists"}]}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(
        users={nodes.SCHEDULER: ()}, api_server_flags=("--enable-aggregator-routing=true",)
    )
    started: dict[str, Running] = {}
    with bed_or_skip():
        programs.find("helm", "kube-scheduler", "kwok")
        cluster.start()
    try:
        started = nodes.programs_of(cluster, tmp_path_factory.mktemp("nodes"))
        yield cluster
    finally:
        for each in started.values():
            each.stop()
        cluster.stop()


@pytest.fixture(scope="module")
def dead(own: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dead]:
    """First everything is well and governed; then all of podgate ends at once, and hooks stay."""
    folder: Path = tmp_path_factory.mktemp("deadlock")
    with contextlib.closing(Api(own)) as api:
        release = Release(own, api, folder, VALUES)
        with contextlib.closing(release):
            found = Dead(own, api, release)
            prepare(found)
            release.stop()
            assert found.failure_policy() == "Fail"
            yield found


def prepare(found: Dead) -> None:
    """A node, what runs on every node, somebody's workload; podgate over all of it."""
    nodes.join(found.api, "node-a", [])
    for name in (NETWORK, STORAGE, TEAM):
        found.api.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    for name in (NETWORK, STORAGE, TEAM, "kube-system"):
        found.cluster.wait_namespace_ready(name)
    found.release.install()
    found.release.start_controller("controller-1")
    found.start_webhooks()
    found.release.soon(lambda: found.failure_policy() == "Fail", "hooks do not fail closed")
    host = {"securityContext": {"seccompProfile": {"type": "Unconfined"}}}
    found.api.create(set_of("DaemonSet", "network", **NODE_PROGRAM, **host), NETWORK)
    found.api.create(set_of("DaemonSet", "driver", tolerations=[{"operator": "Exists"}]), STORAGE)
    found.api.create(set_of("DaemonSet", "proxy", **NODE_PROGRAM), "kube-system")
    found.api.create(set_of("Deployment", "web"), TEAM)
    for space in (NETWORK, STORAGE, "kube-system", TEAM):
        found.runs_on(space, "node-a")


def test_what_a_cluster_boots_from_starts_without_podgate(dead: Dead) -> None:
    for space in (NETWORK, "kube-system", NAMESPACE):
        dead.delete_pods(space)
        print(f"{space} runs again after {dead.runs_on(space, 'node-a'):.1f} s")
    nodes.join(dead.api, "node-b", [])

    def ready() -> bool:
        node = dead.api.request("GET", "/api/v1/nodes/node-b")
        conditions = (node.get("status") or {}).get("conditions") or ()
        return ("Ready", "True") in [(each["type"], each["status"]) for each in conditions]

    dead.release.soon(ready, "the new node is not ready")
    for space in (NETWORK, "kube-system"):
        dead.runs_on(space, "node-b")
    dead.api.request("POST", "/api/v1/namespaces", {"metadata": {"name": "new"}})
    dead.cluster.wait_namespace_ready("new")


def test_what_is_governed_neither_starts_nor_changes_but_goes(dead: Dead) -> None:
    with pytest.raises(StatusError, match="failed calling webhook"):
        dead.api.create(set_of("Deployment", "other"), TEAM)
    dead.delete_pods(TEAM)
    dead.delete_pods(STORAGE)

    def told(space: str) -> bool:
        events = dead.api.items("Event", space)
        return any(NO_ANSWER in str(each.get("message")) for each in events)

    for space in (TEAM, STORAGE):
        dead.release.soon(partial(told, space), f"nothing was refused in {space}")
        assert dead.running(space) == {}


def test_the_way_out_is_as_the_page_says(dead: Dead) -> None:
    first, look, wait = commands("deploy/README.md", "Recover if podgate blocks the cluster")
    print(run(dead.cluster, first))
    print(f"the driver runs again after {dead.runs_on(STORAGE, 'node-a', 'node-b'):.1f} s")
    dead.release.soon(lambda: dead.running(TEAM), "the workload does not run again")
    assert "podgate-admission" in run(dead.cluster, look)
    assert dead.failure_policy() == ""
    dead.release.start_controller("controller-2")
    dead.start_webhooks()
    assert "successfully rolled out" in run(dead.cluster, wait)
    dead.release.soon(lambda: dead.failure_policy() == "Fail", "it does not come back")
    privileged = template("bad")
    privileged["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    privileged |= {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bad"}}
    with pytest.raises(StatusError, match="podgate refused"):
        dead.api.create(privileged, TEAM)


def test_the_switch_opens_a_dead_webhook_and_gives_it_back(dead: Dead) -> None:
    off, delete = commands("docs/operations.md", "Recovering a cluster that podgate blocks")
    assert delete == commands("deploy/README.md", "Recover if podgate blocks the cluster")[0]
    for number in (1, 2):
        dead.release.end(f"webhook-{number}")
    with pytest.raises(StatusError, match="failed calling webhook"):
        dead.api.create(set_of("Deployment", "later"), TEAM)
    assert "fails open now" in run(dead.cluster, off)
    dead.api.create(set_of("Deployment", "later"), TEAM)
    dead.start_webhooks()
    assert "fails open, switched off" in run(dead.cluster, "podgate hooks show")
    run(dead.cluster, "podgate hooks on")
    dead.release.soon(lambda: dead.failure_policy() == "Fail", "hooks do not close again")
    assert "fails closed" in run(dead.cluster, "podgate hooks show")
