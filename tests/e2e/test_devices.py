"""Claims, device classes and ComputeDomains on a real API server, with what Kubernetes makes of them.

The claim controller and the scheduler are those of Kubernetes. Nobody plays kubelet: a device is an
entry of a ResourceSlice.
"""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.running import podgate
from tests.e2e.api import Api, Json, StatusError
from tests.e2e.conftest import CRDS, bed_or_skip
from tests.e2e.gate import Done, Gate, wait_for
from tests.e2e.operators.nodes import SCHEDULER
from tests.e2e.operators.operator import Running
from tests.e2e.recorder import Recorder
from tests.e2e.served import Certificates, serving
from tests.e2e.testbed import programs, upstream
from tests.e2e.testbed.cluster import Cluster
from webhook.evaluation.device_settings import DRIVER_CONTROLLER

pytestmark = pytest.mark.e2e

VERSIONS = ("v1", "v1beta2", "v1beta1")
OLDER = ",".join(f"resource.k8s.io/{each}=true" for each in VERSIONS[1:])
GROUP = "/apis/resource.k8s.io/v1"
CLAIM_CONTROLLER = "system:serviceaccount:kube-system:resource-claim-controller"
GPU, OWN_CLASS, PASSTHROUGH = "gpu.nvidia.com", "a100.example.com", "vfio.gpu.nvidia.com"
SPACE = "devices"
POLICY = """
apiVersion: podgate.dev/v1alpha1
kind: ClusterWorkloadPolicy
metadata: {name: devices}
spec:
  rules:
    compute: {gpuDevicesRequest: {max: 4}}
    devices:
      types: {options: [{value: gpu}, {value: channel}]}
      configKinds: {options: [{value: GpuConfig}]}
  defaults:
    devices: {sharing: {strategy: TimeSlicing}}
"""


def device_class(name: str, more: str = "", **spec: Any) -> Json:
    """A class of NVIDIA's driver."""
    selectors = [{"cel": {"expression": f"device.driver == '{GPU}'{more}"}}]
    return {"metadata": {"name": name}, "spec": {"selectors": selectors, **spec}}


CLASSES = (
    device_class(GPU, extendedResourceName="nvidia.com/gpu"),
    device_class(
        OWN_CLASS,
        f" && device.attributes['{GPU}'].type == 'gpu'",
        extendedResourceName="example.com/a100",
    ),
    device_class(PASSTHROUGH),
    device_class("compute-domain-default-channel.nvidia.com"),
)


def spec_of(device_class: str = GPU, count: int = 1, *, version: str = "v1", **more: Any) -> Json:
    """A DeviceClaim spec of one request, as a version of the API has it."""
    body = {"deviceClassName": device_class, "count": count}
    request = body if version == "v1beta1" else {"exactly": body}
    return {"devices": {"requests": [{"name": "gpu", **request}], **more}}


def sharing(interval: str | None) -> list[Json]:
    """A config of NVIDIA's driver, without an interval if it is None."""
    slices = {} if interval is None else {"interval": interval}
    parameters = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "GpuConfig",
        "sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": slices},
    }
    return [{"requests": ["gpu"], "opaque": {"driver": GPU, "parameters": parameters}}]


def claim(name: str, spec: Json, version: str = "v1", **metadata: Any) -> Json:
    """A ResourceClaim."""
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def template(name: str, spec: Json) -> Json:
    """A ResourceClaimTemplate."""
    return {**claim(name, {"spec": spec}), "kind": "ResourceClaimTemplate"}


def domain(name: str, made: str) -> Json:
    """A ComputeDomain whose controller makes a template `made`."""
    channel = {"resourceClaimTemplate": {"name": made}, "allocationMode": "Single"}
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": name},
        "spec": {"numNodes": 0, "channel": channel},
    }


def pod_of(form: Json) -> Json:
    """The parts of a pod spec for a claim, a template, or an amount of an extended resource."""
    container: Json = {"name": "main", "image": "registry.example.com/base/python:3.12"}
    if "resources" in form:
        return {"containers": [{**container, **form}]}
    container["resources"] = {"claims": [{"name": "devices"}]}
    return {"containers": [container], "resourceClaims": [{"name": "devices", **form}]}


