"""podgate lint: exit codes and its three forms of output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import podgate
from webhook.lint.advice import REASONS

ROOT = Path(__file__).resolve().parent.parent.parent
HEAD = "apiVersion: podgate.dev/v1alpha1\nkind: ClusterWorkloadPolicy\nmetadata: {name: a}\nspec:\n"
CLEAN = f"{HEAD}  rules: {{compute: {{gpuDevicesRequest: {{max: 4}}}}}}\n"
ADVISED = f"{HEAD}  rules: {{nodeType: {{options: [a]}}}}\n"
WARNED = f"{HEAD}  rules: {{compute: {{gpuDevices: {{max: 4}}}}}}\n"
BROKEN = f"{HEAD}  rules: {{compute: {{gpus: {{max: 4}}, cpuCoreLimit: {{min: 5, max: 4}}}}}}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a policy is put."""
    return tmp_path / "policy with space.yaml"


@pytest.mark.parametrize(
    "text, relaxed, strict", [(CLEAN, 0, 0), (ADVISED, 0, 1), (WARNED, 0, 1), (BROKEN, 2, 2)]
)
def test_exit_codes(file: Path, text: str, relaxed: int, strict: int) -> None:
    file.write_text(text)
    assert podgate("lint", str(file)).exit_code == relaxed
    assert podgate("lint", str(file), "--strict").exit_code == strict
    for output in ("json", "sarif"):
        assert podgate("lint", str(file), "-o", output, "--strict").exit_code == strict


