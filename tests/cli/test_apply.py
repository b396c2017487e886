"""podgate apply and podgate review as people call them: output, exit codes, bad input."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import podgate

ROOT = Path(__file__).resolve().parent.parent.parent
DEMO = ROOT / "policies" / "examples" / "demo"
KEYS = [
    *("source", "kind", "name", "outcome", "reason", "allowed"),
    *("object", "patch", "violations", "audit", "warnings"),
]
VIOLATION = {
    "field",
    "path",
    "value",
    "allowed",
    "rule",
    "reason",
    "policy",
    "scope",
    "message",
}
TEN_FAULTS = """\
apiVersion: podgate.dev/v1alpha1
kind: ClusterWorkloadPolicy
metadata: {name: bad}
spec:
  scopee: cluster
  workloadTypes: [training]
  kinds: [{group: ray.io, kind: RayCluster}]
  defaults:
    imagePullPolicy: Sometimes
    environmentVariables: {instances: [{name: A, value: S3CRET}, {name: A, value: S3CRET}]}
  rules:
    compute: {gpuDevicesRequest: {max: 8, min: 10}, cpuMemoryRequest: {step: 1}}
    securty: {privileged: {canEdit: false}}
    backoffLimit: {step: 0}
    image: {options: []}
    workingDir: {required: true, canEdit: false}
