"""The registration as files that API servers of 1.37 and newer read: podgate registration --static."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cli.running import podgate as command
from tests.e2e.api import Api, StatusError
from tests.e2e.conftest import bed_or_skip
from tests.e2e.gate import wait_for
from tests.e2e.served import Certificates, Served, serving
from tests.e2e.test_living_cluster import A, images
from tests.e2e.testbed import releases
from tests.e2e.testbed.cluster import Cluster, NotStartedError
from webhook.controller.registrar import probe

pytestmark = pytest.mark.e2e

ROOT = "/apis/admissionregistration.k8s.io/v1"
TEAM = "team"
PODS = f"/api/v1/namespaces/{TEAM}/pods?dryRun=All"
FILE = "validating/podgate.yaml"


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[Served]:
    policies = tmp_path_factory.mktemp("policies")
    (policies / "images.yaml").write_text(yaml.safe_dump(images(A)), "utf-8")
    with serving(tmp_path_factory.mktemp("podgate"), policies, certificates) as found:
        yield found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, served: Served) -> Path:
    """The folder that `podgate registration --static --to` wrote."""
    if int(releases.chosen().minor.partition(".")[2]) < 37:
        pytest.skip("files are read from 1.37 on")
    folder = tmp_path_factory.mktemp("files")
    target = ("--url", served.url, "--ca-file", str(served.certificates.ca))
    done = command("registration", "--static", *target, "--to", str(folder))
    assert done.exit_code == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def static(files: Path) -> Iterator[Cluster]:
    """A cluster whose API server has these files from its start."""
    flag = f"--admission-control-config-file={files / 'admission.yaml'}"
    cluster = Cluster(api_server_flags=[flag])
    with bed_or_skip():
        cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def api(static: Cluster) -> Iterator[Api]:
    with contextlib.closing(Api(static)) as found:
        labels = {"podgate.dev/governed": "true"}
        found.request("POST", "/api/v1/namespaces", {"metadata": {"name": TEAM, "labels": labels}})
        static.wait_namespace_ready(TEAM)
        yield found


def refusal(api: Api, stage: str = "mutate") -> str:
    """What a privileged Pod is refused with, "" where it is not."""
    try:
        api.request("POST", PODS, probe(stage))
    except StatusError as error:
        return str(error)
    return ""


def reviews(served: Served) -> int:
    """How many reviews podgate has answered."""
    counts = re.findall(r"^podgate_requests_total\{.*\} (\S+)$", served.metrics(), re.MULTILINE)
    return int(sum(float(each) for each in counts))


def good_pod() -> dict[str, object]:
    container = {"name": "main", "image": A}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "good"},
        "spec": {"containers": [container]},
    }


def test_files_hold_without_the_api_and_against_it(
    api: Api, static: Cluster, served: Served, files: Path
) -> None:
    """One story, as each step changes what the API server has."""
    for stage in ("mutate", "validate"):
        said = refusal(api, stage)
        assert f'"{stage}.podgate.dev.static.k8s.io" denied the request' in said
        assert "podgate refused" in said
    assert api.request("GET", f"{ROOT}/validatingwebhookconfigurations")["items"] == []

    # Nobody can take the name, or delete what is not in the API.
    name = "podgate.static.k8s.io"
    body = {"metadata": {"name": name}, "webhooks": []}
    with pytest.raises(StatusError, match="reserved for static manifest-based"):
        api.request("POST", f"{ROOT}/validatingwebhookconfigurations", body)
    assert api.find(f"{ROOT}/validatingwebhookconfigurations/{name}") is None
    kubeconfig = ("--kubeconfig", str(static.kubeconfig()))
    off = command("hooks", "off", *kubeconfig)
    assert off.exit_code == 0, off.stderr
    assert "read from files (podgate registration --static) stay as they are" in off.stdout
    assert refusal(api)

    # Registered through the API too, each review comes twice.
    before = reviews(served)
    api.request("POST", PODS, good_pod())
    once = reviews(served) - before
    assert once == 2
    target = ("--url", served.url, "--ca-file", str(served.certificates.ca))
    printed = command("registration", *target)
    static.kubectl("apply", "-f", "-", input=printed.stdout)

    def twice() -> bool:
        before = reviews(served)
        api.request("POST", PODS, good_pod())
        return reviews(served) - before == 2 * once

    wait_for(twice, "registered twice, but each review came once")
    removed = command("hooks", "remove", *kubeconfig)
    assert removed.exit_code == 0, removed.stderr
    wait_for(lambda: not twice(), "removed from the API, but each review comes twice")

    # The way out of the runbook: the files go, and come back.
    for folder in ("mutating", "validating"):
        (files / folder / "podgate.yaml").rename(files / f"{folder}.kept")
    wait_for(lambda: not refusal(api), "the files are gone, but podgate still refuses", 90)
    for folder in ("mutating", "validating"):
        (files / f"{folder}.kept").rename(files / folder / "podgate.yaml")
    wait_for(lambda: refusal(api), "the files are back, but podgate does not refuse", 90)


def test_an_api_server_does_not_start_with_a_service_in_its_files(
    files: Path, tmp_path: Path
) -> None:
    """Why the command asks for --url."""
    for part in ("mutating", "validating"):
        (tmp_path / part).mkdir()
    found = list(yaml.safe_load_all((files / FILE).read_text("utf-8")))
    service = {"namespace": "podgate-system", "name": "podgate", "path": "/validate"}
    found[0]["webhooks"][0]["clientConfig"] = {"service": service}
    (tmp_path / FILE).write_text(yaml.safe_dump_all(found), "utf-8")
    plugins = (files / "admission.yaml").read_text("utf-8").replace(str(files), str(tmp_path))
    (tmp_path / "admission.yaml").write_text(plugins, "utf-8")
    flag = f"--admission-control-config-file={tmp_path / 'admission.yaml'}"
    cluster = Cluster(api_server_flags=[flag])
    try:
        with pytest.raises(NotStartedError, match=r"clientConfig\.service is not supported"):
            cluster.start()
    finally:
        cluster.stop()
