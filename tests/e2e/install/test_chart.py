"""The chart: its values, what it renders, and that kustomize says the same."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.core import TyperGroup as Group
from typer.main import get_command

from tests.e2e.conftest import bed_or_skip
from tests.e2e.install import kustomize
from tests.e2e.install.helm import (
    CHART,
    HOOK,
    HelmError,
    Json,
    helm,
    is_hook,
    key_of,
    rendered,
)
from tests.e2e.testbed import binaries, programs
from tests.e2e.testbed.cluster import Cluster
from webhook.cli.main import app
from webhook.service.settings import Settings

pytestmark = pytest.mark.e2e

LISTS = {"apiVersion": "podgate.dev/v1alpha1", "kind": "TrustedMutators"}
VALUES: dict[str, Json] = {
    "as shipped": {},
    "every namespace": {
        "governed": "all",
        "exempt": ["network-plugin"],
        "breakGlass": ["admins: on call"],
        "scan": {"everySeconds": 600},
    },
    "cert-manager": {"certificates": {"mode": "certManager"}},
    "an issuer of the platform": {
        "certificates": {
            "mode": "certManager",
            "certManager": {"issuerRef": {"kind": "ClusterIssuer", "name": "platform"}},
        }
    },
    "a Secret of the administrator": {
        "certificates": {"mode": "secret"},
        "admission": {"clientCA": {"configMap": "callers", "clientNames": ["kube-apiserver"]}},
    },
    "a private registry": {
        "image": {"registry": "registry.example.com/platform/", "digest": "sha256:" + "a" * 64},
        "imagePullSecrets": ["pull"],
        "priorityClass": {"create": True},
        "monitoring": {"serviceMonitor": True, "labels": {"release": "prometheus"}},
    },
    "on the nodes' network": {
        "admission": {"hostNetwork": True, "port": 10943, "tolerations": [{"operator": "Exists"}]},
        "networkPolicy": {"apiServerCIDRs": ["10.0.0.0/8"], "metricsFrom": [{"podSelector": {}}]},
    },
    "user ids of the platform": {"randomUserID": True, "networkPolicy": {"enabled": False}},
    "documents of the release": {
        "policies": {"own.yaml": "apiVersion: podgate.dev/v1alpha1\nkind: ClusterWorkloadPolicy\n"},
        "trustedMutators": json.dumps(LISTS),
        "injected": "containers: []",
        "trustedControllers": [
            {
                "users": ["system:serviceaccount:things:*"],
                "kinds": [{"group": "example.com", "kind": "Thing"}],
            }
        ],
        "exempt": ["things"],
        "settings": {
            "ruleCombination": "strictest",
            "gpuDevices": ["a/b", "c/d"],
            "createClaims": True,
        },
    },
    "traced": {
        "traces": {
            "endpoint": "http://otel-collector.observability:4318",
            "to": [{"namespaceSelector": {}}],
            "variables": {"OTEL_TRACES_SAMPLER": "always_on"},
        }
    },
    "without helpers": {
        "probe": {"enabled": False},
        "exceptions": {"create": False, "namespace": "elsewhere"},
        "crds": {"install": False},
        "hooks": {"failOpen": True, "timeoutSeconds": 3},
        "settings": {"ownerEvents": False, "bodyLimit": 7340032, "drain": 2.5},
    },
}
WRONG: dict[str, tuple[Json, str]] = {
    "a name that is none": ({"admision": {}}, "additional properties 'admision' not allowed"),
    "a setting that is none": (
        {"settings": {"ruleCombinatoin": "strictest"}},
        "at '/settings': additional properties 'ruleCombinatoin' not allowed",
    ),
    "a setting of the chart": (
        {"settings": {"listen": "0.0.0.0:1"}},
        "additional properties 'listen' not allowed",
    ),
    "a word that is none": (
        {"certificates": {"mode": "certmanager"}},
        "at '/certificates/mode': value must be one of 'managed', 'certManager', 'secret'",
    ),
    "a text for a number": ({"admission": {"replicas": "3"}}, "got string, want integer"),
    "no replica": ({"admission": {"replicas": 0}}, "minimum: got 0, want 1"),
    "a port for root": ({"admission": {"port": 443}}, "minimum: got 443, want 1,024"),
    "all that may be away": (
        {"admission": {"maxUnavailable": 5}},
        "admission.maxUnavailable is 5 of 3 admission.replicas: a drain could stop all of them",
    ),
    "more away than there are": (
        {"admission": {"replicas": 1, "maxUnavailable": 2}},
        "admission.maxUnavailable is more than the one of admission.replicas; write 1",
    ),
    "none that may be away": ({"admission": {"maxUnavailable": 0}}, "minimum: got 0, want 1"),
    "two ways to bound what is away": (
        {"admission": {"minAvailable": 2, "maxUnavailable": 1}},
        "at '/admission': additional properties 'minAvailable' not allowed",
    ),
    "one port for two": (
        {"admission": {"metricsPort": 9443}},
        "admission.port and admission.metricsPort are both 9443; write two ports",
    ),
    "a CA without names": (
        {"admission": {"clientCA": {"configMap": "kube-root-ca.crt"}}},
        "admission.clientCA.configMap needs admission.clientCA.clientNames",
    ),
    "names without a CA": (
        {"admission": {"clientCA": {"clientNames": ["kube-apiserver"]}}},
        "admission.clientCA.clientNames needs admission.clientCA.configMap",
    ),
    "two names in one": (
        {"admission": {"clientCA": {"configMap": "callers", "clientNames": ["a,b"]}}},
        "at '/admission/clientCA/clientNames/0': 'a,b' does not match pattern",
    ),
    "a deadline beyond the timeout": (
        {"settings": {"deadline": 2.8}},
        "settings.deadline is 2.8 of 3 hooks.timeoutSeconds",
    ),
    "a timeout below the deadline": (
        {"hooks": {"timeoutSeconds": 1}},
        "settings.deadline is 1 of 1 hooks.timeoutSeconds",
    ),
    "two priority classes": (
        {"priorityClass": {"create": True, "name": "mine"}},
        "priorityClass.create makes the class podgate, and priorityClass.name is mine",
    ),
    "a priority that is the system's": (
        {"priorityClass": {"create": True, "value": 2000000000}},
        "at '/priorityClass/value': maximum",
    ),
    "a probe where nobody asks": (
        {"exempt": ["podgate-probe"]},
        "probe.namespace podgate-probe is never governed",
    ),
    "a probe in the own namespace": (
        {"probe": {"namespace": "podgate-system"}},
        "probe.namespace podgate-system is never governed",
    ),
    "a probe among the exceptions": (
        {"probe": {"namespace": "podgate-exceptions"}},
        "probe.namespace and exceptions.namespace are both podgate-exceptions",
    ),
    "everybody in an emergency": (
        {"breakGlass": ["system:authenticated"]},
        "breakGlass has system:authenticated, of which everybody is a member",
    ),
    "a CA that is away before its certificates": (
        {"certificates": {"leafDays": 1, "overlapSeconds": 86400}},
        "certificates.overlapSeconds is not less than the 1 days of certificates.leafDays",
    ),
    "renewed before it begins": (
        {"certificates": {"mode": "certManager", "certManager": {"duration": "24h"}}},
        "certificates.certManager.renewBefore is not less than certificates.certManager.duration",
    ),
    "rules of no scan": (
        {"scan": {"extraRules": [{"apiGroups": ["a"]}]}},
        "scan.extraRules are for a scan, and scan.everySeconds is 0",
    ),
    "labels that are the Deployment's": (
        {"controller": {"podLabels": {"app.kubernetes.io/name": "x"}}},
        "controller.podLabels has app.kubernetes.io/name, by which the Deployment finds its Pods",
    ),
    "files with a CA that is exchanged": (
        {"hooks": {"static": True}},
        "hooks.static is set and certificates.mode is managed",
    ),
    "longer than the API server waits": ({"hooks": {"timeoutSeconds": 31}}, "want 30"),
    "a collector that is none": (
        {"traces": {"endpoint": "collector:4318"}},
        "at '/traces/endpoint': 'anyOf' failed",
    ),
    "a list for a map": ({"policies": ["a"]}, "at '/policies': got array, want object"),
    "a controller of no kind": (
        {"trustedControllers": [{"users": ["u"]}]},
        "missing property 'kinds'",
    ),
    "a document that is no YAML file": (
        {"policies": {"a.txt": ""}},
        "at '/policies': additional properties 'a.txt' not allowed",
    ),
}


@pytest.fixture(scope="module", autouse=True)
def bed() -> None:
    with bed_or_skip():
        programs.find("helm")
        binaries.find()


def containers(found: list[Json]) -> list[tuple[Json, Json]]:
    """Every pod spec with every container of it."""
    specs = [
        each["spec"]["template"]["spec"] for each in found if "template" in each.get("spec", {})
    ]
    return [(spec, one) for spec in specs for one in spec["containers"]]


def variables(container: Json) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container.get("env") or ()}


def test_helm_finds_no_fault() -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART))


@pytest.mark.parametrize("name", VALUES)
def test_every_pod_is_nobody_and_may_write_nothing(name: str) -> None:
    values = VALUES[name]
    found = containers(rendered(values))
    assert len(found) == (3 if name == "without helpers" else 4)
    for spec, one in found:
        security = one["securityContext"]
        assert security["readOnlyRootFilesystem"] is True
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert ("runAsUser" in spec["securityContext"]) is not bool(values.get("randomUserID"))
        assert one["resources"]["requests"]
        mounted = {each["name"] for each in one.get("volumeMounts") or ()}
        assert mounted == {each["name"] for each in spec.get("volumes") or ()}


@pytest.mark.parametrize("name", VALUES)
def test_the_program_takes_the_settings(name: str) -> None:
    for _, one in containers(rendered(VALUES[name])):
        settings = Settings.from_sources({}, variables(one))
        assert isinstance(settings, Settings), settings
        if name == "documents of the release" and variables(one):
            assert settings.gpu_devices == ("a/b", "c/d")
            assert settings.rule_combination == "strictest"
        if name == "without helpers" and variables(one):
            assert (settings.body_limit, settings.drain) == (7340032, 2.5)
            assert settings.owner_events is False
            assert settings.exceptions_namespace == "elsewhere"
        if name == "traced" and "--cluster" in one["args"]:
            assert settings.traces == "http://otel-collector.observability:4318"
            assert variables(one)["OTEL_TRACES_SAMPLER"] == "always_on"


@pytest.mark.parametrize("name", VALUES)
def test_the_program_takes_the_arguments(name: str) -> None:
    program = get_command(app)
    assert isinstance(program, Group)
    for _, one in containers(rendered(VALUES[name])):
        group, words = program, list(one["args"])
        while True:
            command = group.commands[words.pop(0)]
            if not isinstance(command, Group):
                break
            group = command
        given = command.make_context("podgate", words).params
        if name == "every namespace" and command.name == "control":
            assert (given["exempt"], given["break_glass"]) == (
                ["network-plugin"],
                ["admins: on call"],
            )
            assert (given["governed"], given["scan_every"]) == ("all", 600)


@pytest.mark.parametrize(
    "endpoint, port",
    [
        ("http://collector:4318", 4318),
        ("https://traces.example.com", 443),
        ("http://collector/v1/traces", 80),
        ("http://[fd00::1]:4318", 4318),
    ],
)
def test_spans_may_leave_for_the_collector_and_its_name_be_asked_for(
    endpoint: str, port: int
) -> None:
    found = {key_of(each): each for each in rendered({"traces": {"endpoint": endpoint}})}
    key = next(each for each in found if each[0] == "NetworkPolicy" and "admission" in str(each))
    ports = [each["port"] for rule in found[key]["spec"]["egress"] for each in rule["ports"]]
    assert ports == [443, 6443, port, 53, 53]


@pytest.mark.parametrize("name", WRONG)
def test_wrong_values_are_refused_with_their_place(name: str) -> None:
    values, told = WRONG[name]
    with pytest.raises(HelmError) as refused:
        rendered(values)
    assert told in str(refused.value)


def test_only_named_certificates_are_let_in_where_a_ca_is_given() -> None:
    for _, one in containers(rendered(VALUES["a Secret of the administrator"])):
        if one["args"][0] == "serve":
            assert "--client-ca=/etc/podgate/client-ca/ca.crt" in one["args"]
            assert "--client-ca-name=kube-apiserver" in one["args"]
            break
    else:
        pytest.fail("nothing serves")


def notes(values: Json, cluster: Cluster) -> str:
    flags = ("install", "podgate", str(CHART), "--namespace", "podgate-system", "--dry-run=client")
    environ = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig())}
    text = helm(*flags, "--values", "-", stdin=json.dumps(values), environ=environ)
    return text.rpartition("NOTES:")[2]


OPEN = "Clients that can reach the webhook's port can send it reviews"


@pytest.mark.parametrize(
    ("values", "told", "untold"),
    [
        ({}, (OPEN, "every Pod of the cluster", "or admission.clientCA"), ()),
        (
            {"networkPolicy": {"apiServerCIDRs": ["10.0.0.0/8"]}},
            (OPEN, "only those in networkPolicy.apiServerCIDRs"),
            ("admission.clientCA",),
        ),
        (
            {"networkPolicy": {"enabled": False}},
            (OPEN, "there is no NetworkPolicy", "Set admission.clientCA"),
            (),
        ),
        (VALUES["on the nodes' network"], (OPEN, "Pods on the nodes' network"), ()),
        (VALUES["a Secret of the administrator"], (), (OPEN,)),
    ],
)
def test_the_notes_say_what_is_open(
    values: Json, told: tuple[str, ...], untold: tuple[str, ...], bare: Cluster
) -> None:
    text = notes(values, bare)
    assert all(each in text for each in told), text
    assert not any(each in text for each in untold), text


def kinds(values: Json, kind: str, namespace: str = "podgate-system") -> dict[str, Json]:
    """The objects of one kind by name."""
    found = rendered(values, namespace=namespace)
    return {each["metadata"]["name"]: each for each in found if each["kind"] == kind}


@pytest.mark.parametrize(
    ("priority", "name", "quota"),
    [
        ({}, "system-cluster-critical", "1000"),
        ({"quota": 0}, "system-cluster-critical", None),
        ({"name": "system-node-critical", "quota": 7}, "system-node-critical", "7"),
        ({"name": "mine"}, "mine", None),
        ({"create": True}, "podgate", None),
        ({"name": ""}, None, None),
    ],
)
def test_pods_have_a_priority_and_the_quota_that_some_platforms_ask_for(
    priority: Json, name: str | None, quota: str | None
) -> None:
    values = {"priorityClass": priority}
    for each in kinds(values, "Deployment").values():
        assert each["spec"]["template"]["spec"].get("priorityClassName") == name
    # Jobs run before the quota is there, and before a class that the release makes.
    jobs = {name if name == "mine" else None}
    assert {
        each["spec"]["template"]["spec"].get("priorityClassName")
        for each in kinds(values, "Job").values()
    } == jobs
    found = kinds(values, "ResourceQuota").get("podgate-priority")
    assert (found["spec"]["hard"]["pods"] if found else None) == quota
    if found:
        (selected,) = found["spec"]["scopeSelector"]["matchExpressions"]
        assert (selected["scopeName"], selected["values"]) == ("PriorityClass", [name])


def test_kube_system_needs_no_quota() -> None:
    assert "podgate-priority" not in kinds({}, "ResourceQuota", "kube-system")


def test_a_drain_takes_some_pods_of_each_component_and_not_all() -> None:
    values = {"admission": {"replicas": 3, "maxUnavailable": 2}}
    found = kinds(values, "PodDisruptionBudget")
    assert {name: each["spec"]["maxUnavailable"] for name, each in found.items()} == {
        "podgate-admission": 2,
        "podgate-controller": 1,
    }
    for name, each in found.items():
        (deployment,) = (one for key, one in kinds(values, "Deployment").items() if key == name)
        assert each["spec"]["selector"] == deployment["spec"]["selector"]


def test_no_role_has_a_wildcard_or_reads_what_tenants_keep() -> None:
    values = {"scan": {"everySeconds": 600}, "settings": {"createClaims": True}}
    for body in rendered(values):
        for rule in body.get("rules") or ():
            words = {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
            assert not any("*" in each for each in words), key_of(body)
            if "secrets" in rule["resources"] and rule["verbs"] != ["create"]:
                assert rule["resourceNames"] == ["podgate-tls", "podgate-tls-ca"]
            assert not {"escalate", "bind", "impersonate", "delete", "deletecollection"} & (
                words if not is_hook(body) else set()
            )


@pytest.mark.parametrize("on", [None, False, True])
def test_rights_on_claims_are_given_only_with_the_setting(on: bool | None) -> None:
    values = {} if on is None else {"settings": {"createClaims": on}}
    found = [
        (key_of(body)[2], rule["verbs"])
        for body in rendered(values)
        for rule in body.get("rules") or ()
        if "persistentvolumeclaims" in rule["resources"]
    ]
    assert found == ([("podgate-claims", ["get", "list", "watch", "create"])] if on else [])
    pods = [
        one for _, one in containers(rendered(values)) if one["args"][0] in ("serve", "control")
    ]
    set_to = [variables(one).get("PODGATE_CREATE_CLAIMS") for one in pods]
    assert set_to == [None if on is None else str(on).lower()] * 2


def test_everything_stands_in_the_namespace_of_the_release() -> None:
    for body in rendered(namespace="elsewhere"):
        assert "podgate-system" not in json.dumps(body), key_of(body)


def test_what_runs_at_certain_times_brings_its_own_rights_and_leaves_none() -> None:
    hooks = [each for each in rendered() if is_hook(each)]
    times = {each["metadata"]["annotations"][HOOK] for each in hooks}
    assert times == {"pre-install,pre-upgrade", "pre-delete"}
    for each in hooks:
        policy = each["metadata"]["annotations"]["helm.sh/hook-delete-policy"]
        assert policy == "before-hook-creation,hook-succeeded"


def test_the_files_of_kustomize_are_up_to_date() -> None:
    for path, text in kustomize.files().items():
        assert path.read_text("utf-8") == text, f"{path}: run make kustomize"


def built(folder: Path) -> list[Json]:
    """What kustomize makes of a folder."""
    command = [str(binaries.find().kubectl), "kustomize", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.load_all(done.stdout, Loader=yaml.CSafeLoader))


@pytest.mark.parametrize("name", ["base", *kustomize.OVERLAYS])
def test_kustomize_makes_what_helm_makes(name: str) -> None:
    folder = kustomize.DEPLOY / ("base" if name == "base" else f"overlays/{name}")
    wanted = {key_of(each): each for each in kustomize.objects(kustomize.OVERLAYS.get(name))}
    found: dict[Any, Json] = {key_of(each): each for each in built(folder)}
    crds = {key for key in found if key[0] == "CustomResourceDefinition"}
    assert len(crds) == len(list((kustomize.DEPLOY / "crds").glob("*.*.yaml")))
    assert {key: each for key, each in found.items() if key not in crds} == wanted


@pytest.mark.parametrize("name", VALUES)
def test_a_real_api_server_takes_everything(name: str, bare: Cluster) -> None:
    """In dry runs; what has kinds of other projects needs them there."""
    others = ("cert-manager.io/", "monitoring.coreos.com/")
    served = [each for each in rendered(VALUES[name]) if not each["apiVersion"].startswith(others)]
    spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "podgate-system"}}]
    spaces += [each for each in served if each["kind"] == "Namespace"]
    apply = ("apply", "--server-side", "--force-conflicts", "-f", "-")
    bare.kubectl(*apply, input=yaml.safe_dump_all(spaces))
    done = bare.kubectl(*apply, "--dry-run=server", input=yaml.safe_dump_all(served))
    assert len(done.stdout.splitlines()) == len(served)
    assert "Warning" not in done.stderr, done.stderr
