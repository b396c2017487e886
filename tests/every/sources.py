"""The documents that commands are tried on: the project's own, and those of pinned archives."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from certs.authority import create_authority, issue_client
from tests import corpus
from tests.e2e.testbed import upstream
from tests.e2e.testbed.missing import MissingTestbed

ROOT = Path(__file__).parent.parent.parent
DEFINITIONS = ROOT / "policies" / "workloads"
LONGEST = 60_000
"""Characters of a document that is broken: a larger one takes longer, and breaks no otherwise."""
LISTS = """\
containers:
- name: mesh
  image: mesh.example.com/mesh:1
  securityContext: {runAsUser: 1337}
items:
- {field: security.hostNetwork, content: true}
- {field: storage.hostPath, content: {name: host, hostPath: {path: /run, type: ''}}}
"""
Json = dict[str, Any]


def read(files: Iterable[Path]) -> list[str]:
    """The texts of files that are not too long."""
    found = (each.read_text("utf-8", "replace") for each in files)
    return [each for each in found if len(each) <= LONGEST]


def of_archives(folder_of: Any) -> list[str]:
    """The YAML texts in one folder of every pinned archive that can be had here."""
    found: list[str] = []
    for name in corpus.PROJECTS:
        try:
            folder = upstream.module_dir(name) / folder_of(upstream.PROJECTS[name])
        except MissingTestbed:
            continue
        found += read(sorted(each for each in folder.rglob("*.yaml") if each.is_file()))
    return found


@cache
def manifests() -> list[str]:
    """Manifests of the examples and the archives."""
    own = read(sorted(ROOT.glob("policies/examples/**/manifests/*.yaml")))
    return own + of_archives(lambda each: each.samples)


@cache
def crds() -> list[str]:
    """CRDs: podgate's own, and those of the archives."""
    return read(sorted(ROOT.glob("deploy/crds/*.yaml"))) + of_archives(lambda each: each.crds)


@cache
def definitions() -> list[str]:
    """The shipped definitions of kinds."""
    return read(sorted(DEFINITIONS.glob("*.yaml")))


@cache
def golden() -> list[Json]:
    """The golden cases that are no variants of others."""
    found = (yaml.load(each, yaml.CSafeLoader) for each in cases())
    return [each for each in found if isinstance(each, dict)]


@cache
def cases() -> list[str]:
    """Golden cases as texts."""
    return read(sorted(ROOT.glob("tests/golden/**/case.yaml")))


@cache
def policies() -> list[str]:
    """Policies of the examples and of the golden cases, and assets."""
    own = ("policies/examples/**/polic*.yaml", "policies/examples/*.yaml", "policies/system.yaml")
    files = {each for pattern in (*own, "policies/assets/*.yaml") for each in ROOT.glob(pattern)}
    listed = [each for case in golden() for each in case.get("policies") or ()]
    texts = [yaml.safe_dump(each, sort_keys=False) for each in listed]
    return read(sorted(files)) + sorted(set(texts))


@cache
def reviews() -> list[str]:
    """Recorded reviews, which are JSON."""
    return read(sorted(ROOT.glob("tests/reviews/recorded/*.json")))


@cache
def kubeconfigs() -> list[str]:
    """Kubeconfigs with each way to log in, of a server that does not listen."""
    now, lifetime = datetime.now(UTC), timedelta(days=1)
    authority = create_authority(now, lifetime)
    client = issue_client(authority, "podgate", now, lifetime)
    trusted, chain, key = (
        base64.b64encode(each).decode()
        for each in (authority.certificate_pem, client.certificate_pem, client.key_pem)
    )
    users = ({"token": "abc"}, {"client-certificate-data": chain, "client-key-data": key})
    found = []
    for user in (*users, {"tokenFile": "token"}, {"exec": {"command": "login"}}):
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"certificate-authority-data": trusted}}],
            "users": [{"name": "u", "user": user}],
        }
        document["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1/base"
        found += [yaml.safe_dump(document, sort_keys=False), json.dumps(document, indent=1)]
    return found


def settings() -> list[str]:
    """Lists that settings name."""
    return [LISTS, *read([ROOT / "policies" / "trusted-mutators.yaml"])]


@cache
def live() -> list[Json]:
    """Objects as a cluster has them: those of recorded reviews, and samples of shipped kinds."""
    found = [json.loads(each)["request"].get("object") for each in reviews()]
    for text in manifests():
        try:
            found += yaml.load_all(text, yaml.CSafeLoader)
        except yaml.YAMLError:
            continue
    catalog = corpus.usual()
    objects = [each for each in found if isinstance(each, dict)]
    named = [each for each in objects if each.get("apiVersion") and each.get("kind")]
    return [each for each in named if corpus.definition_of(each, catalog) is not None]
