"""The installation's list of what other webhooks add: whole content, and clear faults."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from webhook.decision.gains import is_no_wider
from webhook.decision.messages import problem_text
from webhook.documents.yaml_source import read_documents
from webhook.interface.account_token import ACCOUNT_SOURCES
from webhook.interface.injected_items import (
    PROBES,
    Injected,
    alike,
    container_entry,
    parse_injected,
)

SIDECAR: dict[str, Any] = {
    "name": "istio-proxy",
    "image": "docker.io/istio/proxyv2:*",
    "securityContext": {"runAsUser": 1337},
}


@dataclass
class Pod:
    """What is looked at of a pod."""

    spec: dict[str, Any]

    def once(self, key: Any, find: Callable[[], frozenset[str]]) -> frozenset[str]:
        """What `find` gives."""
        return find()


def parsed(text: str) -> tuple[Injected, list[str]]:
    documents, faults = read_documents(text.encode(), "injected.yaml", kubernetes=False)
    assert not faults
    found, problems = parse_injected(documents[0])
    return found, [problem_text(each) for each in problems]


@pytest.mark.parametrize(
    ("change", "excused"),
    [
        ({}, True),
        ({"env": [{"name": "A"}], "ports": [], "resources": {}}, True),
        ({"image": "docker.io/istio/pilot:1"}, False),
        ({"name": "istio-proxy2"}, False),
        ({"securityContext": {"runAsUser": 1337, "privileged": True}}, False),
        ({"securityContext": {"runAsUser": "1337"}}, False),
        ({"securityContext": None}, False),
        ({"volumeMounts": [{"name": "root", "mountPath": "/host"}]}, False),
        ({"lifecycle": {"postStart": {}}}, False),
        ({"envFrom": [{"secretRef": {"name": "s"}}]}, False),
        ({"command": ["sh"]}, False),
        ({"args": ["sidecar"], "readinessProbe": {"httpGet": {"port": 1}}}, True),
        *(({probe: {"exec": {"command": ["sh"]}}}, False) for probe in PROBES),
    ],
)
def test_a_container_is_excused_by_image_mounts_and_privileges(
    change: dict[str, Any], excused: bool
) -> None:
    body = {**SIDECAR, "image": "docker.io/istio/proxyv2:1.24", **change}
    assert Injected((SIDECAR,)).has_container(body) is excused


@pytest.mark.parametrize(
    ("change", "excused"),
    [
        ({}, True),
        ({"command": ["sh", "-c", "sleep 2"]}, False),
        ({"command": ["sh", "-c"]}, False),
        ({"args": ["exit"]}, False),
        ({"startupProbe": {"exec": {"command": ["exit"]}}}, False),
        ({"startupProbe": {"exec": {"command": ["test", "-f"]}}}, True),
        ({"startupProbe": {"exec": {"command": ["test", "*"]}}}, False),
    ],
)
def test_a_container_runs_what_the_list_says(change: dict[str, Any], excused: bool) -> None:
    runs = {
        "command": ["sh", "-c", "wait *"],
        "args": ["9"],
        "startupProbe": {"exec": {"command": ["test", "-?"]}},
    }
    asked = {
        **SIDECAR,
        "image": "docker.io/istio/proxyv2:1",
        **runs,
        "command": ["sh", "-c", "wait 9"],
    }
    assert Injected(({**SIDECAR, **runs},)).has_container({**asked, **change}) is excused


@pytest.mark.parametrize(
    ("pattern", "value"),
    [(True, 1), (1, True), ("1", 1), ({}, []), ([], [1]), ({"a": 1}, {"a": 1, "b": 2}), (None, "")],
)
def test_what_differs_in_type_or_number_is_not_alike(pattern: Any, value: Any) -> None:
    assert not alike(pattern, value)


def test_a_volume_may_be_mounted_only_where_the_list_says() -> None:
    found, told = parsed(
        "items: [{field: storage.emptyDirVolume, content: {name: v, emptyDir: {}},"
        " mounts: [{name: v, mountPath: /a}]}]"
    )
    assert not told
    volume, mount = {"name": "v", "emptyDir": {}}, {"name": "v", "mountPath": "/a"}
    assert found.has_item("storage.emptyDirVolume", "v", [volume, mount])
    assert not found.has_item("storage.emptyDirVolume", "v", [volume, {**mount, "mountPath": "/"}])
    assert not found.has_item("storage.hostPath", "v", [volume, mount])


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[]", ""),
        ("{sidecars: []}", ""),
        ("{containers: {}}", "containers"),
        ("{containers: [{name: a}]}", "containers[0]"),
        ("{containers: [{name: a, image: b, privileged: true}]}", "containers[0]"),
        ("{items: [{field: image, content: x}]}", "items[0].field"),
        ("{items: [{field: labels}]}", "items[0]"),
        ("{items: [7]}", "items[0]"),
    ],
)
def test_a_fault_names_its_place_and_what_to_write(text: str, place: str) -> None:
    found, told = parsed(text)
    assert found == Injected()
    assert len(told) == 1
    assert told[0].startswith("injected.yaml:1")
    assert place in told[0]
    assert "write" in told[0] or "name an" in told[0]


TOKEN_MOUNT = {
    "name": "kube-api-access-x7k2p",
    "readOnly": True,
    "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
}


def test_the_token_that_the_server_mounts_into_a_sidecar_too_is_no_difference() -> None:
    """The ServiceAccount plugin runs again after webhooks, and no list can know the volume's name."""
    volume = {
        "name": "kube-api-access-x7k2p",
        "projected": {"sources": ACCOUNT_SOURCES, "defaultMode": 420},
    }
    known = Injected((SIDECAR,))
    body = {**SIDECAR, "image": "docker.io/istio/proxyv2:1", "volumeMounts": [TOKEN_MOUNT]}
    whole, forged = Pod({"volumes": [volume]}), Pod({"volumes": []})
    assert known.has_container(body, whole)
    assert not known.has_container(body, forged)
    assert not known.has_container(body)
    hosted = {"name": volume["name"], "hostPath": {"path": "/"}}
    assert not known.has_container(body, Pod({"volumes": [hosted]}))
    for change in ({"readOnly": False}, {"subPath": "x"}, {"mountPath": "/etc"}):
        mounts = [{**TOKEN_MOUNT, **change}]
        assert not known.has_container({**body, "volumeMounts": mounts}, whole)


