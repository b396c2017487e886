"""What another webhook adds, on a tenant's wish, to what real controllers make of a workload."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.e2e.gate import wait_for
from tests.e2e.injector import Injector, Patch
from tests.e2e.objects import Json
from tests.e2e.operators import steered
from tests.e2e.operators.bed import Bed
from tests.e2e.operators.cases import CASES, Case, how_to_run, wanted
from tests.e2e.operators.played import PATIENCE
from tests.e2e.served import Served, serving

pytestmark = pytest.mark.e2e

OPERATED = {case.document["kind"]: case for case in CASES}
BETWEEN = {
    "Deployment": "ReplicaSet",
    "CronJob": "Job",
    "JobSet": "Job",
    "LeaderWorkerSet": "StatefulSet",
}
"""What a controller makes of a kind before there are Pods, which is injected into as well."""
PODS = {"PyTorchJob": 2, "LeaderWorkerSet": 2}
"""How many Pods a kind has, if not one."""
OLD = "registry.example.com/old/tool:1"
POLICY = """\
apiVersion: podgate.dev/v1alpha1
kind: ClusterWorkloadPolicy
metadata: {{name: injected}}
spec:
  defaults:
    environmentVariables: {{instances: [{{name: PROXY, value: "http://proxy:3128"}}]}}
  rules:
    image: {{options: [{options}]}}
    environmentVariables: {{instances: {{locked: [PROXY]}}}}
    security: {{privileged: {{canEdit: false}}}}
    storage: {{hostPath: {{instances: {{canAdd: false}}}}}}
