"""podgate convert: what goes where, and the exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.cli.running import podgate
from webhook.cli.convert import as_yaml
from webhook.documents.yaml_source import read_documents

OLD = """apiVersion: run.ai/v2alpha1
kind: TrainingPolicy
metadata: {name: limits, namespace: runai}
spec:
  image: {value: "registry.example.com/a:1"}
"""
PARTLY = f"{OLD}  wibble: {{value: 1}}\n"
API = "meta: {name: a, scope: department, departmentId: '7'}\npolicy: {rules: {image: {canEdit: false}}}\n"


@pytest.mark.parametrize(
    "text, code", [(OLD, 0), (PARTLY, 1), ("a: 1\n", 2), ("a: [\n", 2), (API, 2)]
)
def test_exit_codes(tmp_path: Path, text: str, code: int) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    result = podgate("convert", str(file))
    assert result.exit_code == code
    assert bool(result.stdout) == (code < 2)


def test_losses_go_to_stderr_and_the_rest_to_stdout() -> None:
    result = podgate("convert", "-", stdin=PARTLY)
    assert result.stderr.startswith("<stdin>:6:3: spec.wibble: not expressed: wibble;")
    assert yaml.safe_load(result.stdout)["spec"]["defaults"] == {
        "image": "registry.example.com/a:1"
    }


def test_good_documents_are_printed_beside_bad_ones_where_that_is_asked_for() -> None:
    given = f"{OLD}---\na: 1\n---\nrules: {{image: {{blocked: true}}}}\n"
    result = podgate("convert", "-", stdin=given)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "nothing is printed; --partial prints the other 2" in result.stderr
    result = podgate("convert", "--partial", "-", stdin=given)
    assert result.exit_code == 2
    kinds = [each["kind"] for each in yaml.safe_load_all(result.stdout)]
    assert kinds == ["ClusterWorkloadPolicy", "ClusterWorkloadPolicy"]


def test_ids_and_types_come_from_options() -> None:
    options = ("--scope-name", "7=x, y", "--workload-type", "training")
    result = podgate("convert", "-", *options, stdin=API)
    assert result.exit_code == 0
    spec = yaml.safe_load(result.stdout)["spec"]
    assert spec["workloadTypes"] == ["training"]
    assert spec["namespaceSelector"]["matchExpressions"][0]["values"] == ["x", "y"]


@pytest.mark.parametrize("options", [("--scope-name", "7"), ("--workload-type", "play")])
def test_options_that_mean_nothing_are_refused(options: tuple[str, str]) -> None:
    assert podgate("convert", "-", *options, stdin=API).exit_code == 2


@pytest.mark.parametrize(
    "text", ["on", "0644", "1e9", "22:30", "null", ".inf", "a: b", "plain", "yes", "''"]
)
def test_text_stays_text_for_every_reader(text: str) -> None:
    written = as_yaml([{"a": text, "b": [text, text]}])
    for kubernetes in (False, True):
        (found,), _ = read_documents(written, "written", kubernetes=kubernetes)
        assert found.data == {"a": text, "b": [text, text]}
        assert not found.texts


EMPTY = ("{}", "{defaults: null}", "{defaults: {}}", "{defaults: {modelStore: {pvc: {}}}}",
         "{rules: {compute: {}}}", "{defaults: null, rules: null}")  # fmt: skip


@pytest.mark.parametrize("spec", EMPTY)
def test_a_policy_that_says_nothing_is_converted_beside_others(tmp_path: Path, spec: str) -> None:
    head = "apiVersion: podgate.dev/v1alpha1\nkind: WorkloadPolicy\n"
    empty = f"{head}metadata: {{name: empty, namespace: a}}\nspec: {spec}\n"
    file = tmp_path / "policies.yaml"
    file.write_text(f"{empty}---\n{empty.replace('empty', 'other')}")
    result = podgate("convert", str(file))
    assert result.exit_code == 0, result.stderr
    found = list(yaml.safe_load_all(result.stdout))
    assert [each["metadata"]["name"] for each in found] == ["empty", "other"]
    file.write_text(result.stdout)
    assert podgate("lint", str(file)).exit_code == 0
