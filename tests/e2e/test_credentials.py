"""A kubeconfig whose user is a program: every command that asks a cluster runs with it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.running import podgate
from tests.e2e.testbed.cluster import Cluster

pytestmark = pytest.mark.e2e

COMMANDS = {
    "audit": ["audit", "--governed", "all", "--fail-on", "none"],
    "audit --injected": ["audit", "--injected"],
    "crds install": ["crds", "install", "--dry-run"],
    "hooks show": ["hooks", "show"],
    "interface tree": ["interface", "tree", "deployment/none", "-n", "default"],
}


@pytest.fixture
def kubeconfig(bare: Cluster, tmp_path: Path) -> Path:
    """The admin's, with a program that gives the same credentials, for a short time."""
    document = yaml.safe_load(bare.kubeconfig().read_text("utf-8"))
    (user,) = [each["user"] for each in document["users"]]
    files = {"clientCertificateData": "client-certificate", "clientKeyData": "client-key"}
    status: dict[str, Any] = {"token": user["token"]} if "token" in user else {}
    for key, name in files.items():
        if name in user:
            status[key] = (bare.folder / user[name]).read_text("utf-8")
    program = tmp_path / "login"
    program.write_text(
        f"#!{sys.executable}\nimport datetime, json, os\n"
        f"open({str(tmp_path / 'runs')!r}, 'a').write('x')\n"
        "until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=40)\n"
        f"status = {status!r} | {{'expirationTimestamp': until.strftime('%Y-%m-%dT%H:%M:%SZ')}}\n"
        "version = json.loads(os.environ['KUBERNETES_EXEC_INFO'])['apiVersion']\n"
        "print(json.dumps({'apiVersion': version, 'kind': 'ExecCredential', 'status': status}))\n"
    )
    program.chmod(0o755)
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./login"}
    document["users"][0]["user"] = {"exec": plugin | {"interactiveMode": "Never"}}
    for each in document["clusters"]:
        if "certificate-authority" in each["cluster"]:
            path = bare.folder / each["cluster"]["certificate-authority"]
            each["cluster"]["certificate-authority"] = str(path)
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("name", COMMANDS)
def test_a_program_of_the_kubeconfig_gives_the_credentials(
    kubeconfig: Path, tmp_path: Path, name: str
) -> None:
    done = podgate(*COMMANDS[name], "--kubeconfig", str(kubeconfig))
    assert (tmp_path / "runs").read_text() == "x"
    missing = name in ("hooks show", "interface tree")  # nothing of this name is there
    assert done.exit_code == 0 or missing, done.stderr
    assert "credentials" not in done.stderr
    assert "HTTP 401" not in done.stderr
