"""Storage items through both passes: what is written stays as it is, and settings that are missing."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import pytest
import yaml

from tests import building
from tests.building import container, deployment, job, mutated, pod, pytorchjob, validated
from webhook.catalog.build import Choices, assemble
from webhook.catalog.catalog import Catalog
from webhook.decision.messages import refusal
from webhook.documents.source import SourceDocument
from webhook.documents.yaml_source import read_documents
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.outcome import Allowed, Denied
from webhook.fields.storage.git_sync import is_git_image, repository_of
from webhook.policy.combine import GUARDED

WORDS = InstallationConfig(
    git_image="registry.k8s.io/git-sync/git-sync:v4.4.0",
    s3_drivers={"s3.csi.example.com": "bucketName"},
    data_volumes={"dv-1": "images"},
)
DEFAULTS = """
defaults:
  storage:
    pvc:
      instances:
        - {name: cache, claimName: team-cache, existingPvc: true, path: /cache}
        - {claimName: scratch, ephemeral: true, path: /scratch, claimInfo: {size: 5Gi}}
        - {name: Raw, ephemeral: true, path: /dev/raw, claimInfo: {size: 5Gi, volumeMode: Block}}
    configMapVolume:
      instances: [{configMap: settings, mountPath: /settings}]
      attributes: {defaultMode: '0400'}
    secretVolume: {instances: [{name: Certs, secret: certs, mountPath: /certs}]}
    emptyDirVolume: {instances: [{path: /tmp}], attributes: {sizeLimit: 1Gi}}
    s3: {instances: [{name: b, path: /b}], attributes: {bucket: shared}}
    dataVolume: {instances: [{id: dv-1, mountPath: /images}]}
    git:
      instances:
        - {repository: 'https://git.example.com/a.git', path: /a}
        - {name: Tools, path: /tools, branch: main, revision: v1.2}
      attributes: {repository: 'https://git.example.com/tools.git'}
"""
CLOSED = """
rules:
  storage:
    pvc: {instances: {canAdd: false}}
    configMapVolume: {instances: {canAdd: false}}
    secretVolume: {instances: {canAdd: false}}
    emptyDirVolume: {instances: {canAdd: false}}
    s3: {instances: {canAdd: false}}
    dataVolume: {instances: {canAdd: false}}
    git: {instances: {canAdd: false}}
"""
LOCKED = """
rules:
  storage:
    pvc: {instances: {locked: [cache, scratch, Raw]}}
    configMapVolume: {instances: {locked: [settings+/settings]}}
    secretVolume: {instances: {locked: [Certs]}}
    emptyDirVolume: {instances: {locked: [/tmp]}}
    s3: {instances: {locked: [b]}}
    dataVolume: {instances: {locked: [dv-1]}}
    git: {instances: {locked: ['https://git.example.com/a.git+/a', Tools]}}
