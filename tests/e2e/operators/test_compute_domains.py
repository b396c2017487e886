"""The controller of NVIDIA's driver behind podgate: it makes the templates of ComputeDomains."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
import yaml

from tests.e2e.api import Json
from tests.e2e.conftest import bed_or_skip
from tests.e2e.gate import Gate, wait_for
from tests.e2e.operators.cases import asked
from tests.e2e.operators.operator import Running
from tests.e2e.test_devices import (
    GROUP,
    apply,
    claims_of,
    domain,
    gate,  # noqa: F401 - a fixture
    pod,
    template,
)
from tests.e2e.testbed import programs, upstream
from webhook.evaluation.device_settings import DRIVER_CONTROLLER

PROGRAM = "compute-domain-controller"
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(
        not asked(PROGRAM), reason=f"run `make test-operators`, or set PODGATE_OPERATORS={PROGRAM}"
    ),
]
DRIVER = "dra-driver-nvidia-gpu"
DOMAINS = "/apis/resource.nvidia.com/v1beta1"


@pytest.fixture(scope="module")
def controller(gate: Gate, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:  # noqa: F811
    """The controller as its own user. It reads templates from fixed paths, so it gets a root folder."""
    change_root = shutil.which("unshare")
    if change_root is None:
        pytest.skip("no unshare here, which gives the controller a root folder")
    with bed_or_skip():
        program = programs.find(PROGRAM)[PROGRAM]
        archive = upstream.module_dir("dra-driver")
    folder = tmp_path_factory.mktemp("controller")
    root = folder / "root"
    shutil.copytree(archive / "templates", root / "templates", copy_function=shutil.copyfile)
    shutil.copy(program, root / PROGRAM)
    config = yaml.safe_load(gate.cluster.kubeconfig(DRIVER_CONTROLLER).read_text("utf-8"))
    (found,) = config["clusters"]
    shutil.copy(found["cluster"]["certificate-authority"], root / "ca.crt")
    found["cluster"]["certificate-authority"] = "/ca.crt"
    (root / "kubeconfig").write_text(yaml.safe_dump(config), "utf-8")
    gate.plain_namespace(DRIVER)
    flags = {
        "kubeconfig": "/kubeconfig",
        "namespace": DRIVER,
        "pod-name": "controller",
        "image-name": "image",
        "log-verbosity-cd-daemon": "2",
    }
    command = [change_root, "--map-root-user", f"--root={root}", f"/{PROGRAM}"]
    running = Running.start(
        PROGRAM, [*command, *(f"--{name}={value}" for name, value in flags.items())], folder
    )
    try:
        yield running
    finally:
        running.stop()


def templates(gate: Gate, space: str) -> dict[str, Json]:  # noqa: F811
    """The ResourceClaimTemplates of a namespace, by name."""
    listed = gate.api.request("GET", f"{GROUP}/namespaces/{space}/resourceclaimtemplates")["items"]
    return {each["metadata"]["name"]: each for each in listed}


def test_a_domain_gets_its_template_and_a_pod_its_channel(
    gate: Gate,  # noqa: F811
    controller: Running,
) -> None:
    """The template has a configuration that the policy lets no user write."""
    space = gate.governed_namespace("channels")
    both = (
        domain("rack", "rack-channel"),
        pod("worker", {"resourceClaimTemplateName": "rack-channel"}),
    )
    done = apply(gate, *both, space=space)
    assert done.returncode == 0, done.stderr
    made = wait_for(
        lambda: templates(gate, space).get("rack-channel"), f"see {controller.log_file}"
    )
    assert made["metadata"]["labels"]["resource.nvidia.com/computeDomain"]
    (claimed,) = claims_of(gate, space, "worker")
    assert claimed["spec"]["devices"]["config"] == made["spec"]["spec"]["devices"]["config"]

    copied = template("copied", made["spec"]["spec"])
    assert "devices.configKinds" in apply(gate, copied, space=space).stderr
    (review,) = (
        each
        for each in gate.recorder.recordings()
        if each.stage == "validate"
        and each.request["userInfo"]["username"] == DRIVER_CONTROLLER
        and each.request["kind"]["kind"] == "ResourceClaimTemplate"
        and each.request["operation"] == "CREATE"
        and each.request["namespace"] == space
    )
    assert review.response["allowed"]

    gate.kubectl("delete", "pod/worker", f"--namespace={space}", "--force")
    gate.kubectl("delete", "computedomain/rack", f"--namespace={space}", "--wait=false")
    wait_for(lambda: not templates(gate, space), f"see {controller.log_file}")
    path = f"{DOMAINS}/namespaces/{space}/computedomains/rack"
    wait_for(lambda: gate.api.find(path) is None, f"see {controller.log_file}")


def test_a_domain_that_the_controller_cannot_serve_is_refused(
    gate: Gate,  # noqa: F811
    controller: Running,
) -> None:
    nothing = {**domain("none", "x"), "spec": None}
    del nothing["spec"]
    assert "spec.channel" in apply(gate, nothing).stderr
    assert "resourceClaimTemplate.name" in apply(gate, domain("bad", "Not A Name")).stderr
    assert controller.process.poll() is None
