"""podgate with policies on every field, for a namespace each, beside the one that `gate` has."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests import everything
from tests.e2e.gate import GOVERNED_LABEL, QUIET, Gate
from tests.e2e.objects import Json, version_of
from tests.e2e.recorder import Recorder, Recording
from tests.e2e.served import Served, serving
from webhook.controller.registration import Target, configurations
from webhook.sources.load import Sources, load

HERE = Path(__file__).parent / "whole"
NAME = "podgate-whole"
CLIENT, SERVER, TWIN = "every-field", "every-field-server-side", "every-field-twin"
RULES, NIM, PLAIN = "every-rule", "nim", "whole-plain"
SPACES = (CLIENT, SERVER, TWIN, RULES, NIM)
SETTINGS = {
    "PODGATE_GIT_IMAGE": everything.WORDS.git_image,
    "PODGATE_S3_DRIVERS": ",".join(f"{k}={v}" for k, v in everything.WORDS.s3_drivers.items()),
    "PODGATE_DATA_VOLUMES": ",".join(f"{k}={v}" for k, v in everything.WORDS.data_volumes.items()),
}
CRDS = (
    "tfjobs.kubeflow.org",
    "xgboostjobs.kubeflow.org",
    "jaxjobs.kubeflow.org",
    "paddlejobs.kubeflow.org",
    # Only one CRD of a name can be there; this version has more places for fields.
    "mpijobs.kubeflow.org.v2beta1",
    "rayjobs.ray.io",
    "rayservices.ray.io",
    "leaderworkersets.leaderworkerset.x-k8s.io",
    "services.serving.knative.dev",
    "inferenceservices.serving.kserve.io",
    "nimservices.apps.nvidia.com",
)
# A pod has its GPUs in one form: a part of one by default, by memory or as whole ones elsewhere.
NOT_AS_PARTS: dict[str, Any] = {
    "compute.gpuRequestType": None,
    "compute.gpuPortionRequest": None,
    "compute.gpuPortionLimit": None,
    "compute.migProfile": None,
}
BY_MEMORY = {**NOT_AS_PARTS, "compute.gpuRequestType": "memory", "compute.gpuDevicesRequest": None}
AS_WHOLE_ONES = {
    **NOT_AS_PARTS,
    "compute.gpuMemoryRequest": None,
    "compute.gpuMemoryLimit": None,
}


@dataclass(frozen=True, slots=True)
class Manifest:
    """One small workload."""

    file: Path
    document: Json

    @property
    def kind(self) -> str:
        """Its kind."""
        return str(self.document["kind"])

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.document["metadata"]["name"])

    def path(self, space: str) -> str:
        """Where the API server keeps it."""
        version = self.document["apiVersion"]
        root = "apis" if "/" in version else "api"
        return f"/{root}/{version}/namespaces/{space}/{self.kind.lower()}s/{self.name}"


def manifests(folder: Path = HERE / "kinds", pattern: str = "*.yaml") -> list[Manifest]:
    """The manifests of a folder."""
    files = sorted(folder.glob(pattern))
    return [Manifest(each, yaml.safe_load(each.read_text("utf-8"))) for each in files]


EVERY_KIND = manifests()


@dataclass(slots=True)
class Whole:
    """A second podgate with its recorder, at the API server of `gate`."""

    gate: Gate
    podgate: Served
    recorder: Recorder

    def register(self) -> None:
        """Have the API server ask this podgate about its own namespaces."""
        catalog, problems = load(Sources())
        assert catalog is not None, problems
        target = Target(url=self.recorder.url, ca=self.podgate.certificates.ca.read_bytes())
        mutating, validating, _ = configurations(catalog.definitions, target)
        documents = [mutating, validating]
        for document in documents:
            document["metadata"]["name"] = NAME
            # Device classes, which have an entry of their own, are in no namespace.
            entries = [each for each in document["webhooks"] if "namespaceSelector" in each]
            document["webhooks"] = entries
            for webhook in entries:
                webhook["namespaceSelector"]["matchLabels"] = {GOVERNED_LABEL: NAME}
        self.gate.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(documents))

    def unregister(self) -> None:
        """Have the API server ask nobody about them any more."""
        kinds = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
        self.gate.kubectl("delete", kinds, NAME)

    def prepare(self, space: str) -> None:
        """Make what Pods need to be let in by other admission plugins."""
        account = {"metadata": {"name": "runner"}}
        self.gate.api.request("POST", f"/api/v1/namespaces/{space}/serviceaccounts", account)

    def stored(self, manifest: Manifest, space: str) -> Json | None:
        """The object as it is stored; None when it is not."""
        return self.gate.api.find(manifest.path(space))

    def settled(self, space: str) -> dict[str, Json]:
        """Every object by its kind, once controllers leave all of them alone."""
        last, since = self.all_of(space), time.monotonic()
        while time.monotonic() - since < QUIET:
            time.sleep(0.1)
            now = self.all_of(space)
            if versions(now) != versions(last):
                last, since = now, time.monotonic()
        return last

    def all_of(self, space: str) -> dict[str, Json]:
        """Every object by its file's name."""
        found = {each.file.stem: self.stored(each, space) for each in EVERY_KIND}
        return {name: stored for name, stored in found.items() if stored is not None}

    def creations(self, space: str, manifest: Manifest) -> list[Recording]:
        """The mutating reviews of one object's creation, in order; a dry run creates nothing."""
        found = self.reviews(space, manifest, "CREATE")
        return [each for each in found if not each.request.get("dryRun")]

    def reviews(self, space: str, manifest: Manifest, operation: str) -> list[Recording]:
        """Mutating reviews of one object, in order."""
        return [
            each
            for each in self.recorder.recordings()
            if each.stage == "mutate"
            and each.request["operation"] == operation
            and each.request["namespace"] == space
            and each.request["kind"]["kind"] == manifest.kind
            and each.request.get("name") == manifest.name
        ]