"""


def policy(*images: str) -> str:
    """The policy with these images."""
    return POLICY.format(options=", ".join(f'{{value: "{each}"}}' for each in images))


def is_here(kind: str) -> bool:
    """Whether a kind has no operator, or one that is asked for."""
    return kind not in OPERATED or wanted(OPERATED[kind])


def of_kinds(*rows: tuple[str, ...]) -> list[Any]:
    """These rows as parameters, skipped where the operator of its kind is not asked for."""
    found = []
    for row in rows:
        case: Case | None = OPERATED.get(row[0])
        absent = case is not None and not wanted(case)
        reason = how_to_run(case.operator.name) if case else ""
        marks = pytest.mark.skipif(absent, reason=reason)
        found.append(pytest.param(*row, id="-".join(row), marks=marks))
    return found


def named(kind: str, wish: str, place: str = "Pod") -> str:
    """The name of the workload of a kind that asks for this."""
    return "-".join((kind, wish) if place == "Pod" else (kind, place, wish)).lower()


PLAIN = [(kind, "Pod", wish) for kind in steered.SPECS for wish in ("nothing", "listed")]
# A Deployment whose ReplicaSet is changed makes another one, again and again.
PLAIN += [(kind, place, "listed") for kind, place in BETWEEN.items() if kind != "Deployment"]
REFUSED = [(kind, "Pod", wish) for kind, wish in itertools.product(steered.SPECS, steered.TOLD)]
REFUSED += [(kind, place, "sidecar") for kind, place in BETWEEN.items()]


@dataclass(slots=True)
class Injected:
    """A podgate of its own behind the bed's API server, and the injector after it."""

    bed: Bed
    served: Served
    space: str
    injector: Injector
    removed: set[str] = field(default_factory=set)
    """Deployments whose ReplicaSets vanish while a Pod of them is being made."""
    lookups_before: float = 0

    def create(self, *documents: Json) -> None:
        """Create workloads; CronJobs miss a run, so that their controller acts at once."""
        items = {"apiVersion": "v1", "kind": "List", "items": documents}
        self.kubectl("create", "--validate=false", "--filename=-", input=json.dumps(items))
        last = (datetime.now(UTC) - timedelta(seconds=90)).strftime("%Y-%m-%dT%H:%M:%SZ")
        for document in documents:
            if document["kind"] == "CronJob":
                path = f"/apis/batch/v1/namespaces/{self.space}/cronjobs"
                path = f"{path}/{document['metadata']['name']}/status"
                status, content = {"lastScheduleTime": last}, "application/merge-patch+json"
                self.bed.gate.api.request("PATCH", path, {"status": status}, content)

    def create_rows(self, rows: list[tuple[str, str, str]]) -> None:
        """Create the workloads of these rows whose operators are here."""
        self.create(
            *(
                steered.workload(kind, named(kind, wish, place), annotations=wishes(place, wish))
                for kind, place, wish in rows
                if is_here(kind)
            )
        )

    def kubectl(self, *arguments: str, **more: Any) -> Any:
        """Run kubectl in the namespace."""
        return self.bed.gate.kubectl(*arguments, f"--namespace={self.space}", **more)

    def pods(self, name: str) -> list[Json]:
        """The Pods that were made of a workload."""
        found = self.bed.gate.api.items("Pod", self.space)
        return [each for each in found if each["metadata"]["name"].startswith(f"{name}-")]

    def events(self, name: str) -> list[str]:
        """What is told of a workload and what is made of it."""
        return [
            each["message"]
            for each in self.bed.gate.api.items("Event", self.space)
            if f"{each['involvedObject']['name']}-".startswith(f"{name}-")
        ]

    def wait_for_pods(self, name: str, count: int = 1) -> list[Json]:
        """The Pods of a workload as soon as there are so many."""

        def found() -> list[Json] | None:
            pods = self.pods(name)
            return pods if len(pods) >= count else None

        return wait_for(found, f"no {count} Pods of {name}: {self.events(name)}", PATIENCE)

    def wait_until_told(self, name: str, pattern: str) -> str:
        """The event with the pattern."""

        def told() -> str:
            return next((each for each in self.events(name) if re.search(pattern, each)), "")

        try:
            return wait_for(told, "", PATIENCE)
        except AssertionError:
            pytest.fail(f"nobody is told {pattern}: {self.events(name)}\n{self.served.log()}")

    def lookups(self) -> float:
        """How many owners podgate has looked up."""
        text = self.served.metrics()
        found = re.findall(r"^podgate_object_lookups_total\{[^}]*\} (\S+)$", text, re.M)
        return sum(map(float, found))

    def inject(self, document: Json) -> Patch:
        """The injector's answer; before it, a ReplicaSet that has to vanish does."""
        for owner in document["metadata"].get("ownerReferences", ()):
            if document["kind"] == "Pod" and owner["name"].rpartition("-")[0] in self.removed:
                self.removed.discard(owner["name"].rpartition("-")[0])
                self.kubectl("delete", f"replicaset/{owner['name']}")
        return steered.injected(document)


def wishes(place: str, wish: str) -> dict[str, str]:
    """The annotations that ask for this."""
    return {} if wish == "nothing" else {steered.WISH: wish, steered.PLACE: place}


@pytest.fixture(scope="module")
def cluster(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Injected]:
    """The injector registered after podgate, with every workload that asks it for something.

    Those that need no look-up come first. Afterwards the API server asks the bed's podgate again.
    """
    for case in CASES:
        if case.document["kind"] in steered.SPECS and wanted(case):
            bed.run(case.operator)
    certificates = bed.gate.podgate.certificates
    folder = tmp_path_factory.mktemp("injected")
    (folder / "given").mkdir()
    (folder / "given" / "injected.yaml").write_text(policy(steered.PYTHON, OLD))
    (folder / "listed.json").write_text(json.dumps(steered.LISTED))
    settings = {
        "PODGATE_INJECTED": str(folder / "listed.json"),
        "PODGATE_KUBECONFIG": str(bed.cluster.kubeconfig()),
    }
    resources = {"": ["pods"], "batch": ["jobs"], "apps": ["replicasets", "statefulsets"]}
    injector = Injector(certificates, resources=resources)
    registration = injector.configuration("z-injector", space := "injected")
    bed.gate.governed_namespace(space)
    with injector.running():
        try:
            with serving(folder, folder / "given", certificates, settings) as served:
                bed.gate.register(served.url)
                bed.wait_until_asked(space, "injected")
                found = Injected(bed, served, space, injector)
                injector.inject = found.inject
                bed.apply(registration)
                pod = bed.gate.manifest("pod")
                pod["spec"] = {"containers": [{"name": "main", "image": steered.PYTHON}]}

                def asked() -> int:
                    bed.gate.api.create(pod, space, dry_run=True)
                    return injector.asked

                wait_for(asked, "the injector is not asked")
                found.create_rows(PLAIN)
                for kind, place, wish in PLAIN:
                    if is_here(kind):
                        found.wait_for_pods(named(kind, wish, place), PODS.get(kind, 1))
                found.lookups_before = found.lookups()
                found.create_rows(REFUSED)
                yield found
        finally:
            bed.gate.kubectl(
                "delete", "mutatingwebhookconfiguration", "z-injector", "--ignore-not-found"
            )
            bed.gate.kubectl("delete", "namespace", space, "--wait=false")
            bed.gate.register(bed.gate.recorder.url)
            bed.wait_until_asked("governed", "operators")


