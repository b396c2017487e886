"""A cluster with fake nodes, podgate in front, and operators that start when they are wanted."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.api import Api, StatusError
from tests.e2e.gate import Gate, wait_for
from tests.e2e.operators import knative, nodes
from tests.e2e.operators.operator import Operator, Place, Running, answers, listens
from tests.e2e.recorder import Recorder, Recording
from tests.e2e.served import Certificates, Served, serving
from tests.e2e.testbed import identity, programs, upstream
from tests.e2e.testbed.cluster import Cluster

HERE = Path(__file__).parent
SETTINGS = {"PODGATE_FEATURES": ",".join(knative.FEATURES)}
Json = dict[str, Any]


@dataclass(slots=True)
class Bed:
    """The cluster behind `gate`, a folder for logs, and what runs in it by name."""

    gate: Gate
    folder: Path
    running: dict[str, Running] = field(default_factory=dict)

    @property
    def cluster(self) -> Cluster:
        """The control plane."""
        return self.gate.cluster

    def apply(self, document: Json) -> Json:
        """Apply an object on the server's side, whatever it is; what is stored then."""
        asked = ("apply", "--server-side", "--force-conflicts", "--output=json", "--filename=-")
        return dict(json.loads(self.gate.kubectl(*asked, input=json.dumps(document)).stdout))

    def run(self, operator: Operator) -> Running:
        """Start an operator under its own account, or return the one that runs."""
        if operator.name not in self.running:
            found = programs.find(operator.name)[operator.name]
            folder = self.folder / operator.name
            folder.mkdir(exist_ok=True)
            place = Place(folder, self.account(operator, folder), self.cluster.server)
            crds = [
                each
                for project in (*operator.needs, operator.name)
                for each in upstream.crds(f"operators/{project}")
                if operator.crds(each["metadata"]["name"])
            ]
            self.cluster.apply_crds(crds)
            operator.prepare(self, place)
            environment = {
                "KUBECONFIG": str(place.kubeconfig),
                "TMPDIR": str(folder),
                "HOME": str(folder),
                **operator.environment(place),
            }
            command = [found, *operator.arguments(place)]
            started = Running.start(operator.name, command, folder, **environment)
            self.running[operator.name] = started
            started.wait_until(lambda: answers(place.health, operator.ready))
            if operator.serves:
                started.wait_until(lambda: listens(place.webhook))
        return self.running[operator.name]

    def account(self, operator: Operator, folder: Path) -> Path:
        """A kubeconfig with a token of the operator's service account, which may do everything."""
        for name in dict.fromkeys((operator.namespace, "kubeflow")):
            self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        metadata = {"name": operator.account, "namespace": operator.namespace}
        self.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        self.apply(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": f"{operator.namespace}-{operator.account}"},
                "subjects": [{"kind": "ServiceAccount", **metadata}],
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "cluster-admin",
                },
            }
        )
        asked = ("create", "token", operator.account, f"--namespace={operator.namespace}")
        token = self.gate.kubectl(*asked, "--duration=24h").stdout.strip()
        path = folder / "kubeconfig"
        identity.write_kubeconfig(
            path,
            server=self.cluster.server,
            ca_file=self.cluster.ca_file,
            user=operator.user,
            token=token,
        )
        return path

    def reviews(self, space: str, *users: str) -> list[Recording]:
        """What podgate was asked about a namespace by these users, in order."""
        return [
            each
            for each in self.gate.recorder.recordings()
            if each.request.get("namespace") == space
            and each.request["userInfo"]["username"] in users
        ]

    def wait_until_asked(self, space: str, name: str) -> None:
        """Wait until the API server asks the podgate that has the cluster policy of this name."""
        bad = self.gate.manifest("pod")
        bad["spec"]["containers"][0]["image"] = "registry.example.com/evil/spy:1"

        def refused() -> bool:
            try:
                self.gate.api.create(bad, space, dry_run=True)
            except StatusError as error:
                return f"cluster policy {name}" in str(error)
            return False

        wait_for(refused, f"the podgate with policy {name} is not asked")

    def stop(self) -> None:
        """End what runs, the last first."""
        for each in reversed(self.running.values()):
            each.stop()


@contextlib.contextmanager
def standing(
    folder: Path,
    users: Mapping[str, Sequence[str]] | None = None,
    workers: int = 1,
    recorded: bool = True,
    policies: Path = HERE / "policies",
) -> Iterator[Bed]:
    """A bed with podgate registered and in effect, until the block ends.

    `users` are people besides those of every cluster, with their groups. The API server asks through
    the recorder if `recorded`, else podgate itself, which serves a copy of the folder `policies`.
    """
    certificates = Certificates.make(folder / "certificates")
    programs.find("kube-scheduler", "kwok")
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(Cluster(users={**(users or {}), nodes.SCHEDULER: ()}))
        api = stack.enter_context(contextlib.closing(Api(cluster)))
        # It reaches the API server for nothing but to tell owners of refusals.
        settings = {**SETTINGS, "PODGATE_KUBECONFIG": str(cluster.kubeconfig())}
        served = stack.enter_context(
            serving(folder / "podgate", policies, certificates, settings, workers)
        )
        recorder = recorder_of(folder, certificates, served)
        stack.enter_context(recorder.running())
        bed = Bed(Gate(cluster, api, served, recorder), folder)
        stack.callback(bed.stop)
        nodes.start(bed, folder)
        bed.gate.register(recorder.url if recorded else served.url)
        bed.gate.governed_namespace("governed")
        bed.gate.wait_until_refused("governed")
        yield bed


def recorder_of(folder: Path, certificates: Certificates, served: Served) -> Recorder:
    """A recorder in front of a podgate."""
    return Recorder(
        folder / "reviews.jsonl",
        certificates.certificate,
        certificates.key,
        certificates.ca,
        served.url,
    )