def versions(objects: Mapping[str, Json]) -> dict[str, tuple[str, int]]:
    """What tells whether any of the objects was written again."""
    return {name: version_of(each) for name, each in objects.items()}


def every_rule() -> Json:
    """A rule on every field; rules.yaml says which are not just there, but tight."""
    own = yaml.safe_load((HERE / "rules.yaml").read_text("utf-8"))
    return merged(everything.rules(), own)


def merged(tree: Any, other: Any) -> Any:
    """The tree with what the other one says instead; rules are replaced whole."""
    if not isinstance(tree, dict) or any(not isinstance(each, dict) for each in other.values()):
        return other
    return {**tree, **{key: merged(tree.get(key), each) for key, each in other.items()}}


def policies() -> Iterator[Json]:
    """The policies of all namespaces."""
    yield policy(CLIENT, defaults=everything.telling_defaults())
    yield policy(SERVER, defaults=everything.telling_defaults(AS_WHOLE_ONES))
    yield policy(TWIN, defaults=everything.telling_defaults(BY_MEMORY))
    yield policy(RULES, rules=every_rule())
    body = yaml.safe_load((HERE / "nim.yaml").read_text("utf-8"))
    yield policy(NIM, workloadTypes=["nimService"], **body)


def policy(space: str, name: str = "whole", **spec: Any) -> Json:
    """A policy of one namespace."""
    return {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": "WorkloadPolicy",
        "metadata": {"name": name, "namespace": space},
        "spec": spec,
    }


@contextlib.contextmanager
def running(gate: Gate, folder: Path, crds: Sequence[Path]) -> Iterator[Whole]:
    """The second podgate, registered and in effect, until the block ends."""
    source = folder / "written"
    source.mkdir(parents=True)
    (source / "policies.yaml").write_text(yaml.safe_dump_all(policies()), "utf-8")
    certificates = gate.podgate.certificates
    with serving(folder / "served", source, certificates, SETTINGS) as served:
        recorder = Recorder(
            folder / "reviews.jsonl",
            certificates.certificate,
            certificates.key,
            certificates.ca,
            served.url,
        )
        with recorder.running():
            whole = Whole(gate, served, recorder)
            install(gate, crds)
            whole.register()
            for space in SPACES:
                gate.namespace(space, {GOVERNED_LABEL: NAME})
                whole.prepare(space)
            gate.plain_namespace(PLAIN)
            whole.prepare(PLAIN)
            for space in SPACES:
                gate.wait_until_refused(space)
            try:
                yield whole
            finally:
                whole.unregister()


def install(gate: Gate, crds: Sequence[Path]) -> None:
    """Have the API server serve more kinds."""
    files = [f"--filename={each}" for each in crds]
    gate.kubectl("apply", "--server-side", "--force-conflicts", *files)
    gate.cluster.wait_established({each.stem.removesuffix(".v2beta1") for each in crds})
    runtime = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "some"},
        "handler": "some",
    }
    gate.kubectl("create", "--filename=-", input=yaml.safe_dump(runtime))