"""


def lines(text: str) -> list[dict[str, Any]]:
    """One JSON object a line."""
    return [json.loads(line) for line in text.splitlines()]


def test_json_output_has_one_object_per_document_with_every_member() -> None:
    policies = ("-p", str(DEMO / "policies.yaml"), "-n", "team-vision")
    done = podgate("apply", *policies, "-o", "json", str(DEMO / "manifests"))
    verdicts = lines(done.stdout)
    assert done.exit_code == 1
    assert [list(each) for each in verdicts] == [KEYS] * 4
    refused = next(each for each in verdicts if not each["allowed"])
    assert refused["kind"] == "PyTorchJob"
    assert all(set(each) == VIOLATION for each in refused["violations"])
    assert len(refused["violations"]) == 7


def test_completed_manifests_go_to_stdout_and_messages_to_stderr() -> None:
    whole = ("-p", str(DEMO / "policies.yaml"))
    done = podgate("apply", "--partial", *whole, str(DEMO / "manifests"))
    assert done.exit_code == 1
    assert "refused" not in done.stdout
    assert "PyTorchJob/resnet" in done.stderr
    again = podgate("apply", *whole, "-", stdin=done.stdout)
    assert again.stdout == done.stdout, "a second pass changes nothing"
    assert again.exit_code == 0


def test_ten_faults_are_ten_problems_with_line_path_and_fix(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(TEN_FAULTS)
    done = podgate("apply", "-p", str(bad), str(DEMO / "manifests"))
    problems = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert done.exit_code == 2
    assert done.stdout == ""
    assert len(problems) == 10, done.stderr
    for problem in problems:
        place, path, rest = problem.removeprefix("error: ").split(": ", 2)
        assert place.startswith(f"{bad}:")
        assert path.startswith("spec.")
        assert "; " in rest
    assert "S3CRET" not in done.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": [', "check indentation, quotes and brackets"),
        ("[" * 10_000, "nested deeper"),
        ("kind: Pod\n", "no apiVersion"),
        ("apiVersion: v1\nkind: Pod\nmetadata: 5\n", "metadata that is no map"),
        ("just text\n", "no map"),
        ("apiVersion: v1\nkind: Pod\nkind: Job\n", "twice"),
        ("\x00\x01", "control character"),
    ],
)
def test_bad_manifests_are_told_without_traceback(text: str, told: str) -> None:
    done = podgate("apply", "-", stdin=text)
    assert done.exit_code == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: <stdin>"), done.stderr
    if told != "control character":
        assert told in done.stderr


def test_an_object_deeper_than_the_budget_is_refused_as_the_webhook_does() -> None:
    nested = "{a: " * 150 + "1" + "}" * 150
    done = podgate("apply", "-", stdin=f"apiVersion: v1\nkind: Pod\nspec: {nested}\n")
    assert done.exit_code == 1
    assert "deeper than 100 levels" in done.stderr


def test_a_kind_without_definition_passes_and_is_told_when_it_holds_pods() -> None:
    plain = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {image: b}\n"
    pods = (
        "apiVersion: example.com/v1\nkind: Trainer\nmetadata: {name: t}\n"
        "spec: {template: {spec: {containers: [{name: a, image: x}]}}}\n"
    )
    assert "1 not evaluated (1 no-pods)" in podgate("apply", "-", stdin=plain).stderr
    done = podgate("apply", "-", stdin=pods)
    assert done.exit_code == 0
    assert "Trainer.example.com/v1" in done.stderr


def test_an_unknown_output_or_path_is_bad_input() -> None:
    assert podgate("apply", "-o", "xml", "-").exit_code == 2
    done = podgate("apply", "-p", "/no/such/file", "-")
    assert done.exit_code == 2
    assert "no such file or folder" in done.stderr


REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "u1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "namespace": "team",
        "object": {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {
                "containers": [{"name": "a", "image": "x", "securityContext": {"privileged": True}}]
            },
        },
        "userInfo": {"username": "alice"},
    },
}


def test_a_review_is_answered_with_its_uid_and_every_cause() -> None:
    done = podgate("review", "-", stdin=json.dumps(REVIEW))
    response = json.loads(done.stdout)["response"]
    assert done.exit_code == 1
    assert response["uid"] == "u1"
    assert response["status"]["details"]["causes"][0]["reason"] == "canEdit"


@pytest.mark.parametrize("text", ["{", "[]", '{"kind": "AdmissionReview"}', "a: b", ""])
def test_what_is_no_review_is_bad_input(text: str) -> None:
    done = podgate("review", "-", stdin=text)
    assert done.exit_code == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: "), done.stderr


@pytest.mark.parametrize("namespace", ["1.5", "7", "true", "[a]", "{a: b}"])
def test_a_namespace_that_is_no_text_is_an_error_of_its_document(
    tmp_path: Path, namespace: str
) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec: {containers: [{name: a}]}\n"
    file = tmp_path / "pods.yaml"
    broken = pod.replace("NAME", f"broken, namespace: {namespace}")
    file.write_text("---\n".join((pod.replace("NAME", "first"), broken, pod.replace("NAME", "z"))))
    for command in ("apply", "explain"):
        done = podgate(command, str(file), "-o", "json")
        assert done.exit_code == 2
        assert f"error: {file}:6:1: " in done.stderr
        assert "metadata.namespace that is no text" in done.stderr
        assert [json.loads(each)["name"] for each in done.stdout.splitlines()] == ["first", "z"]


@pytest.mark.parametrize(
    ("name", "value", "fix"),
    [
        ("PODGATE_GPU_MEMORY_UNIT", "stones", "Mi"),
        ("PODGATE_FEATURE", "kubernetes.podspec-nodeselector", "PODGATE_FEATURES"),
        ("PODGATE_TIME_OF_DAY", "noon", "leave it out"),
    ],
)
@pytest.mark.parametrize("command", ["apply", "explain"])
def test_nothing_is_decided_by_other_settings_than_the_environment_asks_for(
    command: str, name: str, value: str, fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    done = podgate(command, "-p", str(DEMO / "policies.yaml"), str(DEMO / "manifests"))
    assert (done.exit_code, done.stdout) == (2, "")
    assert name in done.stderr
    assert fix in done.stderr


def test_a_reader_that_has_seen_enough_is_no_fault_of_podgate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_: object) -> None:
        raise BrokenPipeError(errno.EPIPE, "nobody reads")

    monkeypatch.setattr("webhook.cli.apply.evaluate_manifest", write)
    file = tmp_path / "pod.yaml"
    file.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: []}\n")
    done = podgate("apply", str(file))
    assert done.exit_code == 1
    assert "fault" not in done.stderr