def pod(name: str, form: Json) -> Json:
    """A Pod."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", **pod_of(form)},
    }


def limits(resource: str, count: int) -> Json:
    """An amount of an extended resource."""
    return {"resources": {"limits": {resource: str(count)}}}


def resources(kind: str) -> tuple[Json, list[Json]]:
    """A workload of a kind, and its pod specs."""
    folder = Path(__file__).parent / "manifests"
    found: Json = yaml.safe_load((folder / f"{kind.lower()}.yaml").read_text("utf-8"))
    spec = found["spec"]
    if kind == "Deployment":
        return found, [spec["template"]["spec"]]
    if kind == "JobSet":
        jobs = [each["template"]["spec"] for each in spec["replicatedJobs"]]
        return found, [each["template"]["spec"] for each in jobs]
    groups = [spec["headGroupSpec"], *spec["workerGroupSpecs"]]
    return found, [each["template"]["spec"] for each in groups]


def workload(kind: str, name: str, form: Json) -> Json:
    """A workload whose last pods get devices in a form, and no others."""
    found, specs = resources(kind)
    found["metadata"]["name"] = name
    for each in specs:
        for container in each["containers"]:
            container.pop("resources", None)
    specs[-1].update(pod_of(form))
    return found


def apply(gate: Gate, *objects: Json, space: str = SPACE, dry: bool = False) -> Done:
    """Apply objects with kubectl in one go, as a file of several documents."""
    asked = (
        "apply",
        f"--namespace={space}",
        "--filename=-",
        *(["--dry-run=server"] if dry else ()),
    )
    return gate.kubectl(*asked, input=yaml.safe_dump_all(objects), check=False)


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[Gate]:
    """A cluster that serves all versions of claims, with the scheduler, and podgate that watches it."""
    folder = tmp_path_factory.mktemp("devices")
    policies = folder / "given"
    policies.mkdir()
    (policies / "devices.yaml").write_text(POLICY, "utf-8")
    users = {SCHEDULER: (), DRIVER_CONTROLLER: ("system:masters",)}
    with contextlib.ExitStack() as stack:
        cluster = Cluster(users=users, api_server_flags=[f"--runtime-config={OLDER}"])
        with bed_or_skip():
            scheduler = programs.find("kube-scheduler")["kube-scheduler"]
            crds = [*upstream.crds("dra-driver")]
            for project in ("kuberay", "jobset"):
                crds += [upstream.crd(project, each) for each in CRDS[project]]
            stack.enter_context(cluster)
        cluster.apply_crds(crds)
        api = stack.enter_context(contextlib.closing(Api(cluster)))
        for each in CLASSES:
            api.request("POST", f"{GROUP}/deviceclasses", each)
        join(api)
        add_odd_claims(api)
        flags = (f"--kubeconfig={cluster.kubeconfig(SCHEDULER)}", "--leader-elect=false")
        running = Running.start("kube-scheduler", [scheduler, *flags, "--secure-port=0"], folder)
        stack.callback(running.stop)
        settings = {"PODGATE_CLUSTER": "true", "PODGATE_KUBECONFIG": str(cluster.kubeconfig())}
        served = stack.enter_context(serving(folder / "podgate", policies, certificates, settings))
        recorder = Recorder(
            folder / "reviews.jsonl",
            certificates.certificate,
            certificates.key,
            certificates.ca,
            served.url,
        )
        stack.enter_context(recorder.running())
        gate = Gate(cluster, api, served, recorder)
        gate.governed_namespace(SPACE)
        gate.register(recorder.url)
        wait_until_refused(gate, SPACE)
        yield gate


def join(api: Api) -> None:
    """A node with eight GPUs joins."""
    room = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    status = {"capacity": room, "allocatable": room}
    api.request("POST", "/api/v1/nodes", {"metadata": {"name": "node"}, "status": status})
    content = "application/merge-patch+json"
    api.request("PATCH", "/api/v1/nodes/node", {"spec": {"taints": []}}, content)
    devices = [{"name": f"gpu-{number}"} for number in range(8)]
    pool = {"name": "node", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": GPU, "nodeName": "node", "pool": pool, "devices": devices}
    api.request("POST", f"{GROUP}/resourceslices", {"metadata": {"name": "node"}, "spec": spec})


def add_odd_claims(api: Api) -> None:
    """Claims that the API server keeps, with parameters that most readers of JSON refuse."""
    for number, value in enumerate((b'"\xff"', rb'"\ud800"', b"[" * 2000 + b"]" * 2000)):
        odd = claim(f"odd-{number}", spec_of(config=sharing("odd")))
        body = json.dumps(odd).encode().replace(b'"odd"', value)
        path = f"{GROUP}/namespaces/default/resourceclaims"
        headers = {**api.headers, "Content-Type": "application/json"}
        api.connection.request("POST", path, body, headers)
        answer = api.connection.getresponse()
        assert answer.status == 201, answer.read()
        answer.read()


@pytest.fixture(scope="module")
def forms(gate: Gate) -> str:
    """A governed namespace, with claims and templates that are older than the rules."""
    space = gate.plain_namespace("forms")
    made = [
        claim("large", spec_of(count=8)),
        claim("small", spec_of(count=2)),
        template("large", spec_of(count=8)),
        template("small", spec_of(count=2)),
        template("own-class", spec_of(OWN_CLASS, 8)),
        template("passthrough", spec_of(PASSTHROUGH)),
        domain("rack", "rack-channel"),
    ]
    for name in ("own-class", "rack-channel"):
        old = workload("Deployment", f"old-{name}", {"resourceClaimTemplateName": name})
        old["spec"]["replicas"] = 0
        made.append(old)
    done = apply(gate, *made, space=space)
    assert done.returncode == 0, done.stderr
    gate.kubectl("label", "namespace", space, "podgate.dev/governed=true")
    wait_until_refused(gate, space)
    known = [workload("Deployment", name, form) for name, form in ALLOWED.items()]
    wait_for(
        lambda: not apply(gate, *known, space=space, dry=True).returncode,
        "podgate does not know the claims",
    )
    return space


def wait_until_refused(gate: Gate, space: str) -> None:
    """The API server takes a moment to call a new webhook."""
    large = claim("probe", spec_of(count=8))
    wait_for(lambda: apply(gate, large, space=space, dry=True).returncode, "podgate is not asked")


def stored(gate: Gate, name: str, space: str = SPACE) -> Json:
    """A ResourceClaim as it is stored."""
    return gate.api.request("GET", f"{GROUP}/namespaces/{space}/resourceclaims/{name}")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_claim_is_evaluated_in_every_version(gate: Gate, version: str) -> None:
    bad = claim(f"bad-{version}", spec_of(version=version, config=sharing("Forever")), version)
    told = apply(gate, bad).stderr
    path = "spec.devices.config[0].opaque.parameters.sharing.timeSlicingConfig.interval"
    assert f"devices.config at {path}: " in told
    assert "Forever" in told
    told = apply(
        gate, claim(f"bad-{version}", spec_of(PASSTHROUGH, version=version), version)
    ).stderr
    option = "requests[0]" if version == "v1beta1" else "requests[0].exactly"
    assert f"devices.types at spec.devices.{option}.deviceClassName: " in told
    good = claim(f"good-{version}", spec_of(version=version, config=sharing(None)), version)
    done = apply(gate, good)
    assert done.returncode == 0, done.stderr
    (config,) = stored(gate, f"good-{version}")["spec"]["devices"]["config"]
    assert config == sharing("Default")[0]


ALLOWED: dict[str, Json] = {
    "claim": {"resourceClaimName": "small"},
    "template": {"resourceClaimTemplateName": "small"},
    "extended": limits("nvidia.com/gpu", 2),
    "own-extended": limits("example.com/a100", 2),
    # Nobody has made this template yet.
    "domain": {"resourceClaimTemplateName": "rack-channel"},
}
REFUSED: dict[str, tuple[Json, str]] = {
    "large-claim": ({"resourceClaimName": "large"}, "gpuDevicesRequest"),
    "large-template": ({"resourceClaimTemplateName": "large"}, "gpuDevicesRequest"),
    "own-class": ({"resourceClaimTemplateName": "own-class"}, "gpuDevicesRequest"),
    "large-extended": (limits("nvidia.com/gpu", 8), "gpuDevicesRequest"),
    "large-own-extended": (limits("example.com/a100", 8), "gpuDevicesRequest"),
    "large-implicit": (
        limits(f"deviceclass.resource.kubernetes.io/{OWN_CLASS}", 8),
        "gpuDevicesRequest",
    ),
    "passthrough": ({"resourceClaimTemplateName": "passthrough"}, "devices.types"),
    "passthrough-extended": (
        limits(f"deviceclass.resource.kubernetes.io/{PASSTHROUGH}", 1),
        "devices.types",
    ),
    "nobody": ({"resourceClaimTemplateName": "nobody-has-it"}, "nobody-has-it"),
}


@pytest.mark.parametrize("kind", ["Deployment", "RayCluster", "JobSet"])
def test_a_workload_may_have_the_devices_of_its_policies_in_every_form(
    gate: Gate, forms: str, kind: str
) -> None:
    made = [workload(kind, name, form) for name, form in ALLOWED.items()]
    made += [workload(kind, name, form) for name, (form, _) in REFUSED.items()]
    done = apply(gate, *made, space=forms, dry=True)
    for name in ALLOWED:
        assert f"/{name} created" in done.stdout, done.stderr
    # kubectl does not name the objects, but goes through them in their order.
    told = done.stderr.split("Error from server (Forbidden)")[1:]
    assert len(told) == len(REFUSED), done.stderr
    for text, (name, (_, reason)) in zip(told, REFUSED.items(), strict=True):
        assert reason in text, f"{name}: {text}"


def claims_of(gate: Gate, space: str, owner: str) -> list[Json]:
    """The ResourceClaims that were made for a Pod, as soon as there are any."""

    def found() -> list[Json]:
        listed = gate.api.request("GET", f"{GROUP}/namespaces/{space}/resourceclaims")["items"]
        owners = [(each["metadata"].get("ownerReferences") or [{}])[0] for each in listed]
        return [
            each for each, owned in zip(listed, owners, strict=True) if owned.get("name") == owner
        ]

    return wait_for(found, f"nobody made a claim for Pod {owner}")


def test_claims_that_kubernetes_makes_for_a_pod_are_left_alone(gate: Gate, forms: str) -> None:
    """A claim of a user gets the policy's default, and one that imitates theirs is judged."""
    user = claim("of-user", spec_of())
    done = apply(gate, user, space=forms)
    assert done.returncode == 0, done.stderr
    (config,) = stored(gate, "of-user", forms)["spec"]["devices"]["config"]
    assert config["opaque"]["parameters"]["sharing"]["strategy"] == "TimeSlicing"
    asked = {"of-template": ALLOWED["template"], "of-resource": ALLOWED["extended"]}
    done = apply(gate, *(pod(name, form) for name, form in asked.items()), space=forms)
    assert done.returncode == 0, done.stderr
    senders = {"of-template": CLAIM_CONTROLLER, "of-resource": SCHEDULER}
    for name, sender in senders.items():
        (made,) = claims_of(gate, forms, name)
        assert "config" not in made["spec"]["devices"]
        (review,) = (
            each
            for each in gate.recorder.recordings()
            if each.stage == "validate"
            and each.request["kind"]["kind"] == "ResourceClaim"
            and each.request["userInfo"]["username"] == sender
            and each.request["namespace"] == forms
        )
        assert review.response["allowed"]
        metadata = {key: made["metadata"][key] for key in ("annotations", "ownerReferences")}
        forged = claim(f"{name}-forged", copy.deepcopy(made["spec"]), **metadata)
        (request,) = forged["spec"]["devices"]["requests"]
        request["exactly"]["count"] = 8
        assert "gpuDevicesRequest" in apply(gate, forged, space=forms).stderr
    for name in asked:
        wait_for(
            lambda name=name: gate.stored("Pod", forms, name)["spec"].get("nodeName"),  # type: ignore[misc]
            f"Pod {name} is not scheduled",
        )


