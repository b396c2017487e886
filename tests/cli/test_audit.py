"""podgate audit: three outcomes of what is in a cluster, audit mode, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.adapters.test_kubernetes import FakeApi, api, ca, reply
from tests.cli.running import podgate
from tests.cli.test_audit_injected import Cluster, owned

__all__ = ["api", "ca"]

POLICY = """\
apiVersion: podgate.dev/v1alpha1
kind: ClusterWorkloadPolicy
metadata: {name: gpu}
spec: {enforcement: ENFORCEMENT, rules: {compute: {gpuDevicesRequest: {max: 4}}}}
"""
GPUS = {"name": "a", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 8}}}


def pod(name: str, namespace: str, **metadata: Any) -> dict[str, Any]:
    """A Pod that asks for too many GPUs."""
    head = {"name": name, "namespace": namespace, "uid": name, **metadata}
    return {"metadata": head, "spec": {"containers": [GPUS]}}


def audit(api: FakeApi, folder: Path, enforcement: str, *more: str) -> Any:
    """The command by a policy in this mode."""
    file = folder / "policy.yaml"
    file.write_text(POLICY.replace("ENFORCEMENT", enforcement))
    config = ("--kubeconfig", str(api.kubeconfig()), "--policies", str(file))
    return podgate("audit", *config, *more)


def closing(stderr: str) -> str:
    """The closing line."""
    return next(line for line in stderr.splitlines() if "policies in force" in line)


def test_the_closing_line_counts_what_is_not_evaluated(api: FakeApi, tmp_path: Path) -> None:
    pods = [pod("mine", "team-a"), pod("theirs", "elsewhere"), owned("web-1", pod("", "")["spec"])]
    Cluster(api, pods)
    done = audit(api, tmp_path, "Enforce")
    assert done.exit_code == 1
    assert closing(done.stderr) == (
        "3 objects: 0 allowed, 1 refused, 2 not evaluated (1 exempt-sender, 1 ungoverned-namespace);"
        " policies in force: system policy system (built in), cluster policy gpu"
    )
    assert audit(api, tmp_path, "Enforce", "--fail-on", "none").exit_code == 0


def test_audit_mode_is_shown_in_text_and_json(api: FakeApi, tmp_path: Path) -> None:
    Cluster(api, [pod("mine", "team-a")])
    done = audit(api, tmp_path, "Audit")
    assert done.exit_code == 0
    assert "  audit: compute.gpuDevicesRequest" in done.stdout
    assert "1 violation in audit mode" in closing(done.stderr)
    (row,) = [
        json.loads(line) for line in audit(api, tmp_path, "Audit", "-o", "json").stdout.splitlines()
    ]
    assert (row["outcome"], [each["policy"] for each in row["audit"]]) == ("allowed", ["gpu"])
    assert audit(api, tmp_path, "Audit", "--strict").exit_code == 1


def test_a_cluster_without_governed_namespaces_is_a_warning(api: FakeApi, tmp_path: Path) -> None:
    cluster = Cluster(api, [])
    cluster.status["/api/v1/namespaces"] = 200
    found = cluster.answer

    def answer(handler: Any) -> bool:
        if handler.path.partition("?")[0] == "/api/v1/namespaces":
            reply(handler, 200, json.dumps({"items": [{"metadata": {"name": "a"}}]}).encode())
            return True
        return found(handler)

    api.act = answer
    done = audit(api, tmp_path, "Enforce")
    assert "warning: no namespace is governed" in done.stderr
    assert done.exit_code == 0
    assert audit(api, tmp_path, "Enforce", "--strict").exit_code == 1
