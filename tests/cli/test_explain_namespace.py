"""podgate explain --namespace: the whole effective policy by workload type, and as policies again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.running import podgate

ROOT = Path(__file__).parent.parent.parent
DEMO = ROOT / "policies" / "examples" / "demo"
HEAD = "apiVersion: podgate.dev/v1alpha1\n"
CLUSTER = f"{HEAD}kind: ClusterWorkloadPolicy\n"
SCOPES = f"""\
{CLUSTER}metadata: {{name: wide}}
spec:
  namespaceSelector: {{matchLabels: {{team: vision}}}}
  defaults: {{compute: {{cpuCoreRequest: 1}}, imagePullPolicy: Always}}
  rules:
    compute: {{gpuDevicesRequest: {{max: 4}}}}
    image: {{options: [a, b]}}
    workingDir: {{canEdit: false}}
---
{HEAD}kind: WorkloadPolicy
metadata: {{name: near, namespace: team-a}}
spec:
  workloadTypes: [training, distributed]
  defaults:
    compute: {{cpuCoreRequest: 2}}
    environmentVariables: {{instances: [{{name: TOKEN, value: S3CRET}}]}}
    workingDir: /near
  rules:
    compute: {{gpuDevicesRequest: {{max: 8}}}}
    image: {{options: [b, c]}}
    security: {{privileged: {{canEdit: true}}}}
    worker: {{scale: {{replicas: {{max: 3}}}}}}
