"""podgate explain: its three outputs, what it refuses, and that it keeps secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from webhook.cli.main import app

REPOSITORY = Path(__file__).parent.parent.parent
DEMO = REPOSITORY / "policies" / "examples" / "demo"
MANIFESTS = DEMO / "manifests"
MARKER = "S3CRET"
SECRETS = f"""\
defaults:
  command: "run {MARKER}"
  args: "--token {MARKER}"
  environmentVariables: {{instances: [{{name: TOKEN, value: {MARKER}}}]}}
rules:
  args: {{options: ["--token {MARKER}", "--other {MARKER}"]}}
  environmentVariables: {{instances: {{locked: [TOKEN]}}}}
"""
POD = f"""\
apiVersion: v1
kind: Pod
metadata: {{name: p, annotations: {{mine: {MARKER}}}}}
spec:
  containers:
    - name: main
      image: a
      command: ["{MARKER}"]
      args: ["{MARKER}"]
      env: [{{name: TOKEN, value: {MARKER}}}, {{name: OTHER, value: {MARKER}2}}]
"""


def run(*arguments: str | Path, policies: Path = DEMO / "policies.yaml") -> Result:
    """The command with these arguments, in the demo's namespace."""
    options = ["explain", "-p", str(policies), "-n", "team-vision"]
    return CliRunner().invoke(app, [*options, *map(str, arguments)])


def given(folder: Path, name: str, text: str) -> Path:
    """A file with that text."""
    file = folder / name
    file.write_text(text)
    return file