def test_nothing_is_looked_up_while_nothing_is_violated(cluster: Injected) -> None:
    assert cluster.lookups_before == 0


@pytest.mark.parametrize(
    ("kind", "place"), of_kinds(*((a, b) for a, b, c in PLAIN if c == "listed"))
)
def test_what_the_settings_list_passes(cluster: Injected, kind: str, place: str) -> None:
    pods = cluster.wait_for_pods(named(kind, "listed", place), PODS.get(kind, 1))
    meshed = [
        {each["name"] for each in pod["spec"]["containers"]} >= {"mesh-proxy"}
        and "mesh" in {each["name"] for each in pod["spec"]["volumes"]}
        for pod in pods
    ]
    assert all(meshed), pods


@pytest.mark.parametrize(("kind", "place", "wish"), of_kinds(*REFUSED))
def test_what_a_tenant_has_injected_is_refused_with_path_and_reason(
    cluster: Injected, kind: str, place: str, wish: str
) -> None:
    name = named(kind, wish, place)
    pod = "spec" if place == "Pod" else r"spec\.template\.spec"
    said = cluster.wait_until_told(name, steered.TOLD[wish].format(pod=pod))
    assert "cluster policy injected" in said or "system policy" in said, said
    assert "does not have it: another webhook or a controller added it" in said
    assert cluster.pods(name) == []


def test_what_an_older_policy_let_in_is_made_again_unless_its_owner_is_gone(
    cluster: Injected,
) -> None:
    names = {"deployment-older": "Deployment", "statefulset-older": "StatefulSet"}
    names["deployment-gone"] = "Deployment"
    cluster.create(*(steered.workload(kind, name, OLD) for name, kind in names.items()))
    before = {name: cluster.wait_for_pods(name)[0]["metadata"] for name in names}
    cluster.served.rewrite("injected.yaml", policy(steered.PYTHON))
    late = json.dumps(steered.workload("Deployment", "deployment-late", OLD))
    done = cluster.kubectl("create", "--filename=-", input=late, check=False)
    assert "image at spec.template.spec.containers[0].image" in done.stderr, done.stderr
    looked_up = cluster.lookups()
    cluster.removed.add("deployment-gone")
    for name, metadata in before.items():
        cluster.kubectl("delete", f"pod/{metadata['name']}", "--grace-period=0", "--force")
        cluster_pods = wait_for(
            lambda name=name, uid=metadata["uid"]: [
                each for each in cluster.pods(name) if each["metadata"]["uid"] != uid
            ],
            f"{name} gets no Pod: {cluster.events(name)}",
            PATIENCE,
        )
        assert cluster_pods[0]["spec"]["containers"][0]["image"] == OLD
    assert cluster.lookups() > looked_up
    # Its ReplicaSet vanished between the controller's request and podgate's review. The Deployment
    # has another one by now, of which the Pod above was made.
    said = cluster.wait_until_told("deployment-gone", r"image at spec\.containers\[0\]\.image")
    assert "is gone or was replaced" in said