---
{CLUSTER}metadata: {{name: tried}}
spec: {{enforcement: Audit, kinds: [{{group: batch, kind: Job}}], rules: {{backoffLimit: {{max: 1}}}}}}
---
{CLUSTER}metadata: {{name: elsewhere}}
spec: {{excludeNamespaces: [team-a], rules: {{terminationGracePeriodSeconds: {{max: 1}}}}}}
"""
LABELS = ("--namespace-labels", "team=vision")


def of(policies: Path, *more: str) -> Any:
    """What the command prints of the namespace."""
    return podgate("explain", "-p", str(policies), "-n", "team-a", *LABELS, *more)


@pytest.fixture
def scopes(tmp_path: Path) -> Path:
    """Policies of several scopes, modes and namespaces."""
    file = tmp_path / "policies.yaml"
    file.write_text(SCOPES)
    return file


def manifests() -> str:
    """Workloads of several types that meet the rules and break them."""
    found = []
    for kind, group in (("Job", "batch/v1"), ("Deployment", "apps/v1"), ("Pod", "v1")):
        for number, (image, gpus) in enumerate([("a", 1), ("b", 6), ("c", 2), ("b", 2)]):
            limits = {"limits": {"nvidia.com/gpu": gpus}}
            main = {"name": "m", "image": image, "resources": limits}
            if number == 3:
                main["securityContext"] = {"privileged": True}
            pod = {"spec": {"containers": [main], "restartPolicy": "Never"}}
            spec = {"backoffLimit": 3, "template": pod} if kind == "Job" else {"template": pod}
            body = {"apiVersion": group, "kind": kind, "metadata": {"name": f"w{number}"}}
            found.append(json.dumps({**body, **(pod if kind == "Pod" else {"spec": spec})}))
    return "\n---\n".join(found)


def test_the_policy_is_told_by_workload_type(scopes: Path) -> None:
    bodies = [json.loads(line) for line in of(scopes, "-o", "json").stdout.splitlines()]
    types = [each["workloadType"] for each in bodies]
    assert {"training", "distributed", "workspace", "inference", None} <= set(types)
    jobs = next(each for each in bodies if "Job.batch" in each["kinds"])
    assert [each["policy"] for each in jobs["policies"]] == ["system", "tried", "wide", "near"]
    (worker,) = [each for each in jobs["components"] if each["role"] == "worker"]
    fields = {each["field"]: each for each in worker["fields"]}
    assert fields["compute.cpuCoreRequest"]["default"]["policy"] == "near"
    assert fields["compute.gpuDevicesRequest"]["rules"][0]["argument"] == "4"
    assert fields["compute.gpuDevicesRequest"]["lost"][0]["policy"] == "near"
    assert fields["backoffLimit"]["trial"][0]["enforcement"] == "Audit"
    assert all(each["policy"] != "elsewhere" for body in bodies for each in body["policies"])


def test_as_text_it_has_a_chapter_for_each_type_and_no_secret(scopes: Path) -> None:
    told = of(scopes)
    assert told.exit_code == 0
    assert "workload type training in namespace team-a" in told.stdout
    assert "no workload type in namespace team-a" in told.stdout
    assert "max 4 - cluster policy wide" in told.stdout
    assert "TOKEN" in told.stdout
    assert "S3CRET" not in told.stdout + of(scopes, "-o", "json").stdout


def test_as_yaml_it_loads_again_and_decides_the_same(scopes: Path, tmp_path: Path) -> None:
    printed = of(scopes, "-o", "yaml")
    assert printed.exit_code == 0
    found = {each["metadata"]["name"]: each for each in yaml.safe_load_all(printed.stdout)}
    assert set(found) == {"wide", "near", "tried"}
    near = found["near"]["spec"]
    assert "gpuDevicesRequest" not in near["rules"].get("compute", {}), "the cluster's rule wins"
    assert "workingDir" not in near["defaults"], "the cluster's lock shuts it out"
    assert near["rules"]["security"] == {"privileged": {"canEdit": True}}, "it lifts the system's"
    again = tmp_path / "again.yaml"
    again.write_text(printed.stdout)
    given = manifests()
    options = ("-n", "team-a", "-o", "json", "-")
    before = podgate("apply", "-p", str(scopes), *LABELS, *options, stdin=given)
    after = podgate("apply", "-p", str(again), *options, stdin=given)
    assert before.stdout == after.stdout
    outcomes = [json.loads(line)["outcome"] for line in before.stdout.splitlines()]
    assert set(outcomes) == {"allowed", "refused"}
    twice = podgate("explain", "-p", str(again), "-n", "team-a", "-o", "yaml")
    assert [*yaml.safe_load_all(twice.stdout)] == [*yaml.safe_load_all(printed.stdout)]


def test_the_demo_decides_the_same_again(tmp_path: Path) -> None:
    options = ("-n", "team-vision", "-p")
    printed = podgate("explain", *options, str(DEMO / "policies.yaml"), "-o", "yaml")
    again = tmp_path / "again.yaml"
    again.write_text(printed.stdout)
    results = [
        podgate("apply", *options, str(each), "-o", "json", str(DEMO / "manifests")).stdout
        for each in (DEMO / "policies.yaml", again)
    ]
    assert results[0] == results[1] != ""


def test_without_policies_only_the_comments_are_there() -> None:
    printed = podgate("explain", "-n", "team-a", "-o", "yaml")
    assert printed.exit_code == 0
    assert [*yaml.safe_load_all(printed.stdout)] in ([], [None])
    assert "# training (" in printed.stdout


def test_policies_from_stdin_cannot_be_printed_again() -> None:
    done = podgate(
        "explain", "-p", "-", "-n", "team-a", "-o", "yaml", stdin="rules: {image: {options: [a]}}"
    )
    assert (done.exit_code, done.stdout) == (2, "")
    assert "give it as a file" in done.stderr


def test_without_a_namespace_kind_or_manifest_it_is_bad_input() -> None:
    done = podgate("explain")
    assert done.exit_code == 2
    assert "--namespace" in done.stderr


@pytest.mark.parametrize("rest", ["spec: {}\n", "spec: {defaults: null, rules: null}\n"])
def test_a_policy_that_says_nothing_is_left_out(tmp_path: Path, rest: str) -> None:
    file = tmp_path / "policies.yaml"
    other = f"{CLUSTER}metadata: {{name: other}}\nspec: {{defaults: {{workingDir: /a}}}}\n"
    file.write_text(f"{CLUSTER}metadata: {{name: empty}}\n{rest}---\n{other}")
    for output in ("yaml", "json", "text"):
        result = podgate("explain", "-p", str(file), "-n", "team-a", "-o", output)
        assert result.exit_code == 0, result.stderr
    names = [each["metadata"]["name"] for each in yaml.safe_load_all(of(file, "-o", "yaml").stdout)]
    assert names == ["other"]