def test_audit_knows_classes_and_the_templates_of_domains(gate: Gate, forms: str) -> None:
    config = ("--kubeconfig", str(gate.cluster.kubeconfig()), "-n", forms)
    told = podgate("audit", *config, "--policies", str(gate.podgate.policies)).stdout
    refused = told.partition("Deployment forms/old-own-class\n  refused: ")[2].partition("\n")[0]
    assert "compute.gpuDevicesRequest" in refused
    assert "8 is more than the maximum 4" in refused
    assert "old-rack-channel" not in told
    assert "ResourceClaimTemplate forms/passthrough\n  refused: devices.types" in told


def test_a_pod_waits_for_the_template_of_its_domain(gate: Gate) -> None:
    """One file has both; the driver's controller makes the template some time later."""
    form = {"resourceClaimTemplateName": "late-channel"}
    both = domain("late", "late-channel"), pod("early", form)
    wait_for(lambda: not apply(gate, *both).returncode, "the template is unknown")
    parameters = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomainChannelConfig",
        "domainID": "0f0e1c5e-6a53-4a4a-9d4e-4e1f5c1b7a11",
        "allocationMode": "Single",
    }
    opaque = {"driver": "compute-domain.nvidia.com", "parameters": parameters}
    made = template(
        "late-channel",
        spec_of(
            "compute-domain-default-channel.nvidia.com",
            config=[{"requests": ["gpu"], "opaque": opaque}],
        ),
    )
    made["metadata"]["labels"] = {"resource.nvidia.com/computeDomain": "late"}
    told = apply(gate, made).stderr
    assert "devices.configKinds" in told
    assert "ComputeDomainChannelConfig" in told
    with contextlib.closing(Api(gate.cluster, DRIVER_CONTROLLER)) as driver:
        driver.request("POST", f"{GROUP}/namespaces/{SPACE}/resourceclaimtemplates", made)
    (claimed,) = claims_of(gate, SPACE, "early")
    assert claimed["spec"] == {**made["spec"]["spec"], **claimed["spec"]}


