"""What end-to-end tests share: the control plane, podgate beside it, and what passes between."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.api import Api, StatusError
from tests.e2e.gate import Gate
from tests.e2e.recorder import Recorder
from tests.e2e.served import Certificates, Served, serving
from tests.e2e.testbed import upstream
from tests.e2e.testbed.cluster import Cluster
from tests.e2e.testbed.missing import MissingTestbed
from webhook.control.registration import Target, configurations
from webhook.loader import Sources, load

HERE = Path(__file__).parent
CRDS = {
    "training-operator": ("pytorchjobs.kubeflow.org",),
    "kuberay": ("rayclusters.ray.io",),
    "jobset": ("jobsets.jobset.x-k8s.io",),
}
LAST = "test_replay"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What replays the recordings runs last, when all of them are there."""
    items.sort(key=lambda item: item.module.__name__.endswith(LAST) if has_module(item) else False)


def has_module(item: pytest.Item) -> bool:
    """Whether the item comes from a test module."""
    return hasattr(item, "module")


@contextlib.contextmanager
def bed_or_skip() -> Iterator[None]:
    """Tests are skipped where the test bed cannot be had, but fail on CI."""
    try:
        yield
    except MissingTestbed as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no test bed: {error.reason} {error.how_to_get_it}")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A running cluster with nothing in it."""
    cluster = Cluster()
    with bed_or_skip():
        cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def kinds(cluster: Cluster) -> Cluster:
    """The cluster, serving the custom kinds that podgate has definitions for."""
    with bed_or_skip():
        crds = [
            crd
            for project, names in CRDS.items()
            for crd in upstream.crds(project)
            if crd["metadata"]["name"] in names
        ]
    cluster.apply_crds(crds)
    return cluster


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates for loopback."""
    return Certificates.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def podgate(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[Served]:
    """`podgate serve` with the policies of this folder."""
    folder = tmp_path_factory.mktemp("podgate")
    with serving(folder, HERE / "policies", certificates) as served:
        yield served


@pytest.fixture(scope="session")
def recorder(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates, podgate: Served
) -> Iterator[Recorder]:
    """Stands between API server and podgate and keeps what passes."""
    file = tmp_path_factory.mktemp("reviews") / "reviews.jsonl"
    recorder = Recorder(
        file, certificates.certificate, certificates.key, certificates.ca, podgate.url
    )
    with recorder.running():
        yield recorder


@pytest.fixture(scope="session")
def api(kinds: Cluster) -> Iterator[Api]:
    """A connection to the API server as administrator."""
    with contextlib.closing(Api(kinds)) as api:
        yield api


@pytest.fixture(scope="session")
def gate(kinds: Cluster, api: Api, podgate: Served, recorder: Recorder) -> Gate:
    """The cluster with podgate registered and in effect."""
    catalog, problems = load(Sources())
    assert catalog is not None, problems
    target = Target(url=recorder.url, ca=podgate.certificates.ca.read_bytes())
    documents = configurations(catalog.definitions, target)
    gate = Gate(kinds, api, podgate, recorder)
    gate.plain_namespace("plain")
    for name in ("governed", "live"):
        gate.governed_namespace(name)
    kinds.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(documents))
    wait_until_effective(gate)
    return gate


def wait_until_effective(gate: Gate) -> None:
    """The API server takes a moment to call a new webhook: wait until a bad Pod is refused."""
    bad = gate.manifest("pod")
    bad["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            gate.api.create(bad, "governed", dry_run=True)
        except StatusError as error:
            if "security.privileged" in str(error):
                return
        time.sleep(0.1)
    raise AssertionError("the webhook was registered but is not called")
