"""Safety fields: nothing that stands at their places makes a decision fail, nor slips through."""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.building import catalog, container, deployment, mutated, pod, result, validated
from tests.definitions import shipped
from webhook.catalog.catalog import Catalog
from webhook.decision.messages import violation_text
from webhook.evaluation.injected import is_injected
from webhook.evaluation.outcome import Allowed, Denied
from webhook.evaluation.request import Request
from webhook.evaluation.requester_ids import read_numbers, user_ids
from webhook.fields.names_in_use import Element
from webhook.pods.locate import locate
from webhook.pods.pod_view import pod_view

JUNK = st.sampled_from([None, 7, "x", "", True, [], [None], [7], {}, {"name": 7}, [{"name": []}]])
POLICY = """
defaults:
  tty: true
  security:
    uidGidSource: custom
    runAsGid: 2000
    supplementalGroups: '100'
    seccompProfileType: RuntimeDefault
    readOnlyRootFilesystem: true
    allowPrivilegeEscalation: false
    procMount: Default
    hostPorts: false
    hostIpc: false
    hostNetwork: true
    hostPid: false
    volumeTypes: [emptyDir]
    serviceAccountName: team
  scheduling: {nodeName: n, schedulerName: s, runtimeClassName: r}
rules:
  stdin: {required: true}
  security:
    uidGidSource: {canEdit: false, options: [{value: custom}, {value: fromTheImage}]}
    runAsGid: {min: 10}
    supplementalGroups: {canEdit: false, required: true}
    seccompProfileType: {canEdit: false, required: true}
    readOnlyRootFilesystem: {canEdit: false}
    allowPrivilegeEscalation: {canEdit: false}
    procMount: {canEdit: false, options: [{value: Default}]}
    hostPorts: {canEdit: false}
    hostIpc: {blocked: true}
    hostNetwork: {required: true}
    hostPid: {canEdit: false}
    sysctls: {blocked: true, options: [{value: a}]}
    volumeTypes: {canEdit: false, required: true}
    serviceAccountName: {canEdit: false, required: true}
  scheduling:
    nodeName: {options: [{value: n}]}
    schedulerName: {canEdit: false}
    runtimeClassName: {required: true}
"""
PLACES = {
    "pod": (
        ("hostNetwork",),
        ("hostIPC",),
        ("hostPID",),
        ("hostUsers",),
        ("volumes",),
        ("serviceAccountName",),
        ("serviceAccount",),
        ("nodeName",),
        ("runtimeClassName",),
        ("schedulerName",),
        ("os",),
        ("securityContext",),
        ("securityContext", "sysctls"),
        ("securityContext", "supplementalGroups"),
        ("securityContext", "seccompProfile"),
        ("securityContext", "windowsOptions"),
        ("securityContext", "runAsUser"),
    ),
    "container": (
        ("ports",),
        ("tty",),
        ("stdin",),
        ("securityContext",),
        ("securityContext", "capabilities"),
        ("securityContext", "capabilities", "add"),
        ("securityContext", "seccompProfile"),
        ("securityContext", "seccompProfile", "type"),
        ("securityContext", "allowPrivilegeEscalation"),
        ("securityContext", "procMount"),
        ("securityContext", "windowsOptions", "hostProcess"),
        ("securityContext", "runAsGroup"),
    ),
}


@lru_cache(maxsize=1)
def rules() -> Catalog:
    return catalog(POLICY)


def put(body: Any, at: tuple[str, ...], value: Any) -> None:
    for step in at[:-1]:
        if not isinstance(body.get(step), dict):
            body[step] = {}
        body = body[step]
    body[at[-1]] = value


@st.composite
def odd_specs(draw: st.DrawFn) -> dict[str, Any]:
    """A Pod or a Deployment with junk at some places that safety fields read."""
    make = draw(st.sampled_from([pod, deployment]))
    document = make(container(), initContainers=[container("i")])
    spec = document["spec"]["template"]["spec"] if make is deployment else document["spec"]
    for at in draw(st.lists(st.sampled_from(PLACES["pod"]), max_size=3)):
        put(spec, at, copy.deepcopy(draw(JUNK)))
    for at in draw(st.lists(st.sampled_from(PLACES["container"]), max_size=3)):
        name = draw(st.sampled_from(["containers", "initContainers"]))
        put(spec[name][0], at, copy.deepcopy(draw(JUNK)))
    return document


