"""The drills, in their order: each does one thing to the installation while people go on working."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator

from tests.e2e.api import Api, StatusError
from tests.e2e.install.drills.attempts import Attempt
from tests.e2e.install.drills.load import ask
from tests.e2e.install.drills.rotation import certificates_rotated
from tests.e2e.install.drills.rules import Rules
from tests.e2e.install.drills.stand import HOOKS, VALIDATING, Stand, kind_of
from tests.e2e.install.drills.tally import Row
from tests.e2e.install.helm import NAMESPACE
from tests.e2e.soak.things import Sort, manifest
from tests.e2e.testbed import upstream
from tests.e2e.testbed.cluster import Cluster

Drill = Callable[[Stand], str]
AROUND = 1.0
"""Seconds of load before something happens and after it is over."""
PAUSE = 10.0
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/podgate"


def drilled(stand: Stand, name: str) -> Row:
    """Have a drill happen under load; its figures."""
    stand.counted, begun = stand.failed_calls(), time.monotonic()
    with stand.load.running() as answers:
        time.sleep(AROUND)
        seen = DRILLS[name](stand)
        time.sleep(AROUND)
    seconds, after = time.monotonic() - begun, stand.failed_calls()
    return Row(name, seconds, answers, after - stand.counted, seen)


def policy_changed(stand: Stand) -> str:
    """Another policy holds in all replicas, hooks included, within five seconds."""
    seconds = stand.change_policy()
    assert seconds < 5, f"in force after {seconds:.1f} s"
    return f"in force everywhere after {seconds:.1f} s"


def definition_installed(stand: Stand) -> str:
    """A kind whose CustomResourceDefinition comes later is governed without a restart."""
    begun = time.monotonic()
    stand.cluster.apply_crds([upstream.crd("jobset", "jobsets.jobset.x-k8s.io")])
    served = time.monotonic() - begun
    inner = "spec.replicatedJobs.0.template.spec.template.spec.containers.0"
    kind = kind_of(stand.api, Sort("jobsets.jobset.x-k8s.io", "", manifest("jobset"), inner))
    bad = kind.sort.spoilt("bad")

    def refused() -> bool:
        try:
            stand.api.request("POST", f"{kind.sort.path()}?dryRun=All", bad)
        except StatusError as error:
            return "security.privileged" in str(error)
        return False

    stand.soon(refused, "the new kind is not governed")
    governed = time.monotonic() - begun
    stand.load.kinds = [kind, *stand.load.kinds]
    return f"served after {served:.1f} s, governed after {governed:.1f} s"


def rolling_upgrade(stand: Stand) -> str:
    """`helm upgrade`: the definitions, three webhooks one after the other, both controllers."""
    release = stand.release
    release.values["hooks"] = {"timeoutSeconds": 9}
    release.values["settings"] = {"deadline": 2}
    release.run_job("podgate-crds")
    stand.upgrade()
    old, stand.numbers = stand.numbers, [each + 3 for each in stand.numbers]
    for number in old:
        release.start_webhook(number + 3)
        release.wait_ready(number + 3)
        release.tell_to_end(f"webhook-{number}")
    stand.exchange_controllers()
    for number in old:
        release.wait_gone(f"webhook-{number}")

    def upgraded() -> bool:
        entry, *_ = stand.api.request("GET", VALIDATING)["webhooks"]
        return (entry["timeoutSeconds"], entry["failurePolicy"]) == (9, "Fail")

    stand.soon(upgraded, "the new controllers do not register")
    return "3 webhooks and 2 controllers exchanged"


def leader_killed(stand: Stand) -> str:
    """The leader dies without a word: the other leads soon, and hooks stay as they are."""
    before = stand.api.request("GET", VALIDATING)["webhooks"]
    leader = holder(stand)
    os.kill(stand.release.running[leader].pid, signal.SIGKILL)
    stand.release.running.pop(leader).wait()
    seconds = stand.soon(lambda: holder(stand) not in ("", leader), "nobody leads")
    stand.release.start_controller(f"controller-{next(stand.names)}")
    changed = stand.change_policy()
    assert stand.api.request("GET", VALIDATING)["webhooks"] == before
    assert "brought up to date" not in stand.release.log(holder(stand)).read_text("utf-8")
    return f"another leads after {seconds:.1f} s; a policy changed in {changed:.1f} s"


def holder(stand: Stand) -> str:
    """Who has the Lease."""
    return str(stand.api.request("GET", LEASE)["spec"].get("holderIdentity") or "")


@contextlib.contextmanager
def away(stand: Stand) -> Iterator[None]:
    """A time in which the API server is known not to do its work; over once it has written again.

    One that has just started may take requests before it knows where Services lead: its own count
    of failed calls begins when that is over.
    """
    stand.load.away.set()
    yield
    stand.soon(lambda: writes(stand.cluster), "the API server does not write again")
    stand.counted = stand.failed_calls()
    stand.load.away.clear()


def writes(cluster: Cluster) -> bool:
    """Whether the API server takes something new at once, tried on a connection of its own."""
    attempt = Attempt("write", "POST", CONFIG_MAPS, {"metadata": {"generateName": "drill-"}})
    with contextlib.closing(Api(cluster)) as api:
        api.connection.timeout = 5
        return ask(api, attempt).stored is not None


def server_restarted(stand: Stand) -> str:
    """The API server ends and comes back; who was leading leads, and everything is as before."""
    begun = time.monotonic()
    with away(stand):
        stand.cluster.restart("kube-apiserver")
    seconds, changed = time.monotonic() - begun, stand.change_policy()
    return f"away for {seconds:.1f} s; a policy changed in {changed:.1f} s"


def etcd_paused(stand: Stand) -> str:
    """etcd stands still for ten seconds: requests wait, and nobody decides wrongly meanwhile."""
    etcd = stand.cluster.processes["etcd"]
    begun = time.monotonic()
    with away(stand):
        etcd.signal(signal.SIGSTOP)
        try:
            time.sleep(PAUSE)
        finally:
            etcd.signal(signal.SIGCONT)
    seconds, changed = time.monotonic() - begun, stand.change_policy()
    return f"wrote again after {seconds:.1f} s; a policy changed in {changed:.1f} s"


def uninstalled(stand: Stand) -> str:
    """Hooks go first, then everything else, and nobody is refused for it."""
    stand.load.accepted = (*stand.load.accepted, Rules())
    begun = time.monotonic()
    stand.release.run_job("podgate-removal")
    left = [
        each["metadata"]["name"]
        for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
        for each in stand.api.request("GET", f"{HOOKS}/{kind}")["items"]
    ]
    assert not left, left
    stand.load.accepted = (Rules(),)
    stand.release.helm("uninstall", "podgate")
    stand.release.stop()
    return f"gone after {time.monotonic() - begun:.1f} s"


DRILLS: dict[str, Drill] = {
    "policy changed": policy_changed,
    "CRD installed later": definition_installed,
    "rolling upgrade": rolling_upgrade,
    "certificates rotated": certificates_rotated,
    "leader killed": leader_killed,
    "API server restarted": server_restarted,
    "etcd paused": etcd_paused,
    "uninstalled": uninstalled,
}
"""In this order: the last leaves nothing for another."""
