"""podgate crds without a cluster: what it prints, and what it says when there is nobody to ask."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.cli.running import podgate

ROOT = Path(__file__).resolve().parents[2]


def test_what_is_printed_is_what_the_files_hold() -> None:
    found = podgate("crds", "print")
    assert found.exit_code == 0
    printed = {each["metadata"]["name"]: each for each in yaml.safe_load_all(found.stdout)}
    folder = ROOT / "deploy" / "crds"
    assert list(printed) == [
        "resourceinterfaces.optimization.nvidia.com",
        "kartas.run.ai",
        "workloadpolicies.podgate.dev",
        "clusterworkloadpolicies.podgate.dev",
        "workloadassets.podgate.dev",
        "workloadprofiles.podgate.dev",
        "policyexceptions.podgate.dev",
    ]
    for name, document in printed.items():
        assert document == yaml.safe_load((folder / f"{name}.yaml").read_text("utf-8"))


def test_without_a_way_to_a_cluster_one_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    found = podgate("crds", "install")
    assert found.exit_code == 2
    assert found.stderr == (
        "error: no kubeconfig and no service account here; write --kubeconfig FILE\n"
    )


def test_a_kubeconfig_that_is_none_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config"
    file.write_text("{}", "utf-8")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'absent'}:{file}")
    found = podgate("crds", "install")
    assert found.exit_code == 2
    assert found.stderr.startswith(f"error: {file} has no current-context")