@pytest.mark.parametrize(
    ("pattern", "value", "found"),
    [
        ("{owner}-ssh", "pi-ssh", True),
        ("{owner}-ssh", "pi-launcher-ssh", True),
        ("{owner}-ssh", "pi-laun-ssh", False),
        ("{owner}-ssh", "-ssh", False),
        ("{owner}-ssh", "others-ssh", False),
        ("look up {owner}-master-0; then *", "look up pi-master-0; then exit", True),
        ("look up {owner}-master-0", "look up pi; env; -master-0", False),
        (["init", "{more}"], ["init", "one", "two"], True),
        (["init", "{more}"], ["init"], True),
        (["init", "{more}"], ["one", "init"], False),
        (["init", "{more}"], [], False),
    ],
)
def test_a_pattern_names_the_owner_and_further_members(
    pattern: Any, value: Any, found: bool
) -> None:
    assert alike(pattern, value, "pi-launcher") is found


def test_without_an_owner_no_name_is_the_owners() -> None:
    assert not alike("{owner}-ssh", "-ssh")
    assert not alike("{owner}", "")


def test_no_arguments_are_listed_as_such() -> None:
    listed, faults = parsed("containers: [{name: init, image: i, args: []}]")
    assert not faults
    assert listed.has_container({"name": "init", "image": "i"})
    assert not listed.has_container({"name": "init", "image": "i", "args": ["--config=/mine"]})


MOUNTS = [
    {},
    {"readOnly": True},
    {"readOnly": True, "recursiveReadOnly": "IfPossible"},
    {"readOnly": True, "recursiveReadOnly": "Enabled"},
]
"""How far a mount may be read-only, from not at all to all mounts below."""


def test_a_mount_may_be_further_read_only_than_that_of_its_owner() -> None:
    for mine, theirs in itertools.product(range(len(MOUNTS)), repeat=2):
        mount, own = ({"name": "v", "mountPath": "/v", **MOUNTS[each]} for each in (mine, theirs))
        assert is_no_wider(mount, own) is (mine >= theirs)
        assert not is_no_wider({**mount, "subPath": "s"}, own)
    plain = {"readOnly": True, "recursiveReadOnly": "Disabled"}
    assert is_no_wider(MOUNTS[1], plain)
    assert is_no_wider(plain, MOUNTS[1])


def test_the_entry_of_a_container_has_what_an_entry_can_say_and_nothing_that_is_null() -> None:
    body = {"name": "a", "image": "b*", "env": None, "workingDir": "/w", "command": ["sh"]}
    assert container_entry(body) == {"name": "a", "image": "b[*]", "command": ["sh"]}
