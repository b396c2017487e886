"""Where drills happen: a cluster with RBAC, the chart's release at full size, a policy, and the load."""

from __future__ import annotations

import contextlib
import copy
import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.e2e.api import Api, Json
from tests.e2e.install.drills.aged import put_old_ca
from tests.e2e.install.drills.attempts import APPLY, PROXY, PYTHON, SWING, TOOLS, Kind
from tests.e2e.install.drills.load import USERS, Load
from tests.e2e.install.drills.rules import MARK, Rules, plain
from tests.e2e.install.helm import CHART
from tests.e2e.install.release import Release
from tests.e2e.soak import things
from tests.e2e.soak.figures import Figures
from tests.e2e.soak.things import Sort
from tests.e2e.soak.verdict import CALLS, is_ours
from tests.e2e.testbed import programs
from tests.e2e.testbed.cluster import Cluster

SPACE, FREE = "drill", "free"
GOVERNED = {"podgate.dev/governed": "true", "drills": "yes"}
POLICY = "/apis/podgate.dev/v1alpha1/clusterworkloadpolicies/drill"
HOOKS = "/apis/admissionregistration.k8s.io/v1"
VALIDATING = f"{HOOKS}/validatingwebhookconfigurations/podgate"
FEW = {"replicas": 0, "suspend": True, "parallelism": 1}
"""Nothing runs in this cluster, so that what is made is only what people make."""
GOOD = frozenset({PYTHON, PROXY, TOOLS})
FIRST, SECOND = Rules("one", GOOD), Rules("two", GOOD | {SWING})


@dataclass(slots=True)
class Stand:
    """Everything that a drill needs; `numbers` are those of the webhooks that run.

    `counted` are the failed calls of our webhooks up to where a drill begins to count.
    """

    cluster: Cluster
    api: Api
    release: Release
    load: Load
    numbers: list[int] = field(default_factory=lambda: [1, 2, 3])
    names: Iterator[int] = field(default_factory=lambda: itertools.count(3))
    counted: Counter[str] = field(default_factory=Counter)

    def soon(self, holds: Callable[[], Any], why: str) -> float:
        """Wait until something holds; the seconds that took."""
        begun = time.monotonic()
        self.release.soon(holds, why)
        return time.monotonic() - begun

    def closed(self) -> bool:
        """Whether the validating hook is there and fails closed."""
        entries = (self.api.find(VALIDATING) or {}).get("webhooks") or [{}]
        return bool(entries[0].get("failurePolicy") == "Fail")

    def in_force(self) -> bool:
        """Whether the status of the policy says that all processes judge by its newest generation."""
        found = self.api.request("GET", POLICY)
        conditions = (found.get("status") or {}).get("conditions") or ()
        ready = [each for each in conditions if each["type"] == "Ready"]
        newest = found["metadata"]["generation"]
        return [(x["status"], x["observedGeneration"]) for x in ready] == [("True", newest)]

    def write(self, rules: Rules) -> None:
        """Write the policy that asks for these rules."""
        self.api.request("PATCH", f"{POLICY}?fieldManager=drills", policy_of(rules), APPLY)

    def change_policy(self) -> float:
        """Have the other rules hold; seconds until the status says that they do everywhere."""
        (now,) = self.load.accepted
        other = SECOND if now == FIRST else FIRST
        self.load.accepted = (now, other)
        self.write(other)
        seconds = self.soon(self.in_force, "the changed policy is not in force")
        self.load.accepted = (other,)
        return seconds

    def upgrade(self) -> None:
        """What `helm upgrade` does before Pods are exchanged, but for its Job."""
        self.release.helm("upgrade", "podgate", str(CHART))

    def exchange_controllers(self) -> None:
        """What the controllers' Deployment does after an upgrade: a new Pod, then an old one less."""
        old = [each for each in self.release.running if each.startswith("controller")]
        for name in old:
            self.release.start_controller(f"controller-{next(self.names)}")
            self.release.end(name)

    def failed_calls(self) -> Counter[str]:
        """Calls of our webhooks that failed, by the API server's own count since its start."""
        text = self.cluster.kubectl("get", "--raw=/metrics").stdout
        figures, found = Figures(text, (CALLS, f"# TYPE {CALLS}")), Counter[str]()
        for name in ("rejection_count", "fail_open_count"):
            for labels, value in figures.of(f"{CALLS}{name}"):
                if is_ours(labels) and labels.get("error_type") != "no_error":
                    told = " ".join((labels["name"], name, labels.get("error_type", "")))
                    found[told.strip()] += round(value)
        return found


def policy_of(rules: Rules) -> Json:
    """The policy that asks for these rules, in namespaces with a label."""
    options = [{"value": each} for each in sorted(rules.images)]
    variables = {"instances": [{"name": MARK, "value": rules.mark}]}
    return {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": "ClusterWorkloadPolicy",
        "metadata": {"name": "drill"},
        "spec": {
            "namespaceSelector": {"matchLabels": {"drills": "yes"}},
            "defaults": {"environmentVariables": variables},
            "rules": {"image": {"options": options}},
        },
    }


def quiet(document: Json) -> Json:
    """The same without replicas and suspended, where a kind has that."""
    found = copy.deepcopy(document)
    found["spec"].update({key: FEW[key] for key in FEW if key in found["spec"]})
    if found["kind"] in ("Job", "CronJob"):
        found["spec"]["suspend"] = True
    return found


def kind_of(api: Api, sort: Sort) -> Kind:
    """A sort in the drills' namespace, with what the server makes of it where nobody looks."""
    name, document = sort.document["metadata"]["name"], quiet(sort.document)
    free = replace(sort, space=FREE, document=document)
    stored = api.request("POST", f"{free.path()}?dryRun=All", free.named(name))
    return Kind(replace(free, space=SPACE), plain(stored))


def cluster() -> Cluster:
    """A cluster that reaches Services by their endpoints; MissingTestbed where it cannot be had."""
    programs.find("helm")
    users = dict.fromkeys(USERS, ("system:masters",))
    return Cluster(users=users, api_server_flags=("--enable-aggregator-routing=true",)).start()


@contextlib.contextmanager
def standing(cluster: Cluster, folder: Path) -> Iterator[Stand]:
    """Install, wait until the policy holds everywhere and hooks fail closed; end it all after."""
    with contextlib.closing(Api(cluster)) as api:
        release = Release(cluster, api, folder, {}, workers=2)
        with contextlib.closing(release):
            release.install()
            put_old_ca(api)
            for number in (1, 2):
                release.start_controller(f"controller-{number}")
            for number in (1, 2, 3):
                release.start_webhook(number)
            for name, labels in ((SPACE, GOVERNED), (FREE, {})):
                body = {"metadata": {"name": name, "labels": labels}}
                api.request("POST", "/api/v1/namespaces", body)
                cluster.wait_namespace_ready(name)
            kinds = [kind_of(api, sort) for sort in things.plain()]
            stand = Stand(cluster, api, release, Load(cluster, kinds, (FIRST,)))
            stand.write(FIRST)
            release.wait_ready(1, 2, 3)
            stand.soon(stand.in_force, "the policy is not in force")
            stand.soon(stand.closed, "hooks do not fail closed")
            yield stand
