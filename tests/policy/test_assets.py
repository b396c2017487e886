"""Reading data source assets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import building
from tests.policy.test_document import document, nested, raw
from webhook.catalog.build import Choices, assemble
from webhook.documents.yaml_source import read_documents
from webhook.evaluation.installation import InstallationConfig
from webhook.lint.advice import REASONS
from webhook.policy.asset_document import field_of, is_asset, parse_asset
from webhook.policy.policy import Asset
from webhook.policy.table import TABLE

ASSETS = Path(__file__).parents[2] / "policies" / "assets"
PAIR = """\
meta: {id: 5f0d7c1e, name: sets, kind: nfs, scope: tenant, createdBy: me}
spec: {server: nfs.example.com, path: /sets, mountPath: /sets, readOnly: true}
usedBy: []
"""


def parse(text: str) -> tuple[Asset | None, list[tuple[str, str]]]:
    asset, problems = parse_asset(document(text))
    assert all(each.fix and each.found for each in problems)
    return asset, [(each.reason, each.path) for each in problems]


def accepted(text: str) -> Asset:
    asset, problems = parse(text)
    assert asset is not None, problems
    return asset


@pytest.mark.parametrize("path", sorted(ASSETS.glob("*.yaml")), ids=lambda each: each.stem)
def test_every_example_asset_is_faultless(path: Path) -> None:
    found, faults = read_documents(path.read_text("utf-8"), str(path))
    assert found
    assert not faults
    for each in found:
        assert is_asset(each)
        asset, problems = parse_asset(each)
        assert asset is not None
        assert not problems


def test_the_bare_pair_becomes_an_item_of_the_field_of_its_kind() -> None:
    asset = accepted(PAIR)
    assert (asset.id, asset.name, asset.kind, asset.field, asset.scope) == (
        "5f0d7c1e",
        "sets",
        "nfs",
        "storage.nfs",
        "tenant",
    )
    assert {name: each.value for name, each in asset.attributes.items()} == {
        "server": "nfs.example.com",
        "path": "/sets",
        "mountPath": "/sets",
        "readOnly": True,
    }
    assert not asset.credential


def test_our_kind_holds_the_pair_and_may_leave_the_name_to_its_metadata() -> None:
    text = """\
    apiVersion: podgate.dev/v1alpha1
    kind: WorkloadAsset
    metadata: {name: models}
    spec:
      meta: {id: a-1, kind: hostPath}
      spec: {path: /models, mount: /models}
    """
    asset, problems = parse(text)
    assert asset is not None
    assert (asset.name, asset.field) == ("models", "storage.hostPath")
    assert asset.attributes["mountPath"].value == "/models"
    assert problems == [("alias", "spec.spec.mount")]


@pytest.mark.parametrize("member", ["credentialId", "passwordAssetId", "accessKeyAssetId"])
def test_an_asset_that_refers_to_a_credential_says_so(member: str) -> None:
    assert accepted(PAIR.replace("server:", f"{member}: x, server:")).credential
    assert not accepted(PAIR.replace("server:", f"{member}: null, server:")).credential


def test_kinds_that_are_no_data_sources_are_known_and_belong_to_no_field() -> None:
    assert accepted("meta: {id: a, name: b, kind: compute}\nspec: {anything: 1}").field == ""


SOURCES = {
    "pvc": ("storage.pvc", "claimName: data, existingPvc: true, path: /d, dataSharing: true"),
    "nfs": ("storage.nfs", "server: s, path: /p, mountPath: /d"),
    "hostPath": ("storage.hostPath", "path: /p, mountPath: /d, mountPropagation: None"),
    "git": ("storage.git", "repository: 'https://git.example.com/a', branch: main, path: /d"),
    "s3": ("storage.s3", "bucket: b, path: /d, url: 'https://s3.example.com'"),
    "config-map": ("storage.configMapVolume", "configMap: m, mountPath: /d, defaultMode: 0400"),
    "config_map": ("storage.configMapVolume", "configMap: m, mountPath: /d, subPath: f"),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_data_source_becomes_an_item_of_its_field(kind: str) -> None:
    path, spec = SOURCES[kind]
    asset = accepted(f"meta: {{id: a, name: b, kind: {kind}}}\nspec: {{{spec}}}")
    assert asset.field == path
    assert not asset.credential
    assert {"path", "mountPath"} & set(asset.attributes)


@pytest.mark.parametrize("kind", ["secret", "secret-volume"])
def test_a_secret_is_always_a_credential(kind: str) -> None:
    text = f"meta: {{id: a, name: b, kind: {kind}}}\nspec: {{credentialAssetId: x, mountPath: /d}}"
    asset = accepted(text)
    assert (asset.field, asset.credential) == ("storage.secretVolume", True)


@pytest.mark.parametrize(
    "kind,spec",
    [
        ("git", "repository: r, path: /d, credentialId: x"),
        ("git", "repository: r, path: /d, passwordAssetId: x"),
        ("git", "repository: r, path: /d, passwordSecret: x"),
        ("s3", "bucket: b, path: /d, accessKeyAssetId: x"),
        ("s3", "bucket: b, path: /d, accessKeySecret: x"),
    ],
)
def test_buckets_and_repositories_with_credentials_say_so(kind: str, spec: str) -> None:
    assert accepted(f"meta: {{id: a, name: b, kind: {kind}}}\nspec: {{{spec}}}").credential


@pytest.mark.parametrize(
    "kind,spec,missing",
    [
        ("git", "path: /d", "repository"),
        ("s3", "path: /d", "bucket"),
        ("pvc", "path: /d, existingPvc: true", "claimName"),
        ("pvc", "path: /d, claimName: c", "claimInfo.size"),
        ("pvc", "path: /d, claimInfo: {size: 1Gi}", "claimName"),
        ("pvc", "path: /d, ephemeral: true", "claimInfo.size"),
    ],
)
def test_what_an_imposed_item_cannot_do_without_is_told(kind: str, spec: str, missing: str) -> None:
    found, problems = parse_asset(
        document(f"meta: {{id: a, name: b, kind: {kind}}}\nspec: {{{spec}}}")
    )
    assert found is None
    assert [(each.reason, each.found) for each in problems] == [
        ("missing-value", f"spec without {missing}")
    ]


def test_every_kind_of_data_source_has_a_field() -> None:
    for kind in ("pvc", "nfs", "hostPath", "git", "s3", "config-map", "secret-volume"):
        row = field_of(kind)
        assert row is not None
        assert row.path in TABLE.fields


@pytest.mark.parametrize(
    "old,new,problems",
    [
        ("id: 5f0d7c1e, ", "", [("missing-id", "meta")]),
        ("name: sets, ", "", [("missing-name", "meta")]),
        ("kind: nfs", "kind: nsf", [("value-outside-enum", "meta.kind")]),
        ("scope: tenant", "scope: world", [("value-outside-enum", "meta.scope")]),
        ("scope: tenant", "scoop: tenant", [("unknown-field", "meta.scoop")]),
        ("server: nfs.example.com, ", "", [("missing-value", "spec")]),
        ("readOnly: true", "readOnly: maybe", [("wrong-type", "spec.readOnly")]),
        ("readOnly: true", "readonly: true, name: x", [("unknown-field", "spec.name")]),
        ("readOnly: true", "exclude: true", [("unknown-field", "spec.exclude")]),
        ("usedBy", "useBy", [("unknown-field", "useBy")]),
    ],
)
def test_each_fault_of_an_asset_is_told(
    old: str, new: str, problems: list[tuple[str, str]]
) -> None:
    asset, found = parse(PAIR.replace(old, new))
    assert asset is None
    assert [each for each in found if each[0] != "letter-case"] == problems


@pytest.mark.parametrize(
    "text,expected",
    [
        (PAIR, True),
        ("apiVersion: podgate.dev/v1\nkind: WorkloadAsset", True),
        ("apiVersion: v1\nkind: Pod\nmeta: {}\nspec: {}", False),
        ("meta: {}\npolicy: {}", False),
        ("rules: {}", False),
        ("- a", False),
    ],
)
def test_assets_are_told_from_other_documents(text: str, expected: bool) -> None:
    assert is_asset(document(text)) is expected


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {"meta": None, "spec": None},
        {"meta": [], "spec": 5},
        {"meta": {"kind": []}, "spec": {}},
        {"meta": {"kind": "nfs"}, "spec": nested(5000, "server")},
        {"meta": {"kind": "nfs"}, "spec": {f"k{index}": index for index in range(10_000)}},
        {"apiVersion": "podgate.dev/v2", "kind": "WorkloadAsset", "metadata": 3, "spec": []},
        {"meta": {None: 1, "kind": "s3", "id": {}, "name": True}, "spec": {None: None}},
    ],
    ids=range(9),
)
def test_hostile_assets_give_problems_and_never_raise(data: Any) -> None:
    is_asset(raw(data))
    asset, problems = parse_asset(raw(data))
    assert asset is None
    assert problems
    assert all(each.reason in REASONS for each in problems)


def test_an_imposed_claim_that_nobody_has_created_is_a_warning_on_the_policy() -> None:
    """It names the claim, so that an administrator knows what to create, and where."""
    documents = [
        {"meta": {"id": "a", "name": "home", "kind": "pvc", "scope": "tenant"}, "spec": CLAIM},
        building.policy("{imposedAssets: [a]}"),
    ]
    given = [each for one in documents for each in read_documents(json.dumps(one), "a.yaml")[0]]
    for on, reason, severity in (
        (False, "claim-not-created", "warning"),
        (True, "claim-created", "note"),
    ):
        choices = Choices(config=InstallationConfig(create_claims=on))
        catalog, problems = assemble(building.shipped(), given, choices, building.table())
        assert catalog is not None
        (found,) = [each for each in problems if each.reason.startswith("claim-")]
        assert (found.reason, found.severity) == (reason, severity)
        assert "PersistentVolumeClaim team-home in each governed namespace" in found.fix


CLAIM = {"claimName": "team-home", "path": "/home", "claimInfo": {"size": "10Gi"}}
