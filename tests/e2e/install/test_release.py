"""A release with nothing but the chart's rights: it works, and every right is used."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.definitions import base
from tests.e2e.api import Api, Json, StatusError
from tests.e2e.conftest import bed_or_skip
from tests.e2e.install.helm import CHART, NAMESPACE, ROOT
from tests.e2e.install.release import Release
from tests.e2e.install.rights import AUDIT_POLICY, Right, granted, used
from tests.e2e.test_audit import report_crd
from tests.e2e.test_living_cluster import POLICIES, A, B, images, put
from tests.e2e.testbed import programs, upstream
from tests.e2e.testbed.cluster import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.core]

OPERATOR = "system:serviceaccount:kserve:kserve-controller-manager"
VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/podgate"
SPACE = "team"
MANIFESTS = ROOT / "tests" / "e2e" / "manifests"
JUSTIFIED = {
    # Clusters have one of the two APIs of reports; here it is the other.
    *(
        Right(verb, "openreports.io", "reports", name="podgate")
        for verb in ("get", "create", "patch")
    ),
    # One namespace is read only where the watch does not know it yet.
    Right("get", "", "namespaces"),
    # Owners are read only where what was made of them violates a policy; any kind may be one.
    Right("get", "apps", "controllerrevisions"),
    *(
        Right("get", group, plural)
        for group, plurals in yaml.safe_load(
            (CHART / "files" / "governed.yaml").read_text()
        ).items()
        for plural in plurals
    ),
}


@pytest.fixture(scope="module")
def audit_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit") / "audit.log"


@pytest.fixture(scope="module")
def own(audit_log: Path) -> Iterator[Cluster]:
    """A cluster of its own, which writes down what accounts do and reaches Services by endpoints."""
    policy = audit_log.with_name("policy.yaml")
    policy.write_text(AUDIT_POLICY, "utf-8")
    flags = (
        f"--audit-policy-file={policy}",
        f"--audit-log-path={audit_log}",
        "--enable-aggregator-routing=true",
    )
    cluster = Cluster(users={OPERATOR: ("system:masters",)}, api_server_flags=flags)
    with bed_or_skip():
        programs.find("helm")
        # They are watched where they exist.
        domains = upstream.crd("dra-driver", "computedomains.resource.nvidia.com")
        cluster.start()
        cluster.apply_crds([domains])
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def server(own: Cluster) -> Iterator[Api]:
    with contextlib.closing(Api(own)) as found:
        yield found


@pytest.fixture(scope="module")
def release(
    own: Cluster, server: Api, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Release]:
    """Installed with helm, two controllers and three webhooks at work."""
    folder = tmp_path_factory.mktemp("release")
    values = {"scan": {"everySeconds": 3}, "settings": {"createClaims": True}}
    made = Release(own, server, folder, values)
    try:
        made.install()
        made.start_controller("controller-1")
        for number in (1, 2, 3):
            made.start_webhook(number)
        made.wait_ready(1, 2, 3)
        yield made
    finally:
        made.close()


def failure_policy(api: Api) -> str:
    found = api.find(f"{VALIDATING}/podgate") or {}
    return str((found.get("webhooks") or [{}])[0].get("failurePolicy"))


def condition(api: Api, path: str, kind: str) -> tuple[str, str]:
    status = api.request("GET", path).get("status") or {}
    for each in status.get("conditions") or ():
        if each["type"] == kind:
            return each["status"], each["reason"]
    return "", ""


def pod(image: str) -> Json:
    spec = {"containers": [{"name": "m", "image": image}], "serviceAccountName": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"}, "spec": spec}


def refused(api: Api, image: str) -> bool:
    """Whether a Pod is refused in the governed namespace by podgate."""
    try:
        api.request("POST", f"/api/v1/namespaces/{SPACE}/pods?dryRun=All", pod(image))
    except StatusError as error:
        if "podgate refused" not in str(error):
            raise
        return True
    return False


def test_it_fails_closed_once_it_has_proven_itself_through_its_service(
    release: Release, server: Api, own: Cluster
) -> None:
    release.soon(lambda: failure_policy(server) == "Fail", "the webhook is not proven")
    entry = server.request("GET", f"{VALIDATING}/podgate")["webhooks"][0]
    assert entry["clientConfig"]["service"]["name"] == "podgate"
    labels = {"podgate.dev/governed": "true", "tier": "gold"}
    server.request("POST", "/api/v1/namespaces", {"metadata": {"name": SPACE, "labels": labels}})
    own.wait_namespace_ready(SPACE)


def test_a_policy_is_in_force_in_all_replicas_and_changes_soon(
    release: Release, server: Api
) -> None:
    body = images(A)
    body["spec"] |= {"namespaceSelector": {"matchLabels": {"tier": "gold"}}}
    place = f"{POLICIES}/images"
    put(server, body)
    release.soon(lambda: condition(server, place, "Ready") == ("True", "InForce"), "not ready")
    assert server.request("GET", place)["status"]["workers"] == 3
    assert all(refused(server, B) for _ in range(12))
    assert not refused(server, A)

    body["spec"]["rules"] = {"image": {"options": [B]}}
    put(server, body)
    begun = time.monotonic()
    release.soon(
        lambda: server.request("GET", place)["status"]["generationInForce"] == 2, "not changed"
    )
    print(f"changed in all replicas, by status, after {time.monotonic() - begun:.1f} s")
    assert all(refused(server, A) for _ in range(12))
    assert not refused(server, B)

    body["spec"]["rules"] = {"image": {"options": "all"}}
    with pytest.raises(StatusError):
        put(server, body)  # our webhook of documents, or the definition, says so at once
    assert not refused(server, B)


def test_a_controllers_child_is_told_to_its_owner(
    release: Release, server: Api, own: Cluster
) -> None:
    child = yaml.safe_load((MANIFESTS / "deployment.yaml").read_text("utf-8"))
    owner = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "name": "llama",
        "uid": "0d9a1d1c-0000-4000-8000-000000000001",
        "controller": True,
    }
    child["metadata"].update(name="llama-predictor", ownerReferences=[owner])
    with contextlib.closing(Api(own, OPERATOR)) as operator, pytest.raises(StatusError):
        operator.create(child, SPACE)
    release.soon(
        lambda: [x for x in server.items("Event", SPACE) if x["reason"] == "PolicyRefused"],
        "no event",
    )


def test_every_kind_of_document_has_a_status(release: Release, server: Api, own: Cluster) -> None:
    jobset = (ROOT / "policies/workloads/jobset.jobset.x-k8s.io.yaml").read_text("utf-8")
    asset = (ROOT / "policies/assets/datasets.yaml").read_text("utf-8")
    karta = {**base(), "apiVersion": "run.ai/v1alpha1", "kind": "Karta"}
    karta["metadata"] = {"name": "other"}
    mine = {**images(B), "kind": "WorkloadPolicy"}
    mine["metadata"] = {"name": "mine", "namespace": SPACE}
    exception = {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": "PolicyException",
        "metadata": {"name": "one", "namespace": "podgate-exceptions"},
        "spec": {
            "reason": "a test",
            "until": "2099-01-01T00:00:00Z",
            "objects": [{"group": "", "kind": "Pod", "namespace": SPACE, "name": "one"}],
            "rules": [{"field": "image", "rule": "options", "value": A}],
        },
    }
    written = yaml.safe_dump_all([karta, mine, exception])
    apply = ("apply", "--server-side", "-f", "-")
    for text in (jobset, asset, written):
        own.kubectl(*apply, input=text)
    plurals = {
        "resourceinterfaces.optimization.nvidia.com": "",
        "kartas.run.ai": "",
        "workloadprofiles.podgate.dev": "",
        "workloadassets.podgate.dev": "",
        "workloadpolicies.podgate.dev": SPACE,
        "policyexceptions.podgate.dev": "podgate-exceptions",
    }
    for plural, space in plurals.items():
        where = ("--namespace", space) if space else ()
        told = ("get", plural, *where, "-o=jsonpath={.items[*].status.conditions[*].type}")
        release.soon(
            lambda told=told: "Ready" in own.kubectl(*told).stdout, f"{plural} has no status"
        )


def test_a_claim_that_a_policy_mounts_is_created(release: Release, server: Api) -> None:
    """With the rights of the chart: reading, watching and creating claims are among those used."""
    item = {"claimName": "home", "path": "/home", "claimInfo": {"size": "1Gi"}}
    body = images(B) | {"metadata": {"name": "home"}}
    body["spec"] = {
        "namespaceSelector": {"matchLabels": {"tier": "gold"}},
        "defaults": {"storage": {"pvc": {"instances": [item]}}},
    }
    put(server, body)
    place = f"{POLICIES}/home"
    release.soon(lambda: condition(server, place, "Ready") == ("True", "InForce"), "not ready")
    path = f"/api/v1/namespaces/{SPACE}/persistentvolumeclaims/home"
    assert server.request("GET", path)["metadata"]["labels"]["podgate.dev/created-claim"] == "true"
    server.request("DELETE", place)


def test_a_report_is_written_of_what_is_there(release: Release, server: Api, own: Cluster) -> None:
    own.apply_crds([report_crd()])
    path = f"/apis/wgpolicyk8s.io/v1alpha2/namespaces/{SPACE}/policyreports/podgate"
    release.soon(lambda: server.find(path), "no report")
    server.request("POST", f"/api/v1/namespaces/{SPACE}/pods", pod(B))
    release.soon(lambda: (server.find(path) or {})["summary"]["pass"], "the report is old")


def test_a_certificate_that_somebody_breaks_is_made_anew(release: Release, server: Api) -> None:
    path = f"/api/v1/namespaces/{NAMESPACE}/secrets/podgate-tls"
    before = server.request("GET", path)["data"]
    merge = "application/merge-patch+json"
    server.request("PATCH", path, {"data": {"tls.crt": "", "tls.key": ""}}, merge)
    release.soon(lambda: server.request("GET", path)["data"]["tls.crt"], "no new certificate")
    assert server.request("GET", path)["data"]["tls.crt"] != before["tls.crt"]
    time.sleep(5)  # longer than it takes to mount it, and a webhook to look at its files again
    assert all(refused(server, A) for _ in range(6))


def test_another_controller_leads_when_one_ends(release: Release, server: Api) -> None:
    release.start_controller("controller-2")
    release.end("controller-1")
    release.soon(
        lambda: server.request("GET", LEASE)["spec"]["holderIdentity"] == "controller-2",
        "no leader",
    )
    server.request(
        "PATCH", f"{VALIDATING}/podgate", {"webhooks": []}, "application/merge-patch+json"
    )
    release.soon(lambda: failure_policy(server) == "Fail", "drift is not mended")


@pytest.mark.parametrize("account", ["podgate-admission", "podgate-controller"])
def test_an_account_does_what_it_may_and_may_what_it_does(
    account: str, release: Release, server: Api, audit_log: Path
) -> None:
    may = granted(server, NAMESPACE, account)
    did, forbidden = used(audit_log, account)
    assert not forbidden
    strange = {each for each in did if not any(right.covers(each) for right in may)}
    # What every account may: look at which APIs there are.
    assert not strange, sorted(map(str, strange))
    idle = {right for right in may if not any(right.covers(each) for each in did)}
    assert sorted(map(str, idle - JUSTIFIED)) == []
    print(
        f"{account}: {len(may)} rights, {len(did)} used in {len(did)} ways, {len(idle)} justified"
    )


def test_the_switch_is_a_value_of_the_chart(release: Release, server: Api) -> None:
    for opened, wanted in ((True, "Ignore"), (False, "Fail")):
        release.values["hooks"] = {"failOpen": opened}
        release.helm("upgrade", "podgate", str(CHART))
        (running,) = [each for each in release.running if each.startswith("controller")]
        release.end(running)
        release.start_controller("controller-open" if opened else "controller-closed")
        release.soon(lambda wanted=wanted: failure_policy(server) == wanted, f"not {wanted}")


def test_a_removal_leaves_no_hook_behind_while_a_controller_still_runs(
    release: Release, server: Api, audit_log: Path
) -> None:
    told = release.run_job("podgate-removal")
    assert "lease.coordination.k8s.io/podgate is held for 60 s" in told
    time.sleep(12)  # longer than a controller takes to look at everything again
    assert release.running["controller-closed"].poll() is None
    for path in (f"{VALIDATING}/podgate", f"{VALIDATING}/podgate-documents", f"{MUTATING}/podgate"):
        assert server.find(path) is None, path
    assert not used(audit_log, "podgate-removal")[1]
    release.helm("uninstall", "podgate")
    release.stop()
    assert server.find("/api/v1/namespaces/podgate-exceptions") is not None
    assert server.find(f"{POLICIES}/images") is not None
    spaces = server.request("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments")
    assert spaces["items"] == []