@settings(max_examples=300, deadline=None)
@given(odd_specs(), odd_specs())
def test_junk_is_judged_and_never_fails(document: Any, other: Any) -> None:
    for old in (None, other if other["kind"] == document["kind"] else None):
        decision = mutated(rules(), document, old)
        assert isinstance(decision, Allowed | Denied)
        validated(rules(), document, old)
        if isinstance(decision, Allowed):
            result(rules(), document, old)


TOKEN = {
    "name": "kube-api-access-x7k2p",
    "projected": {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {
                "configMap": {
                    "name": "kube-root-ca.crt",
                    "items": [{"key": "ca.crt", "path": "ca.crt"}],
                }
            },
            {
                "downwardAPI": {
                    "items": [
                        {
                            "path": "namespace",
                            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                        }
                    ]
                }
            },
        ],
    },
}
MOUNT = {
    "name": "kube-api-access-x7k2p",
    "readOnly": True,
    "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
}


def injected(store: str, raw: Any, spec: dict[str, Any], kind: str = "Pod") -> bool:
    group = "" if kind == "Pod" else "apps"
    request = Request(group, "v1", kind, "CREATE", {})
    (location,) = locate(shipped("pod"), {"metadata": {}, "spec": spec})
    return is_injected(store, Element("", (), raw, ""), pod_view(location), request)


@pytest.mark.parametrize(
    "rule,context",
    [
        ("runAsUid: {min: 1000}", {"runAsUser": 0}),
        (
            "seccompProfileType: {options: [RuntimeDefault]}",
            {"seccompProfile": {"type": "Unconfined"}},
        ),
        (
            "appArmorProfile: {type: {options: [RuntimeDefault]}}",
            {"appArmorProfile": {"type": "Unconfined"}},
        ),
    ],
)
def test_a_refusal_says_where_an_inherited_value_is_written(
    rule: str, context: dict[str, Any]
) -> None:
    rules = catalog(f"rules: {{security: {{{rule}}}}}")
    ((name, value),) = context.items()
    written = f"spec.template.spec.securityContext.{name}" + (
        ".type" if isinstance(value, dict) else ""
    )
    told = f"The container inherits it from {written}: change it there."
    inherited = mutated(rules, deployment(container(), securityContext=context))
    assert isinstance(inherited, Denied)
    (violation,) = inherited.violations
    assert violation.path[:5] == ("spec", "template", "spec", "containers", 0)
    assert violation_text(violation).endswith(told)
    own = mutated(rules, deployment(container(securityContext=context), securityContext=context))
    assert isinstance(own, Denied)
    assert not any(told in violation_text(each) for each in own.violations)


def test_the_token_volume_and_its_mount_are_known_by_their_whole_content() -> None:
    spec = {"volumes": [TOKEN]}
    assert injected("volumes", TOKEN, spec)
    assert injected("mounts", MOUNT, spec)
    assert not injected("volumes", TOKEN, spec, "Deployment")
    assert not injected("mounts", MOUNT, {"volumes": [{**TOKEN, "projected": None}]})
    assert not injected("mounts", {**MOUNT, "readOnly": False}, spec)
    assert not injected("mounts", {**MOUNT, "mountPath": "/x"}, spec)
    assert not injected("volumes", {**TOKEN, "name": "kube-api-access-x7k2p-mine"}, spec)
    assert not injected("volumes", {**TOKEN, "hostPath": {"path": "/"}}, spec)
    changed = copy.deepcopy(TOKEN)
    changed["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"] = 86400  # type: ignore[index]
    assert not injected("volumes", changed, spec)


@pytest.mark.parametrize(
    ("values", "several", "wanted"),
    [
        (("5001",), False, (5001,)),
        (("0",), False, (0,)),
        ((" 5001 ",), False, (5001,)),
        ((), False, None),
        (("",), True, None),
        (("5001", "5002"), False, None),
        (("20,10", "10"), True, (10, 20)),
        (("2147483648",), False, None),
        (("-1",), False, None),
        (("0x10",), False, None),
        (("１２",), False, None),
        (("10,wheel",), True, None),
    ],
)
def test_ids_of_a_claim(values: tuple[str, ...], several: bool, wanted: Any) -> None:
    assert read_numbers(values, several=several) == wanted


def test_without_configured_claims_there_are_no_ids() -> None:
    assert user_ids({"uid": ("1",)}, {}).wrong == (("uid", ""),)
    found = user_ids({"u": ("1",), "g": ("x",)}, {"uid": "u", "gid": "g", "groups": "gs"})
    assert (found.uid, found.gid, found.groups) == (1, None, None)
    assert found.wrong == (("gid", "g"), ("groups", "gs"))