def field(fields: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """One field of a list of them."""
    return next(each for each in fields if each["field"] == name)


def test_the_effective_policy_of_a_kind_in_text() -> None:
    result = run("--kind", "pytorchjobs")
    assert result.exit_code == 0, result.output
    lines = [each.strip() for each in result.stdout.splitlines()]
    assert lines[0] == "PyTorchJob.kubeflow.org/v1 (distributed) in namespace team-vision"
    assert "component replica, role master" in lines
    assert "default 1 - cluster policy platform" in lines
    assert "default 4 - project policy team-vision/distributed-training" in lines
    assert any(each.startswith("lost: default 1 - cluster policy platform") for each in lines)
    assert "max 8 - project policy team-vision/distributed-training" in lines


@pytest.mark.parametrize("arguments", [["--kind", "jobset"], [MANIFESTS]])
def test_text_is_plain_and_fits_80_columns_but_for_places(arguments: list[str | Path]) -> None:
    text = run(*arguments).stdout
    assert "\x1b" not in text
    for line in text.splitlines():
        longest = max(map(len, line.split()), default=0)
        assert len(line) <= 80 or longest > 60, line
        assert line == line.rstrip()


def test_one_component_or_role() -> None:
    body = json.loads(run("--kind", "PyTorchJob", "--component", "Worker", "-o", "json").stdout)
    assert [(each["component"], each["role"]) for each in body["components"]] == [
        ("replica", "worker")
    ]
    result = run(MANIFESTS / "pytorchjob.yaml", "--component", "master", "-o", "json")
    assert [each["instance"] for each in json.loads(result.stdout)["pods"]] == ["Master"]


def test_yaml_says_what_json_says() -> None:
    as_json = run("--kind", "JobSet", "-o", "json").stdout
    assert yaml.safe_load(run("--kind", "JobSet", "-o", "yaml").stdout) == json.loads(as_json)


def test_a_kind_in_json() -> None:
    body = json.loads(run("--kind", "pytorchjobs", "-o", "json").stdout)
    worker = next(each for each in body["components"] if each["role"] == "worker")
    request = field(worker["fields"], "compute.cpuCoreRequest")
    assert request["default"] == {
        "value": 4,
        "policy": "distributed-training",
        "scope": "project",
        "namespace": "team-vision",
    }
    assert request["lost"][0]["to"]["policy"] == "distributed-training"
    items = field(worker["fields"], "environmentVariables")["items"]
    assert items[0]["attributes"] == {"name": "NCCL_DEBUG", "value": None}
    assert items[0]["locked"]


def test_one_json_object_for_each_manifest() -> None:
    result = run(MANIFESTS, "-o", "json")
    bodies = [json.loads(each) for each in result.stdout.splitlines()]
    assert {each["kind"] for each in bodies} == {
        "Deployment",
        "JobSet",
        "PyTorchJob",
        "RayCluster",
    }
    assert result.exit_code == (0 if all(each["allowed"] for each in bodies) else 1)


def test_violations_stand_with_their_values() -> None:
    result = run(MANIFESTS / "pytorchjob.yaml", "-o", "json")
    assert result.exit_code == 1
    body = json.loads(result.stdout)
    (limit,) = field(body["workload"], "backoffLimit")["values"]
    assert (limit["value"], limit["source"], limit["path"]) == (
        10,
        "request",
        "spec.runPolicy.backoffLimit",
    )
    assert [each["reason"] for each in limit["violations"]] == ["max"]
    assert body["violations"] == []


def test_a_manifest_in_text() -> None:
    text = run(MANIFESTS / "pytorchjob.yaml").stdout
    lines = [each.strip() for each in text.splitlines()]
    assert "pod at spec.pytorchReplicaSpecs.Worker.template" in lines
    assert "pytorch: 4 - default, project policy team-vision/distributed-training" in lines
    assert "at spec.containers[0].resources.requests.cpu" in lines
    assert any(each.startswith("x 8 is more than the maximum 4") for each in lines)


def test_a_kind_without_a_definition_is_told(tmp_path: Path) -> None:
    file = given(tmp_path, "m.yaml", "{apiVersion: a.example/v1, kind: Zebra, metadata: {name: z}}")
    result = run(file)
    assert "Zebra/z" in result.stdout
    assert "not evaluated: no definition covers this kind" in " ".join(result.stdout.split())
    body = json.loads(run(file, "-o", "json").stdout)
    assert (body["judged"], body["allowed"]) == (False, None)


def test_a_manifest_nested_too_deep_is_refused_and_not_taken_apart(tmp_path: Path) -> None:
    deep = '{"a": ' * 150 + "1" + "}" * 150
    text = f'{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "p"}}, "spec": {deep}}}'
    result = run(given(tmp_path, "m.json", text))
    assert "refused, 1 rule is broken" in result.stdout
    assert result.exit_code == 1


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--kind", "Pod", str(MANIFESTS)], "either --kind"),
        (["--kind", "Deploymnt"], "did you mean Deployment.apps?"),
        (["--kind", "PyTorchJob", "--component", "wroker"], "did you mean worker?"),
        (["--kind", "Pod", "--component", "zebra"], "write one of"),
        ([str(MANIFESTS), "--component", "zebra"], "no pod is of zebra"),
        (["--kind", "Pod", "-o", "xml"], "--output"),
        (["missing.yaml"], "missing.yaml"),
    ],
)
def test_bad_input_is_told(arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert said in result.stderr
    assert result.exit_code == 2


@pytest.mark.parametrize("output", ["text", "json", "yaml"])
@pytest.mark.parametrize("subject", ["kind", "manifest"])
def test_values_of_env_args_command_and_annotations_are_never_shown(
    tmp_path: Path, output: str, subject: str
) -> None:
    policies = given(tmp_path, "policy.yaml", SECRETS)
    manifest = given(tmp_path, "pod.yaml", POD)
    arguments = ["--kind", "Pod"] if subject == "kind" else [str(manifest)]
    result = run(*arguments, "-o", output, policies=policies)
    assert result.exit_code in (0, 1), result.output
    assert "TOKEN" in result.stdout
    assert MARKER not in result.stdout + result.stderr


def test_numbers_that_no_machine_word_holds_are_told(tmp_path: Path) -> None:
    policies = given(tmp_path, "policy.yaml", "rules: {scale: {replicas: {max: 9}}}")
    spec = {"replicas": 10**30, "template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    file = given(tmp_path, "d.json", json.dumps(body))
    result = run(file, "-o", "json", policies=policies)
    assert result.exit_code == 1, result.output
    assert "scale.replicas" in result.stdout


def test_why_a_kind_cannot_carry_a_field_is_told_once(tmp_path: Path) -> None:
    text = "rules: {exposedUrls: {instances: {canAdd: false}, attributes: {url: {options: [a]}}}}"
    policies = given(tmp_path, "policy.yaml", text)
    shown = run("--kind", "Pod", policies=policies).stdout
    assert shown.count("not-native") == 1
    assert "exposedUrls.url" in shown


def test_objects_and_empty_values_read_like_values(tmp_path: Path) -> None:
    terms = "[{matchExpressions: [{key: zone, operator: In, values: [a, b]}]}]"
    text = (
        f"defaults: {{nodeAffinityRequired: {{nodeSelectorTerms: {terms}}}, "
        'scheduling: {nodeName: ""}}'
    )
    policies = given(tmp_path, "policy.yaml", text)
    shown = run("--kind", "Pod", policies=policies).stdout
    assert "default zone In a b - " in shown
    assert 'default "" - ' in shown
    manifest = given(tmp_path, "pod.yaml", POD)
    assert "zone In a b - default, " in run(manifest, policies=policies).stdout


def test_settings_of_the_installation_are_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    policies = given(tmp_path, "policy.yaml", "defaults: {nodeType: a100}")
    before = run("--kind", "Service.serving.knative.dev", policies=policies).stdout
    assert "kubernetes.podspec-nodeselector" in before
    monkeypatch.setenv("PODGATE_FEATURES", "kubernetes.podspec-nodeselector")
    after = run("--kind", "Service.serving.knative.dev", policies=policies).stdout
    assert "kubernetes.podspec-nodeselector" not in after
    assert "nodeType" in after
