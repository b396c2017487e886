"""What end-to-end tests share: the control plane, podgate beside it, and what passes between."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.api import Api
from tests.e2e.gate import Gate
from tests.e2e.recorder import Recorder
from tests.e2e.served import MINOR, Certificates, Served, serving
from tests.e2e.testbed import releases, upstream
from tests.e2e.testbed.cluster import Cluster
from tests.e2e.testbed.missing import MissingTestbed
from tests.e2e.workloads import WORKLOADS

HERE = Path(__file__).parent
CRDS = {
    "training-operator": ("pytorchjobs.kubeflow.org",),
    "kuberay": ("rayclusters.ray.io",),
    "jobset": ("jobsets.jobset.x-k8s.io",),
}
LAST = "test_zz_replay"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What replays the recordings runs last, when all of them are there."""
    try:
        releases.chosen()
    except MissingTestbed as error:
        raise pytest.UsageError(f"{error.reason} {error.how_to_get_it}") from None
    items.sort(key=lambda item: item.path.stem == LAST)
    for item in items:
        if item.path.is_relative_to(HERE / "install") and item.get_closest_marker("e2e"):
            item.add_marker("install")


@contextlib.contextmanager
def bed_or_skip() -> Iterator[None]:
    """Tests are skipped where the test bed cannot be had, but fail on CI."""
    try:
        yield
    except MissingTestbed as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no test bed: {error.reason} {error.how_to_get_it}")


@pytest.fixture(scope="session", autouse=True)
def minor() -> Iterator[str]:
    """The minor of the test bed, of which commands in this process take the server's defaults."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(MINOR, releases.chosen().minor)
        yield releases.chosen().minor


@contextlib.contextmanager
def running_cluster() -> Iterator[Cluster]:
    """A cluster with nothing in it, until the block ends."""
    cluster = Cluster()
    with bed_or_skip():
        cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A running cluster with nothing in it."""
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def bare() -> Iterator[Cluster]:
    """A second cluster, where podgate is not registered and every definition may be installed."""
    with running_cluster() as cluster:
        yield cluster


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
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[Served]:
    """`podgate serve` with the policies of this folder; it may read the owners of children."""
    folder = tmp_path_factory.mktemp("podgate")
    settings = {"PODGATE_KUBECONFIG": str(cluster.kubeconfig())}
    with serving(folder, HERE / "policies", certificates, settings) as served:
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
    gate = Gate(kinds, api, podgate, recorder)
    gate.plain_namespace("plain")
    for name in ("governed", "live", "samples"):
        gate.governed_namespace(name)
    for workload in WORKLOADS:
        document = gate.manifest(workload.manifest)
        gate.untouched[workload.kind] = api.create(document, "plain", dry_run=True)
    gate.register(recorder.url)
    gate.wait_until_refused("governed")
    return gate
