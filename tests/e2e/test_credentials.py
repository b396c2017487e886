"""A kubeconfig whose user is a program: every command that asks a cluster runs with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.running import podgate
from tests.cluster.test_credentials import Plugin, in_time
from tests.e2e.api import Api
from tests.e2e.served import Certificates
from tests.e2e.test_controller import VALIDATING, Controllers, soon
from tests.e2e.test_living_cluster import (  # noqa: F401 - fixture
    POLICIES,
    A,
    B,
    api,
    images,
    put,
    running,
)
from tests.e2e.testbed.cluster import Cluster

pytestmark = pytest.mark.e2e

COMMANDS = {
    "audit": ["audit", "--governed", "all", "--fail-on", "none"],
    "audit --candidate": [
        "audit",
        "--governed",
        "all",
        "--candidate",
        "POLICY",
        "--fail-on",
        "none",
    ],
    "audit --injected": ["audit", "--injected"],
    "crds install": ["crds", "install", "--dry-run"],
    "hooks show": ["hooks", "show"],
    "interface tree": ["interface", "tree", "deployment/none", "-n", "default"],
}


def write_kubeconfig(cluster: Cluster, plugin: Plugin, **more: Any) -> Path:
    """The admin's, with a program for its user; `more` are members of its cluster."""
    document = yaml.safe_load(cluster.kubeconfig().read_text("utf-8"))
    document["users"][0]["user"] = plugin.user(interactiveMode="Never")
    document["clusters"][0]["cluster"] |= more
    path = plugin.program.parent / "kubeconfig"
    path.write_text(json.dumps(document))
    return path


@pytest.fixture
def plugin(bare: Cluster, tmp_path: Path) -> Plugin:
    """A program that gives the admin's token, for a short time."""
    made = Plugin(tmp_path)
    made.give({"token": bare.token(), "expirationTimestamp": in_time(600)})
    return made


@pytest.mark.parametrize("name", COMMANDS)
def test_a_program_of_the_kubeconfig_gives_the_credentials(
    bare: Cluster, plugin: Plugin, tmp_path: Path, name: str
) -> None:
    candidate = tmp_path / "policy.yaml"
    candidate.write_text(json.dumps(images(A)))
    command = [each.replace("POLICY", str(candidate)) for each in COMMANDS[name]]
    done = podgate(*command, "--kubeconfig", str(write_kubeconfig(bare, plugin)))
    assert plugin.count == 1
    missing = name in ("hooks show", "interface tree")  # nothing of this name is there
    assert done.exit_code == 0 or missing, done.stderr
    assert "credentials" not in done.stderr
    assert "HTTP 401" not in done.stderr


def test_the_server_the_controller_and_hooks_use_the_program(
    bare: Cluster,
    api: Api,  # noqa: F811 - the fixture
    plugin: Plugin,
    certificates: Certificates,
    tmp_path: Path,
) -> None:
    def hooks(command: str) -> str:
        before = plugin.count
        done = podgate("hooks", command, *config)
        assert done.exit_code == 0, done.stderr
        assert plugin.count == before + 1
        return done.stdout

    config = "--kubeconfig", str(write_kubeconfig(bare, plugin))
    put(api, images(A))
    with running(bare, certificates, tmp_path, *config) as served:
        served.soon(lambda: served.all_say(B, allowed=False))
        before = plugin.count
        assert before == 2, "the check at the start, and the reading process; no worker"
        made = Controllers(bare, served.url, certificates, tmp_path)
        try:
            made.start("first", served.plain, *config)
            soon(lambda: api.find(VALIDATING), made.log)
            assert plugin.count == before + 1
            assert "fails open now" in hooks("off")
            assert "is the controller's again" in hooks("on")
        finally:
            made.stop()
            hooks("remove")
            api.request("DELETE", f"{POLICIES}/images")
    assert api.find(VALIDATING) is None
