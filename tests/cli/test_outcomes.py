"""Three outcomes: allowed, refused, not evaluated with the reason; and nothing is half printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.running import podgate

GPUS = """\
apiVersion: podgate.dev/v1alpha1
kind: {kind}
metadata: {{name: gpu{place}}}
spec: {{{more}rules: {{compute: {{gpuDevicesRequest: {{max: 4}}}}}}}}
"""
EVERYWHERE = GPUS.format(kind="ClusterWorkloadPolicy", place="", more="")
PROJECT = GPUS.format(kind="WorkloadPolicy", place=", namespace: team-vision", more="")
AUDIT = GPUS.format(kind="ClusterWorkloadPolicy", place="", more="enforcement: Audit, ")


def pod(gpus: int = 8, name: str = "p", **metadata: str) -> str:
    """A Pod that asks for GPUs."""
    container = {"name": "a", "image": "x", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    body = {"metadata": {"name": name, **metadata}, "spec": {"containers": [container]}}
    return yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", **body})


PRIVILEGED = {"name": "a", "image": "x", "securityContext": {"privileged": True}}
TRAINER = yaml.safe_dump(
    {
        "apiVersion": "example.com/v1",
        "kind": "Trainer",
        "metadata": {"name": "t"},
        "spec": {"template": {"spec": {"containers": [PRIVILEGED]}}},
    }
)
CLAIM = "{apiVersion: resource.k8s.io/v1alpha3, kind: ResourceClaim, metadata: {name: c}}\n"
SLICE = "{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s}}\n"
SERVICE = "{apiVersion: v1, kind: Service, metadata: {name: s}}\n"
MISSPELT = "{apiVersion: apps/v1, kind: Deploymnt, metadata: {name: s}}\n"
OLD = "{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: s}}\n"


def files(folder: Path, manifest: str, policy: str | None = EVERYWHERE) -> list[str]:
    """The arguments of a command on a manifest, with a policy."""
    (folder / "m.yaml").write_text(manifest)
    if policy is None:
        return [str(folder / "m.yaml")]
    (folder / "p.yaml").write_text(policy)
    return ["-p", str(folder / "p.yaml"), str(folder / "m.yaml")]


def last(text: str) -> str:
    """The closing line."""
    return text.splitlines()[-1]


def verdicts(folder: Path, manifest: str, *more: str, policy: str | None = EVERYWHERE) -> Any:
    """What `apply` says of every object."""
    done = podgate("apply", "-o", "json", *more, *files(folder, manifest, policy))
    return [json.loads(line) for line in done.stdout.splitlines()]


NOT_EVALUATED = [
    (TRAINER, "unknown-kind", "seems to have are not evaluated"),
    (CLAIM, "unknown-version", "known are v1, v1beta1, v1beta2"),
    (SLICE, "no-pods", "has no pods"),
    (MISSPELT, "unknown-kind", "no definition covers this kind"),
    (OLD, "unknown-version", "known are v1"),
    (SERVICE, "no-pods", "has no pods"),
    (pod(namespace="kube-system"), "ungoverned-namespace", "does not govern its namespace"),
]


@pytest.mark.parametrize(("manifest", "reason", "text"), NOT_EVALUATED)
def test_what_nobody_evaluates_is_not_called_allowed(
    tmp_path: Path, manifest: str, reason: str, text: str
) -> None:
    (found,) = verdicts(tmp_path, manifest)
    assert (found["outcome"], found["reason"]) == ("not-evaluated", reason)
    assert found["allowed"] is None
    arguments = files(tmp_path, manifest)
    for command in ("apply", "explain"):
        done = podgate(command, "-o", "text", *arguments)
        told = " ".join(done.stdout.split())
        assert ": not evaluated: " in told
        assert text in told
        assert ": allowed" not in done.stdout
        assert f"0 allowed, 0 refused, 1 not evaluated (1 {reason})" in last(done.stderr)
        assert done.exit_code == 0
        strict = podgate(command, "--strict", *arguments)
        assert strict.exit_code == (0 if reason == "no-pods" else 1)


def test_a_namespace_labelled_as_ungoverned_is_not_evaluated(tmp_path: Path) -> None:
    labels = "{podgate.dev/governed: 'false'}"
    named = f"{{apiVersion: v1, kind: Namespace, metadata: {{name: quiet, labels: {labels}}}}}\n"
    found = verdicts(tmp_path, f"{named}---\n{pod(namespace='quiet')}---\n{pod(namespace='loud')}")
    assert [each["outcome"] for each in found] == ["not-evaluated", "not-evaluated", "refused"]
    assert found[1]["reason"] == "ungoverned-namespace"
    options = ("--namespace-labels", "podgate.dev/governed=false")
    (alone,) = verdicts(tmp_path, pod(), *options)
    assert alone["reason"] == "ungoverned-namespace"


def test_labels_of_a_namespace_among_the_manifests_select_policies(tmp_path: Path) -> None:
    chosen = "namespaceSelector: {matchLabels: {team: vision}}, "
    policy = GPUS.format(kind="ClusterWorkloadPolicy", place="", more=chosen)
    named = "{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {team: vision}}}\n"
    given = f"{pod(namespace='a')}---\n{pod(namespace='b')}---\n{named}"
    found = verdicts(tmp_path, given, policy=policy)
    assert [each["outcome"] for each in found[:2]] == ["refused", "allowed"]


def test_an_object_that_no_policy_reaches_is_not_evaluated(tmp_path: Path) -> None:
    nobody = (
        "apiVersion: podgate.dev/v1alpha1\nkind: ClusterWorkloadPolicy\nmetadata: {name: system}\n"
    )
    policy = f"{nobody}spec: {{scope: system, workloadTypes: [inference]}}\n"
    (found,) = verdicts(tmp_path, pod(), policy=policy)
    assert (found["outcome"], found["reason"]) == ("not-evaluated", "no-policy")


NO_EFFECT = [
    (None, (), "no policy is given"),
    ("# nothing yet\n", (), "is empty: it has no policy"),
    (SERVICE.replace("Service", "ConfigMap"), (), ""),
    (PROJECT, (), "give --namespace team-vision"),
    (PROJECT, ("-n", "team-visoin"), "did you mean team-vision?"),
    (PROJECT, ("-n", "payments"), "no given policy applies to Pod/p"),
    (
        "apiVersion: podgate.dev/v1alpha1\nkind: ClusterWorkloadPolicy\nmetadata: {name: a}\nspec: {}\n",
        (),
        "cluster policy a is empty",
    ),
]


@pytest.mark.parametrize("command", ["apply", "explain"])
@pytest.mark.parametrize(("policy", "options", "text"), NO_EFFECT)
def test_policies_without_effect_are_reported_and_fail_when_strict(
    tmp_path: Path, command: str, policy: str | None, options: tuple[str, ...], text: str
) -> None:
    arguments = [*options, *files(tmp_path, pod(), policy)]
    done = podgate(command, *arguments)
    if not text:  # a document of another kind is no policy at all
        assert done.exit_code == 2
        return
    assert f"warning: {text}" in done.stderr or text in done.stderr
    assert last(done.stderr).startswith("1 object: 1 allowed, 0 refused, 0 not evaluated, ")
    assert last(done.stderr).endswith("in force: system policy system (built in)") or (
        "is empty" in text
    )
    assert done.exit_code == 0
    assert podgate(command, "--strict", *arguments).exit_code == 1
    assert podgate(command, "--fail-on", "warning", *arguments).exit_code == 1


def test_the_closing_line_names_the_policies_in_force(tmp_path: Path) -> None:
    manifest = f"{pod()}---\n{pod(2, 'q')}---\n{SERVICE}---\n{TRAINER}"
    done = podgate("apply", *files(tmp_path, manifest))
    assert last(done.stderr) == (
        "4 objects: 1 allowed, 1 refused, 2 not evaluated (1 no-pods, 1 unknown-kind), 1 warning;"
        " policies in force: system policy system (built in), cluster policy gpu"
    )
    assert done.exit_code == 1


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((), 1),
        (("--fail-on", "none"), 0),
        (("--fail-on", "audit"), 0),
        (("--fail-on", "audit,refused"), 1),
        (("--fail-on", "none,refused"), 2),
        (("--fail-on", "refusal"), 2),
        (("--fail-on", ""), 2),
    ],
)
def test_what_leads_to_exit_code_1_is_chosen(
    tmp_path: Path, options: tuple[str, ...], code: int
) -> None:
    assert podgate("apply", *options, *files(tmp_path, pod())).exit_code == code


def test_policies_in_audit_mode_are_shown(tmp_path: Path) -> None:
    (found,) = verdicts(tmp_path, pod(), policy=AUDIT)
    assert [(each["field"], each["policy"]) for each in found["audit"]] == [
        ("compute.gpuDevicesRequest", "gpu")
    ]
    assert found["outcome"] == "allowed"
    arguments = files(tmp_path, pod(), AUDIT)
    told = "8 is more than the maximum 4 (cluster policy gpu)"
    for command, output in (("apply", "text"), ("explain", "text")):
        assert told in " ".join(podgate(command, "-o", output, *arguments).stdout.split())
    done = podgate("apply", *arguments)
    assert f"audit: Pod/p ({tmp_path}/m.yaml): compute.gpuDevicesRequest" in done.stderr
    assert "1 violation in audit mode" in last(done.stderr)
    assert "cluster policy gpu [Audit]" in last(done.stderr)
    assert done.exit_code == 0
    assert podgate("apply", "--fail-on", "audit", *arguments).exit_code == 1
    (explained,) = [
        json.loads(line)
        for line in podgate("explain", "-o", "json", *arguments).stdout.splitlines()
    ]
    assert [each["policy"] for each in explained["audit"]] == ["gpu"]


@pytest.mark.parametrize("bad", [pod(), "just text\n", "a: [\n"])
def test_manifests_are_printed_together_or_not_at_all(tmp_path: Path, bad: str) -> None:
    for manifest in (f"{pod(2, 'good')}---\n{bad}", f"{SERVICE}---\n{pod(2, 'good')}---\n{bad}"):
        arguments = files(tmp_path, manifest)
        done = podgate("apply", *arguments)
        assert done.exit_code in (1, 2)
        assert done.stdout == ""
        if "a: [" in bad:
            continue  # nothing of such a file can be read
        assert "--partial prints" in done.stderr
        asked = podgate("apply", "--partial", *arguments)
        assert asked.exit_code == done.exit_code
        names = [each["metadata"]["name"] for each in yaml.safe_load_all(asked.stdout)]
        assert names == (["good"] if manifest.startswith("apiVersion") else ["s", "good"])


REVIEW: dict[str, Any] = {
    "uid": "u1",
    "kind": {"group": "example.com", "version": "v1", "kind": "Trainer"},
    "resource": {"group": "example.com", "version": "v1", "resource": "trainers"},
    "operation": "CREATE",
    "namespace": "team",
    "object": yaml.safe_load(TRAINER),
    "userInfo": {"username": "alice"},
}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, "unknown-kind"),
        ({"operation": "DELETE", "object": None, "name": "t"}, "other-operation"),
    ],
)
def test_a_review_that_is_not_evaluated_has_the_reason_in_the_audit_log(
    changes: dict[str, Any], reason: str
) -> None:
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    text = json.dumps({**body, "request": {**REVIEW, **changes}})
    done = podgate("review", "-", stdin=text)
    response = json.loads(done.stdout)["response"]
    assert response["allowed"] is True
    kept = response["auditAnnotations"]
    assert (kept["decision"], kept["reason"]) == ("not-evaluated", reason)
    assert f"1 not evaluated (1 {reason})" in last(done.stderr)
    assert done.exit_code == 0
    assert podgate("review", "--strict", "-", stdin=text).exit_code == 1


@pytest.mark.parametrize("command", ["apply", "explain"])
@pytest.mark.parametrize("text", ["", "# a comment\n---\n", "kind: List\nitems: []\n"])
def test_a_file_without_objects_is_a_warning(tmp_path: Path, command: str, text: str) -> None:
    empty, *more = (tmp_path / name for name in ("empty.yaml", "pod.yaml", "folder/pod.yaml"))
    empty.write_text(text)
    (tmp_path / "folder").mkdir()
    for each in more:
        each.write_text(pod())
    given = [str(empty), str(more[0]), str(tmp_path / "folder")]
    done = podgate(command, *given)
    warnings = [each for each in done.stderr.splitlines() if "has no object" in each]
    assert warnings == [f"warning: {empty} has no object, so nothing in it is evaluated"]
    assert done.exit_code == 0
    assert podgate(command, "--strict", *given).exit_code == 1
    assert "has no object" not in podgate(command, *given[1:]).stderr
