"""The ratchet: what was there before an update is tolerated, rule by rule and place by place."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests import everything
from tests.building import (
    asset,
    catalog,
    container,
    deployment,
    edited,
    mutated,
    pod_spec,
    policy,
    pytorchjob,
    raycluster,
    refused,
    result,
    served,
    shell,
    template,
    validated,
)
from webhook.catalog.catalog import Catalog
from webhook.evaluation.outcome import Allowed, Denied
from webhook.interface.pod_keys import CONTAINER_KEYS, POD_KEYS
from webhook.policy.table import TABLE

HOST = {"name": "h", "hostPath": {"path": "/h", "type": ""}}
GRACE = "terminationGracePeriodSeconds"
NOT_ASKED = ("compute.gpuPortionLimit", "compute.gpuMemoryLimit")
"""A limit is required of pods with a part of a GPU only."""
TOLERATION = {"key": "mine", "operator": "Exists", "effect": "NoSchedule"}


def main(document: Any) -> Any:
    return document["spec"]["template"]["spec"]["containers"][0]


def spec(document: Any) -> Any:
    return document["spec"]["template"]["spec"]


def restart(document: Any) -> None:
    document["spec"]["template"]["metadata"]["annotations"] = {"restartedAt": "now"}


def resources(part: str, name: str, amount: str) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        main(document).setdefault("resources", {}).setdefault(part, {})[name] = amount

    return change


def env(document: Any, *values: str) -> None:
    main(document)["env"] = [{"name": name, "value": name} for name in values]


def volume(document: Any, path: str = "/h") -> None:
    spec(document)["volumes"] = [{"name": "h", "hostPath": {"path": path, "type": ""}}]
    main(document)["volumeMounts"] = [{"name": "h", "mountPath": "/h"}]


CASES: dict[str, tuple[str, Callable[[Any], Any], Callable[[Any], Any], tuple[str, str]]] = {
    # rules, what was there before, what makes it worse, what is then said
    "min": (
        "compute: {cpuCoreRequest: {min: 1}}",
        resources("requests", "cpu", "500m"),
        resources("requests", "cpu", "400m"),
        ("compute.cpuCoreRequest", "min"),
    ),
    "max": (
        "compute: {cpuMemoryLimit: {max: 1Gi}}",
        resources("limits", "memory", "2Gi"),
        resources("limits", "memory", "3Gi"),
        ("compute.cpuMemoryLimit", "max"),
    ),
    "max of a pod field": (
        "terminationGracePeriodSeconds: {max: 20}",
        lambda each: spec(each).update(terminationGracePeriodSeconds=40),
        lambda each: spec(each).update(terminationGracePeriodSeconds=50),
        ("terminationGracePeriodSeconds", "max"),
    ),
    "step": (
        "compute: {cpuCoreRequest: {step: 1}}",
        resources("requests", "cpu", "1500m"),
        resources("requests", "cpu", "2500m"),
        ("compute.cpuCoreRequest", "step"),
    ),
    "options": (
        "workingDir: {options: [{value: /a}]}",
        lambda each: main(each).update(workingDir="/b"),
        lambda each: main(each).update(workingDir="/c"),
        ("workingDir", "options"),
    ),
    "required": (
        "workingDir: {required: true}",
        lambda each: None,
        lambda each: main(each).update(name="other"),
        ("workingDir", "required"),
    ),
    "canEdit": (
        "workingDir: {canEdit: false}",
        lambda each: main(each).update(workingDir="/b"),
        lambda each: main(each).update(workingDir="/c"),
        ("workingDir", "canEdit"),
    ),
    "blocked": (
        "args: {blocked: true}",
        lambda each: main(each).update(args=["a"]),
        lambda each: main(each).update(args=["a", "b"]),
        ("args", "blocked"),
    ),
    "canAdd of env": (
        "environmentVariables: {instances: {canAdd: false}}",
        lambda each: env(each, "A"),
        lambda each: env(each, "A", "B"),
        ("environmentVariables", "canAdd"),
    ),
    "canAdd of tolerations": (
        "tolerations: {instances: {canAdd: false}}",
        lambda each: spec(each).update(tolerations=[TOLERATION]),
        lambda each: spec(each).update(tolerations=[{**TOLERATION, "effect": "NoExecute"}]),
        ("tolerations", "canAdd"),
    ),
    "canAdd of host paths": (
        "storage: {hostPath: {instances: {canAdd: false}}}",
        volume,
        lambda each: volume(each, "/etc"),
        ("storage.hostPath", "canAdd"),
    ),
    "attribute": (
        "storage: {hostPath: {attributes: {path: {options: [{value: /data}]}}}}",
        volume,
        lambda each: volume(each, "/etc"),
        ("storage.hostPath.path", "options"),
    ),
    "locked": (
        "environmentVariables: {instances: {locked: [A]}}",
        lambda each: env(each, "A"),
        lambda each: main(each).update(env=[{"name": "A", "value": "C"}]),
        ("environmentVariables", "locked"),
    ),
    "array": (
        "security: {capabilities: {canEdit: false}}",
        lambda each: main(each).update(securityContext={"capabilities": {"add": ["SYS_ADMIN"]}}),
        lambda each: main(each).update(
            securityContext={"capabilities": {"add": ["SYS_ADMIN", "CHOWN"]}}
        ),
        ("security.capabilities", "canEdit"),
    ),
    "priority": (
        "priorityClass: {options: [{value: low}]}",
        lambda each: spec(each).update(priorityClassName="high"),
        lambda each: spec(each).update(priorityClassName="higher"),
        ("priorityClass", "options"),
    ),
    "node type": (
        "nodeType: {canEdit: false}",
        lambda each: spec(each).update(nodeSelector={"run.ai/type": "a"}),
        lambda each: spec(each).update(nodeSelector={"run.ai/type": "b"}),
        ("nodeType", "canEdit"),
    ),
    "gpus": (
        "compute: {gpuDevicesRequest: {max: 1}}",
        resources("limits", "nvidia.com/gpu", "4"),
        resources("limits", "nvidia.com/gpu", "5"),
        ("compute.gpuDevicesRequest", "max"),
    ),
    "replicas": (
        "scale: {replicas: {max: 2}}",
        lambda each: each["spec"].update(replicas=4),
        lambda each: each["spec"].update(replicas=5),
        ("scale.replicas", "max"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_was_there_is_tolerated_and_what_is_new_is_not(name: str) -> None:
    said, before, worse, violation = CASES[name]
    defaults = "defaults: {environmentVariables: {instances: [{name: A, value: z}]}}\n"
    body = (defaults if "locked" in said else "") + f"rules: {{{said}}}"
    rules = catalog(body)
    old = served(edited(deployment(container(), container("side")), before))
    assert refused(rules, old) == [violation]
    restarted = edited(old, restart)
    result(rules, restarted, old)
    assert refused(rules, edited(restarted, worse), old) == [violation]
    strict = catalog(policy(body, existing="strict"))
    assert refused(strict, restarted, old) == [violation]
    labelled = edited(old, lambda each: each["metadata"].update(labels={"a": "b"}))
    assert result(strict, labelled, old) == labelled


MAIN = {"podgate.dev/main-container": "main"}
OF_THE_POD = frozenset({"max of a pod field", "canAdd of tolerations", "priority", "node type"})
# The total is the same, whatever containers are called; a mount in another container is another.
OF_THE_WHOLE = frozenset({"gpus", "max", "replicas"})


@pytest.mark.parametrize("name", CASES)
def test_other_containers_and_another_order_leave_what_was_there_tolerated(name: str) -> None:
    """Containers are told apart by list and name: an index says nothing, and a new name is new."""
    said, before, _, violation = CASES[name]
    defaults = "defaults: {environmentVariables: {instances: [{name: A, value: z}]}}\n"
    rules = catalog((defaults if "locked" in said else "") + f"rules: {{{said}}}")
    old = served(edited(deployment(container(), container("side")), before))
    old["spec"]["template"]["metadata"]["annotations"] = dict(MAIN)
    for change in (
        lambda each: spec(each)["containers"].insert(0, container("first")),
        lambda each: spec(each)["containers"].reverse(),
        lambda each: spec(each)["containers"].pop(1),
    ):
        result(rules, edited(old, change), old)

    def rename(each: Any) -> None:
        main(each)["name"] = "renamed"
        each["spec"]["template"]["metadata"]["annotations"] = {
            "podgate.dev/main-container": "renamed"
        }

    renamed = edited(old, rename)
    if name in OF_THE_POD | OF_THE_WHOLE:
        result(rules, renamed, old)
    else:
        assert refused(rules, renamed, old) == [violation]


def test_a_policy_that_is_deleted_or_loosened_leaves_workloads_as_they_are() -> None:
    first = catalog(
        "defaults: {workingDir: /w, environmentVariables: {instances: [{name: A, value: b}]}}\n"
        "rules: {workingDir: {canEdit: false}, environmentVariables: {instances: {locked: [A]}}}"
    )
    for document in (served(deployment()), pytorchjob()):
        stored = result(first, document)
        for now in (catalog(), catalog("defaults: {workingDir: /other}")):
            for new in (copy.deepcopy(stored), edited(stored, lambda e: e.update(status={}))):
                decision = mutated(now, new, stored)
                assert isinstance(decision, Allowed)
                assert not decision.patch


def test_totals_pass_while_they_do_not_move_further_from_the_rule() -> None:
    rules = catalog(
        "rules: {compute: {cpuCoreRequest: {max: 4}, gpuDevicesRequest: {min: 2, max: 4}},"
        " scale: {replicas: {min: 3, max: 4}}}"
    )

    def sized(cpu: str, gpus: int, replicas: int) -> Any:
        amounts = {"requests": {"cpu": cpu}, "limits": {"nvidia.com/gpu": str(gpus)}}
        document = deployment(container(resources=amounts), container("side"), replicas=replicas)
        return served(document)

    old = sized("8", 8, 9)
    for new in (sized("6", 6, 7), sized("3", 3, 4), sized("8", 8, 5)):
        result(rules, new, old)
    assert refused(rules, sized("9", 8, 9), old) == [("compute.cpuCoreRequest", "max")]
    assert refused(rules, sized("8", 9, 9), old) == [("compute.gpuDevicesRequest", "max")]
    assert refused(rules, sized("8", 8, 10), old) == [("scale.replicas", "max")]
    few = sized("1", 1, 1)
    result(rules, sized("1", 1, 2), few)
    less = sized("1", 1, 0)
    assert refused(rules, less, few) == [("scale.replicas", "min")]
    # What one container gives up another may take.
    moved = copy.deepcopy(old)
    first, second = moved["spec"]["template"]["spec"]["containers"]
    first["resources"]["requests"]["cpu"], second["resources"] = "5", {"requests": {"cpu": "3"}}
    result(rules, moved, old)


PRIVILEGED: dict[str, Any] = {"securityContext": {"privileged": True}}
GUARDED: dict[str, Any] = {
    "image": "registry.example.com/other:1",
    "command": ["sh"],
    "args": ["-c"],
    "env": [{"name": "A", "value": "b"}],
    "envFrom": [{"configMapRef": {"name": "c"}}],
    "volumeMounts": [{"name": "w", "mountPath": "/w"}],
    "volumeDevices": [{"name": "w", "devicePath": "/dev/w"}],
    "securityContext": {"privileged": True, "runAsUser": 5},
    "name": "other",
    "workingDir": "/x",
    "restartPolicy": "Always",
    "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}],
    "lifecycle": {"preStop": {"exec": {"command": ["sh"]}}},
    "livenessProbe": {"exec": {"command": ["sh"]}},
    "readinessProbe": {"exec": {"command": ["sh"]}},
    "startupProbe": {"exec": {"command": ["sh"]}},
    "resources": {"claims": [{"name": "c"}]},
    "stdin": True,
    "stdinOnce": True,
    "tty": True,
    "terminationMessagePath": "/etc/ld.so.preload",
}
"""Fields of a container, each with a value that makes it another one."""
HARMLESS: dict[str, tuple[Any, str]] = {
    "resources": ({"requests": {"cpu": "1"}}, "amounts have fields of their own"),
    "ports": (
        [{"containerPort": 81}],
        "a declaration; ports of the node have a field of their own",
    ),
    "livenessProbe": ({"httpGet": {"port": 80}}, "a request of the kubelet runs nothing in there"),
    "readinessProbe": ({"tcpSocket": {"port": 80}}, "the same"),
    "startupProbe": ({"grpc": {"port": 80}}, "the same"),
    "lifecycle": ({"stopSignal": "SIGTERM"}, "how a container ends"),
    "imagePullPolicy": ("Always", "the same reference; it has a field of its own"),
    "resizePolicy": (
        [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
        "when amounts change",
    ),
    "terminationMessagePolicy": ("FallbackToLogsOnError", "what is shown once it has ended"),
}
"""Fields of a container, each with a value that leaves it what it was, and why."""

ALIASES = [{"ip": "10.0.0.1", "hostnames": ["registry.example.com"]}]
GUARDED_POD: dict[str, Any] = {
    "automountServiceAccountToken": False,
    "dnsConfig": {"nameservers": ["10.0.0.1"]},
    "dnsPolicy": "None",
    "enableServiceLinks": False,
    "hostAliases": ALIASES,
    "hostIPC": True,
    "hostNetwork": True,
    "hostPID": True,
    "hostUsers": False,
    "os": {"name": "linux"},
    "runtimeClassName": "other",
    "securityContext": {"supplementalGroups": [5]},
    "serviceAccount": "admin",
    "serviceAccountName": "admin",
    "shareProcessNamespace": True,
    "resourceClaims": [{"name": "used", "resourceClaimName": "other"}],
    "volumes": [{"name": "used", "emptyDir": {"medium": "Memory"}}],
}
"""Fields of a pod, each with a value that gives its containers something else."""
PLACED = "where a pod runs has fields of its own"
NAMED = "a name of the pod, which can be nothing but a name"
TIMED = "how long a pod runs, or whether it starts again"
HARMLESS_POD: dict[str, tuple[Any, str]] = {
    "activeDeadlineSeconds": (60, TIMED),
    "affinity": ({"podAntiAffinity": {}}, PLACED),
    "containers": ([container("other")], "each container is evaluated by itself"),
    "initContainers": ([container("other")], "each container is evaluated by itself"),
    "hostname": ("other", NAMED),
    "hostnameOverride": ("other", NAMED),
    "setHostnameAsFQDN": (True, NAMED),
    "subdomain": ("other", NAMED),
    "imagePullSecrets": ([{"name": "other"}], "the same image; it has a field of its own"),
    "nodeName": ("other", PLACED),
    "nodeSelector": ({"a": "b"}, PLACED),
    "schedulerName": ("other", PLACED),
    "schedulingGroup": ({"podGroupName": "other"}, PLACED),
    "workloadRef": ({"name": "other", "podGroup": "workers"}, PLACED),
    "evictionResponders": ([{"name": "example.com/responder"}], TIMED),
    "schedulingGates": ([{"name": "example.com/wait"}], PLACED),
    "tolerations": ([{"operator": "Exists"}], PLACED),
    "topologySpreadConstraints": ([], PLACED),
    "overhead": ({"cpu": "1"}, "an amount"),
    "resources": ({"limits": {"cpu": "2"}}, "amounts have fields of their own"),
    "preemptionPolicy": ("Never", "which pods give way to it"),
    "priority": (5, "which pods give way to it"),
    "priorityClassName": ("other", "which pods give way to it"),
    "readinessGates": ([{"conditionType": "example.com/up"}], "when traffic reaches a pod"),
    "restartPolicy": ("OnFailure", TIMED),
    "terminationGracePeriodSeconds": (20, TIMED),
    "securityContext": ({"fsGroup": 5}, "the group of volumes, which is not the container's own"),
    "resourceClaims": (
        [{"name": "unused", "resourceClaimName": "b"}],
        "it does not name the claim",
    ),
    "volumes": ([{"name": "unused", "emptyDir": {}}], "it does not mount the volume"),
}
"""Fields of a pod, each with a value that leaves its containers what they were, and why."""
OF_SUBRESOURCES = frozenset({"ephemeralContainers"})
EXTENDED: dict[str, Callable[[Any, Any], Any]] = {
    "volumes": lambda held, new: [each for each in held if each["name"] != new[0]["name"]] + new,
    "resourceClaims": lambda held, new: [e for e in held if e["name"] != new[0]["name"]] + new,
    "containers": lambda held, new: held + new,
    "initContainers": lambda held, new: held + new,
}
"""Lists of a pod that a change adds to."""


def test_every_field_of_a_pod_and_of_a_container_is_decided() -> None:
    """A field that Kubernetes adds is in pod_keys.py first; tests/e2e compares that with the API."""
    assert GUARDED.keys() | HARMLESS.keys() == CONTAINER_KEYS | {"image"}
    assert GUARDED_POD.keys() | HARMLESS_POD.keys() | OF_SUBRESOURCES == POD_KEYS


@pytest.mark.parametrize("part", GUARDED)
@pytest.mark.parametrize("held", ["containers", "initContainers"])
def test_a_privileged_container_that_may_do_something_else_is_refused(part: str, held: str) -> None:
    rules = catalog("rules: {security: {privileged: {canEdit: false}, runAsUid: {max: 2000}}}")
    old = served(deployment())
    spec(old)["volumes"] = [{"name": "w", "emptyDir": {}}]
    spec(old).setdefault("initContainers", [])
    spec(old)[held].append(container("setup", **copy.deepcopy(PRIVILEGED)))
    new = edited(old, lambda each: spec(each)[held][-1].update({part: GUARDED[part]}))
    assert refused(rules, new, old) == [("security.privileged", "canEdit")]
    other = edited(old, lambda each: main(each).update(image="registry.example.com/other:1"))
    result(rules, other, old)


@pytest.mark.parametrize("part", HARMLESS)
def test_a_privileged_container_may_change_in_other_things(part: str) -> None:
    rules = catalog("rules: {security: {privileged: {canEdit: false}}}")
    old = served(deployment(container(**copy.deepcopy(PRIVILEGED))))
    result(rules, edited(old, lambda each: main(each).update({part: HARMLESS[part][0]})), old)


def in_a_pod() -> Any:
    """A Deployment with a privileged container that has a volume and a claim of its pod."""
    body = container(
        volumeMounts=[{"name": "used", "mountPath": "/w"}],
        resources={"claims": [{"name": "used"}]},
        **copy.deepcopy(PRIVILEGED),
    )
    claims = [{"name": "used", "resourceClaimName": "a"}]
    return served(
        deployment(body, volumes=[{"name": "used", "emptyDir": {}}], resourceClaims=claims)
    )


def changed(part: str, value: Any) -> Callable[[Any], Any]:
    def change(document: Any) -> None:
        held = spec(document)
        extend = EXTENDED.get(part)
        held[part] = value if extend is None else extend(held.get(part) or [], value)

    return change


@pytest.mark.parametrize("part", GUARDED_POD)
def test_a_privileged_container_that_gets_something_else_of_its_pod_is_refused(part: str) -> None:
    rules = catalog("rules: {security: {privileged: {canEdit: false}}}")
    old = in_a_pod()
    new = edited(old, changed(part, GUARDED_POD[part]))
    assert refused(rules, new, old) == [("security.privileged", "canEdit")]


@pytest.mark.parametrize("part", HARMLESS_POD)
def test_a_privileged_container_stays_while_its_pod_changes_in_other_things(part: str) -> None:
    rules = catalog("rules: {security: {privileged: {canEdit: false}}}")
    old = in_a_pod()
    result(rules, edited(old, changed(part, HARMLESS_POD[part][0])), old)


def test_a_variable_that_takes_an_annotation_changes_with_it() -> None:
    rules = catalog("rules: {security: {privileged: {canEdit: false}}}")
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.annotations['run']"}}
    body = container(env=[{"name": "RUN", "valueFrom": source}], **copy.deepcopy(PRIVILEGED))
    old = served(deployment(body))
    result(rules, edited(old, restart), old)

    def annotate(document: Any) -> None:
        document["spec"]["template"]["metadata"]["annotations"] = {"run": "sh"}

    assert refused(rules, edited(old, annotate), old) == [("security.privileged", "canEdit")]


def test_a_value_inherited_from_the_pod_counts_for_a_container_that_changes() -> None:
    rules = catalog(
        "defaults: {security: {runAsUid: 1000}}\n"
        "rules: {security: {runAsUid: {canEdit: false, min: 1000}}}"
    )
    old = served(deployment(container(), container("side"), securityContext={"runAsUser": 0}))
    result(rules, edited(old, restart), old)
    new = edited(old, lambda each: spec(each)["containers"][1].update(image="other:1"))
    assert refused(rules, new, old) == [
        ("security.runAsUid", "canEdit"),
        ("security.runAsUid", "min"),
    ]
    own: dict[str, Any] = {"securityContext": {"runAsUser": 1000}}
    old = served(
        deployment(container(), container("side", **own), securityContext={"runAsUser": 0})
    )
    new = edited(old, lambda each: spec(each)["containers"][1].update(image="other:1"))
    result(rules, new, old)


def test_safety_bounds_ratchet_per_container_too() -> None:
    rules = catalog("rules: {security: {runAsUid: {min: 1000}}}")
    low: dict[str, Any] = {"securityContext": {"runAsUser": 5}}
    old = served(deployment(container(**low), container("side", **copy.deepcopy(low))))
    result(rules, edited(old, restart), old)
    new = edited(old, lambda each: spec(each)["containers"][1].update(image="other:1"))
    decision = mutated(rules, new, old)
    assert [each.path[-3:-2] for each in getattr(decision, "violations", ())] == [(1,)]


ORDINARY = "rules: {workingDir: {canEdit: false}, security: {privileged: {canEdit: false}}}"


def test_containers_are_matched_by_name_wherever_they_stand() -> None:
    rules = catalog(ORDINARY)
    kept = container("kept", workingDir="/mine", **copy.deepcopy(PRIVILEGED))
    old = served(deployment(container(), kept))
    for change in (
        lambda each: spec(each)["containers"].reverse(),
        lambda each: spec(each)["containers"].insert(0, container("first")),
        lambda each: spec(each)["containers"].pop(0),
    ):
        result(rules, edited(old, change), old)
    renamed = edited(old, lambda each: spec(each)["containers"][1].update(name="renamed"))
    assert refused(rules, renamed, old) == [
        ("security.privileged", "canEdit"),
        ("workingDir", "canEdit"),
    ]

    def to_init(each: Any) -> None:
        spec(each)["initContainers"] = [spec(each)["containers"].pop()]

    assert refused(rules, edited(old, to_init), old) == [("security.privileged", "canEdit")]


def test_items_are_matched_by_key_and_container_wherever_they_stand() -> None:
    rules = catalog(
        "rules: {environmentVariables: {instances: {canAdd: false}},"
        " storage: {hostPath: {instances: {canAdd: false}}},"
        " tolerations: {instances: {canAdd: false}}}"
    )
    entries = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    mounts = [{"name": "h", "mountPath": "/h"}]
    old = served(
        deployment(
            container(env=entries, volumeMounts=mounts),
            container("side", volumeMounts=mounts),
            volumes=[HOST, {"name": "w", "emptyDir": {}}],
            tolerations=[TOLERATION, {"operator": "Exists"}],
        )
    )

    def turned(each: Any) -> None:
        spec(each)["volumes"].reverse()
        spec(each)["containers"].reverse()
        spec(each)["tolerations"].reverse()
        spec(each)["containers"][1]["env"].reverse()

    assert result(rules, edited(old, turned), old) == edited(old, turned)

    def copied(each: Any) -> None:
        spec(each)["containers"][1]["env"] = [entries[0]]

    assert refused(rules, edited(old, copied), old) == [("environmentVariables", "canAdd")]

    def mounted(each: Any) -> None:
        spec(each)["containers"].append(container("third", volumeMounts=mounts))

    assert refused(rules, edited(old, mounted), old) == [("storage.hostPath", "canAdd")]

    def moved(each: Any) -> None:
        spec(each)["containers"][1]["name"] = "other"

    assert refused(rules, edited(old, moved), old) == [("storage.hostPath", "canAdd")]


def test_atomic_lists_are_one_value() -> None:
    rules = catalog("rules: {args: {canEdit: false}, security: {capabilities: {canEdit: false}}}")
    held: dict[str, Any] = {
        "args": ["a", "b"],
        "securityContext": {"capabilities": {"add": ["A", "B"]}},
    }
    old = served(deployment(container(**held)))
    result(rules, edited(old, restart), old)
    turned = edited(old, lambda each: main(each)["args"].reverse())
    assert refused(rules, turned, old) == [
        ("args", "canEdit"),
        ("security.capabilities", "canEdit"),
    ]


def test_only_the_policy_that_is_strict_is_strict() -> None:
    one = policy("rules: {workingDir: {options: [{value: /a}]}}", "strict", existing="strict")
    two = policy("rules: {args: {blocked: true}}", "tolerant")
    old = served(deployment(container(workingDir="/b", args=["x"])))
    for change in (restart, lambda each: each["spec"].update(replicas=3)):
        assert refused(catalog(one, two), edited(old, change), old) == [("workingDir", "options")]
    assert result(catalog(two), edited(old, restart), old) == edited(old, restart)


def test_strict_reaches_imposed_items() -> None:
    data = asset("data", "/data", "/data")
    old = served(deployment())
    scaled = edited(old, lambda each: each["spec"].update(replicas=3))
    tolerant = catalog(policy("imposedAssets: [data]"), data)
    assert result(tolerant, scaled, old) == scaled
    strict = catalog(policy("imposedAssets: [data]", existing="strict"), data)
    assert refused(strict, scaled, old) == [("storage.hostPath", "locked")]


def test_a_strict_trial_decides_nothing() -> None:
    trial = policy(
        "rules: {workingDir: {options: [{value: /a}]}}", existing="strict", enforcement="Warn"
    )
    old = served(deployment(container(workingDir="/b")))
    decision = mutated(catalog(trial), edited(old, restart), old)
    assert isinstance(decision, Allowed)
    assert [each.rule for each in decision.audit] == ["options"]


def test_instances_ratchet_each_for_itself() -> None:
    rules = catalog("rules: {scale: {replicas: {max: 3}}, workingDir: {canEdit: false}}")
    old = raycluster(container(workingDir="/x"), groups=("a", "b"))
    old["spec"]["enableInTreeAutoscaling"] = True
    old["spec"]["workerGroupSpecs"][0]["maxReplicas"] = 9
    swapped = edited(old, lambda each: each["spec"]["workerGroupSpecs"].reverse())
    assert result(rules, swapped, old) == swapped

    def given(each: Any) -> None:
        first, second = each["spec"]["workerGroupSpecs"]
        first["maxReplicas"], second["maxReplicas"] = 2, 9

    assert refused(rules, edited(old, given), old) == [("scale.replicas", "max")]

    def renamed(each: Any) -> None:
        each["spec"]["workerGroupSpecs"][0]["groupName"] = "c"

    assert refused(rules, edited(old, renamed), old) == [
        ("scale.replicas", "max"),
        ("workingDir", "canEdit"),
    ]


def test_a_master_is_no_worker() -> None:
    """What stood in the worker does not excuse the same in a new master."""
    rules = catalog("rules: {workingDir: {canEdit: false}}")
    old = pytorchjob(container(workingDir="/x"), master=False)
    new = pytorchjob(container(workingDir="/x"))
    decision = mutated(rules, new, old)
    assert {each.path[2] for each in getattr(decision, "violations", ())} == {"Master"}
    assert not isinstance(validated(rules, new, old), Allowed)


def test_an_unreadable_amount_that_was_there_is_tolerated() -> None:
    rules = catalog("rules: {compute: {cpuCoreRequest: {max: 4, min: 1}}}")
    odd = {"requests": {"cpu": "lots"}}
    old = pytorchjob(container(resources=odd), container("side", resources=odd), master=False)
    assert refused(rules, old) == [("compute.cpuCoreRequest", "invalid-value")]

    def relabel(each: Any) -> None:
        worker = each["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
        worker["metadata"]["labels"]["a"] = "b"

    result(rules, edited(old, relabel), old)


def test_another_role_of_a_pod_is_tolerated_where_the_policy_sees_no_difference() -> None:
    def groups(**templates: Any) -> Any:
        body = {"replicas": 1, "leaderWorkerTemplate": {"size": 2, **templates}}
        return shell("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", body)

    worker = template(pod_spec(terminationGracePeriodSeconds=30))
    old = groups(leaderTemplate=copy.deepcopy(worker), workerTemplate=worker)
    rules = catalog("rules: {image: {options: [{value: other}]}}")
    assert result(rules, groups(workerTemplate=worker), old)


def test_another_main_container_is_looked_at_although_its_pod_is_as_before() -> None:
    rules = catalog(
        "defaults: {environmentVariables: {instances: [{name: PROXY, value: p}]}}\n"
        "rules: {environmentVariables: {instances: {locked: [PROXY]}}}"
    )
    proxied = container("main", env=[{"name": "PROXY", "value": "p"}])
    pod = template(pod_spec(proxied, container("other"), terminationGracePeriodSeconds=30))
    body = {
        "mainContainer": "main",
        "mpiReplicaSpecs": {"Worker": {"replicas": 1, "template": pod}},
    }
    old = shell("kubeflow.org/v1", "MPIJob", body)
    new = edited(old, lambda each: each["spec"].update(mainContainer="other"))
    decision = validated(rules, new, old)
    assert isinstance(decision, Denied)
    assert [each.reason for each in decision.violations] == ["locked"]


REQUIRED = [
    path
    for path, row in TABLE.fields.items()
    if row.items is None and "required" in row.legal_rules and row.path != GRACE
]


def required(path: str, existing: str = "tolerate") -> Catalog:
    """A catalog that requires a value of the field, and bounds the grace period of pods."""
    rules: dict[str, Any] = {}
    everything.put(rules, path, {"required": True})
    everything.put(rules, GRACE, {"max": 100})
    return catalog(policy(json.dumps({"rules": rules}), existing=existing))


def required_of(rules: Catalog, path: str, document: Any, old: Any = None) -> bool:
    """Whether an object is refused for want of a value of the field."""
    decision = mutated(rules, document, old)
    found = decision.violations if isinstance(decision, Denied) else ()
    return (path, "required") in {(each.field, each.rule) for each in found}


@pytest.mark.parametrize("path", REQUIRED)
def test_what_lacked_a_value_may_go_on_without_and_nothing_loses_one(path: str) -> None:
    tolerant, now = required(path), served(deployment(**{GRACE: 40}))
    if not required_of(tolerant, path, now):
        assert path.partition(".")[0] not in {"compute", "probes"} or path in NOT_ASKED
        return
    before = served(deployment())
    assert not required_of(tolerant, path, now, before)
    assert required_of(required(path, "strict"), path, now, before)
    defaults: dict[str, Any] = {}
    everything.put(defaults, path, everything.default_of(TABLE.fields[path]))
    with_value = mutated(catalog(policy(json.dumps({"defaults": defaults}))), before)
    if isinstance(with_value, Allowed) and with_value.patch:
        assert not required_of(tolerant, path, with_value.object)
        assert required_of(tolerant, path, now, with_value.object)