"""
OBJECTS = {"Pod": pod, "Deployment": deployment, "Job": job, "PyTorchJob": pytorchjob}


def read(*documents: dict[str, Any]) -> list[SourceDocument]:
    found = [read_documents(yaml.safe_dump(each), "p.yaml") for each in documents]
    assert not any(faults for _, faults in found)
    return [each for documents, _ in found for each in documents]


@cache
def catalog_of(*bodies: str) -> Catalog:
    data: dict[str, Any] = {}
    for body in bodies:
        data |= yaml.safe_load(body)
    given = read(building.policy(yaml.safe_dump(data)))
    choices = Choices(GUARDED, WORDS)
    built, problems = assemble(building.shipped(), given, choices, building.table())
    assert built is not None, [each for each in problems if each.severity == "error"]
    return built


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("rules", [CLOSED, LOCKED], ids=["closed", "locked"])
def test_what_is_written_passes_both_passes_and_is_written_once(kind: str, rules: str) -> None:
    known = catalog_of(DEFAULTS, rules)
    first = mutated(known, OBJECTS[kind]())
    assert isinstance(first, Allowed), first
    assert not first.warnings
    again = mutated(known, first.object)
    assert isinstance(again, Allowed), again
    assert again.patch == ()
    final = validated(known, first.object)
    assert isinstance(final, Allowed), final


def test_what_is_locked_and_was_taken_away_is_refused() -> None:
    known = catalog_of(DEFAULTS, LOCKED)
    decision = validated(known, deployment())
    assert isinstance(decision, Denied)
    assert {(each.field, each.reason) for each in decision.violations} == {
        (f"storage.{name}", "locked")
        for name in (
            "pvc",
            "configMapVolume",
            "secretVolume",
            "emptyDirVolume",
            "s3",
            "dataVolume",
            "git",
        )
    }


@pytest.mark.parametrize("field", ["volumes", "initContainers"])
def test_what_an_update_takes_away_comes_back(field: str) -> None:
    known = catalog_of(DEFAULTS)
    first = mutated(known, deployment())
    assert isinstance(first, Allowed)
    changed = copy.deepcopy(first.object)
    spec = changed["spec"]["template"]["spec"]
    del spec[field]
    spec["containers"][0]["volumeMounts"] = []
    spec["containers"][0]["volumeDevices"] = []
    decision = mutated(known, changed, first.object)
    assert isinstance(decision, Allowed), decision
    mounted = decision.object["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
    assert {each["mountPath"] for each in mounted} >= {"/cache", "/scratch", "/settings", "/images"}


def test_a_checkout_gets_the_defaults_of_every_container() -> None:
    known = catalog_of(
        "defaults: {storage: {git: {instances: [{repository: r, path: /a}]}},"
        " security: {allowPrivilegeEscalation: false}}",
        "rules: {security: {allowPrivilegeEscalation: {canEdit: false}}}",
    )
    first = mutated(known, deployment())
    assert isinstance(first, Allowed), first
    assert isinstance(validated(known, first.object), Allowed)


ASSETS = {
    "git": ({"repository": "r", "path": "/a"}, "no-git-image"),
    "s3": ({"bucket": "b", "path": "/a"}, "no-s3-driver"),
}


@pytest.mark.parametrize("kind", ["git", "s3"])
def test_imposed_sources_without_settings_are_told_and_missed(kind: str) -> None:
    spec, reason = ASSETS[kind]
    asset = {"meta": {"id": "a", "name": "a", "kind": kind, "scope": "cluster"}, "spec": spec}
    given = read(building.policy("imposedAssets: [a]"), asset)
    built, problems = assemble(building.shipped(), given, Choices(GUARDED), building.table())
    if built is None:
        assert {each.severity for each in problems} >= {"error"}
        return
    decision = mutated(built, deployment())
    assert isinstance(decision, Denied)
    assert [each.reason for each in decision.violations] == ["locked"]
    assert [each.reason for each in decision.warnings] == [reason]


@pytest.mark.parametrize("image", [None, 7, "", "git-sync", "example.com:5000/git-sync@sha256:ab"])
def test_images_are_known_by_their_repository_unless_a_tag_is_named(image: Any) -> None:
    assert is_git_image(image, ("example.com:5000/git-sync",)) is (
        image == "example.com:5000/git-sync@sha256:ab"
    )
    assert not is_git_image(image, ("example.com:5000/git-sync:v4",))


def test_the_repository_of_an_image() -> None:
    assert repository_of("example.com:5000/a/b:v1@sha256:00") == "example.com:5000/a/b"
    assert repository_of("busybox") == "busybox"


BAD: tuple[Any, ...] = (None, 7, "x", [], {}, [None], [7], {"a": None}, [{"name": []}], True)
PLACES = (
    "configMap",
    "secret",
    "projected",
    "emptyDir",
    "persistentVolumeClaim",
    "ephemeral",
    "csi",
    "gitRepo",
)


@pytest.mark.parametrize("bad", BAD, ids=repr)
@pytest.mark.parametrize("place", PLACES)
def test_malformed_volumes_are_answered(place: str, bad: Any) -> None:
    known = catalog_of(DEFAULTS, LOCKED)
    for body in (
        {place: bad},
        {place: {"name": bad, "driver": bad, "claimName": bad, "sources": bad}},
        {place: {"volumeClaimTemplate": bad}},
        {place: {"volumeClaimTemplate": {"spec": bad}}},
        {place: {"volumeClaimTemplate": {"spec": {"accessModes": bad, "resources": bad}}}},
        {place: {"driver": "s3.csi.example.com", "volumeAttributes": bad}},
        {place: {"sources": [{"configMap": bad}, {"secret": bad}], "defaultMode": bad}},
    ):
        given = pod(container(volumeMounts=[{"name": "v", "mountPath": copy.deepcopy(bad)}]))
        given["spec"]["volumes"] = [{"name": "v", **copy.deepcopy(body)}]
        for judge in (mutated, validated):
            assert isinstance(judge(known, given), Allowed | Denied)


@pytest.mark.parametrize("bad", BAD, ids=repr)
@pytest.mark.parametrize(
    "part", ["env", "args", "command", "volumeMounts", "volumeDevices", "envFrom"]
)
def test_malformed_checkouts_are_answered(part: str, bad: Any) -> None:
    known = catalog_of(DEFAULTS, LOCKED)
    for name in ("tools", "mine"):
        sync = {"name": name, "image": WORDS.git_image, part: bad}
        given = pod(initContainers=[sync])
        for judge in (mutated, validated):
            assert isinstance(judge(known, given), Allowed | Denied)


def test_a_checkout_by_key_is_told_and_not_made() -> None:
    known = catalog_of(
        "defaults: {storage: {git: {instances: [{repository: r, path: /a,"
        " secretRef: {name: s, authenticationMethod: ssh-key}}]}}}"
    )
    decision = mutated(known, deployment())
    assert isinstance(decision, Allowed)
    assert [each.reason for each in decision.warnings] == ["no-git-key"]


def test_values_of_other_variables_are_never_told() -> None:
    known = catalog_of(
        "rules: {storage: {git: {instances: {canAdd: false},"
        " attributes: {repository: {options: [r]}}}}}"
    )
    env = [
        {"name": "GITSYNC_REPO", "value": "other"},
        {"name": "GITSYNC_PASSWORD", "value": "S3CRET"},
    ]
    sync = {"name": "sync", "image": WORDS.git_image, "env": env}
    decision = mutated(known, pod(initContainers=[sync]))
    assert isinstance(decision, Denied)
    assert "S3CRET" not in refusal(decision.violations)
    assert '"other"' not in refusal(decision.violations)