def test_a_file_or_folder_without_a_document_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("# nothing yet\n---\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "policy.yaml").write_text(CLEAN)
    empty, folder = str(tmp_path / "empty.yaml"), str(tmp_path / "folder")
    done = podgate("lint", empty, folder)
    assert done.stdout.splitlines() == [
        f"{empty}: warning: found no document; write a document in it, or leave it out [no-document]"
    ]
    assert done.exit_code == 0
    assert podgate("lint", "--strict", empty, folder).exit_code == 1


def test_a_claim_that_podgate_creates_is_a_note_and_fails_nothing(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = "{claimName: home, path: /home, claimInfo: {size: 1Gi}}"
    file.write_text(f"{HEAD}  defaults: {{storage: {{pvc: {{instances: [{claim}]}}}}}}\n")
    result = podgate("lint", str(file), "--strict")
    assert result.exit_code == 1
    assert "an administrator creates PersistentVolumeClaim home" in result.stdout
    monkeypatch.setenv("PODGATE_CREATE_CLAIMS", "true")
    result = podgate("lint", str(file), "--strict")
    assert (result.exit_code, result.stderr) == (0, "1 note\n")
    assert "note: found item home" in result.stdout
    assert "podgate creates PersistentVolumeClaim home" in result.stdout
    (found,) = json.loads(podgate("lint", str(file), "-o", "sarif").stdout)["runs"][0]["results"]
    assert found["level"] == "note"


def test_text_has_places_reasons_and_a_count(file: Path) -> None:
    file.write_text(BROKEN)
    result = podgate("lint", str(file))
    lines = result.stdout.splitlines()
    assert [line.rpartition("[")[2] for line in lines] == ["unknown-field]", "min-above-max]"]
    assert all(line.startswith(f"error: {file}:5:") for line in lines)
    assert result.stderr == "2 errors\n"
    file.write_text(CLEAN)
    assert podgate("lint", str(file)).stderr == "no problems\n"


def test_json_has_every_fact(file: Path) -> None:
    file.write_text(ADVISED)
    body = json.loads(podgate("lint", str(file), "-o", "json").stdout)
    (one,) = body.pop("problems")
    assert body == {"errors": 0, "warnings": 1}
    assert one["file"] == str(file)
    assert (one["line"], one["column"]) == (5, 22)
    assert one["path"] == "spec.rules.nodeType.options"
    assert (one["severity"], one["reason"]) == ("warning", "single-option")
    assert one["meaning"] == REASONS["single-option"]
    assert one["found"]
    assert one["fix"]


def test_sarif_has_rules_and_locations(file: Path) -> None:
    file.write_text(BROKEN)
    log = json.loads(podgate("lint", str(file), "-o", "sarif").stdout)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [each["id"] for each in rules] == ["min-above-max", "unknown-field"]
    assert all(each["shortDescription"]["text"].endswith(".") for each in rules)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] == "error"
        assert result["message"]["text"]
        (location,) = result["locations"]
        physical = location["physicalLocation"]
        assert physical["artifactLocation"]["uri"].endswith("/policy%20with%20space.yaml")
        assert physical["region"]["startLine"] == 5
        assert physical["region"]["startColumn"] > 1
        assert location["logicalLocations"][0]["fullyQualifiedName"].startswith("spec.rules")


def test_sarif_of_nothing_and_of_a_missing_file(file: Path) -> None:
    file.write_text(CLEAN)
    log = json.loads(podgate("lint", str(file), "-o", "sarif").stdout)
    assert log["runs"][0]["results"] == []
    result = podgate("lint", str(file) + "x", "-o", "sarif")
    (one,) = json.loads(result.stdout)["runs"][0]["results"]
    assert "region" not in one["locations"][0]["physicalLocation"]
    assert result.exit_code == 2


def test_standard_input_is_read() -> None:
    result = podgate("lint", "-", stdin=ADVISED)
    assert result.stdout.startswith("<stdin>:5:22:")


def test_definitions_and_assets_are_checked_as_well(tmp_path: Path) -> None:
    (tmp_path / "assets.yaml").write_text("meta: {id: a, kind: tape}\nspec: {}\n")
    interfaces = tmp_path / "interfaces"
    interfaces.mkdir()
    kind = (
        "apiVersion: podgate.dev/v1alpha1\nkind: WorkloadProfile\nmetadata: {name: x}\nspec: {}\n"
    )
    (interfaces / "kind.yaml").write_text(kind)
    assets = str(tmp_path / "assets.yaml")
    result = podgate("lint", assets, "--interfaces", str(interfaces))
    assert result.exit_code == 2
    assert "assets.yaml:1:" in result.stdout
    assert "kind.yaml:4:" in result.stdout


def test_words_that_do_not_exist_are_refused(file: Path) -> None:
    file.write_text(CLEAN)
    assert podgate("lint", str(file), "-o", "yaml").exit_code == 2
    assert podgate("lint", str(file), "--workload-type", "play").exit_code == 2


def test_the_examples_load() -> None:
    folder = ROOT / "policies" / "examples"
    for each in sorted(folder.glob("*.yaml")):
        result = podgate("lint", str(each), str(ROOT / "policies" / "assets"))
        assert result.exit_code == 0, result.stdout


def test_defaults_that_need_a_setting_find_it_in_the_environment(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = "{name: code, repository: 'https://git.example.com/a', path: /code}"
    file.write_text(f"{HEAD}  defaults: {{storage: {{git: {{instances: [{item}]}}}}}}\n")
    refused = podgate("lint", str(file))
    assert (refused.exit_code, "[needs-settings]" in refused.stdout) == (2, True)
    monkeypatch.setenv("PODGATE_GIT_IMAGE", "registry.example.com/git-sync:v4.4.0")
    assert podgate("lint", str(file)).exit_code == 0
    monkeypatch.setenv("PODGATE_GPU_MEMORY_UNIT", "GB")
    assert "PODGATE_GPU_MEMORY_UNIT" in podgate("lint", str(file)).stderr


def test_a_policy_without_a_namespace_is_refused_as_by_the_webhook(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(
        "apiVersion: podgate.dev/v1alpha1\nkind: WorkloadPolicy\nmetadata: {name: a}\n"
        "spec: {rules: {image: {required: true}}}\n"
    )
    assert podgate("lint", str(file)).exit_code == 2
    assert podgate("lint", "--namespace", "team", str(file)).exit_code == 0