def test_classes_domains_and_cliques_are_evaluated_too(gate: Gate) -> None:
    configs = [{"opaque": each["opaque"]} for each in sharing("Forever")]
    bad = device_class("bad.example.com", config=configs)
    told = apply(gate, {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", **bad}).stderr
    assert '"classes.podgate.dev" denied the request' in told
    assert "devices.config at spec.config[0].opaque.parameters.sharing" in told
    told = apply(gate, domain("bad", "Not A Name")).stderr
    assert "devices.computeDomain at spec.channel.resourceClaimTemplate.name: " in told
    large = domain("large", "large-channel")
    large["spec"]["numNodes"] = 400
    done = apply(gate, large)
    assert done.returncode == 0, done.stderr
    assert "devices.computeDomain" in done.stderr
    assert "400" in done.stderr
    same = domain("same", "large-channel")
    wait_for(
        lambda: "large-channel" in apply(gate, same, dry=True).stderr,
        "the other domain is unknown",
    )
    clique = {**domain("forged", "none"), "kind": "ComputeDomainClique"}
    clique.pop("spec")
    told = apply(gate, clique).stderr
    assert "denied the request" in told
    assert "ComputeDomainClique" in told


def test_a_claim_can_go_after_its_feature_gate_is_off(gate: Gate) -> None:
    """This comes last: podgate starts again with another setting."""
    kept = claim("kept", spec_of(config=sharing("Short")), finalizers=["example.com/hold"])
    done = apply(gate, kept)
    assert done.returncode == 0, done.stderr
    gate.podgate.stop()
    gate.podgate.settings = {
        **gate.podgate.settings,
        "PODGATE_DRA_FEATURE_GATES": "TimeSlicingSettings=false",
    }
    gate.podgate.start_again()
    told = apply(gate, claim("new", spec_of(config=sharing("Short")))).stderr
    assert "TimeSlicingSettings" in told
    name = ("resourceclaim.resource.k8s.io/kept", f"--namespace={SPACE}")
    gate.kubectl("label", *name, "team=blue")
    gate.kubectl("delete", *name, "--wait=false")
    assert stored(gate, "kept")["metadata"]["deletionTimestamp"]
    patch = [{"op": "remove", "path": "/metadata/finalizers"}]
    gate.kubectl("patch", *name, "--type=json", f"--patch={json.dumps(patch)}")
    with pytest.raises(StatusError, match="not found"):
        stored(gate, "kept")
