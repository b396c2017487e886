"""The case format: what it refuses, how it compares, how it is rewritten."""

from __future__ import annotations

from pathlib import Path

import pytest

from webhook.cases.case import BadCase
from webhook.cases.compare import compare, facts
from webhook.cases.installation import settings_of
from webhook.cases.read import cases_of
from webhook.cases.rewrite import rewrite
from webhook.cases.run import run

CASE = """\
# Kept.
systemPolicy: false
policies:
  - rules: {workingDir: {required: true}}
object:
  apiVersion: v1
  kind: Pod
  metadata: {name: p}
  spec:
    containers: [{name: main, image: a}]
"""


def written(folder: Path, text: str) -> Path:
    """A case's file with that text."""
    file = folder / "a-case" / "case.yaml"
    file.parent.mkdir()
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    "text",
    [
        CASE + "polices: []\n",
        CASE + "expect: {alowed: true}\n",
        CASE + "expect: {violations: [{resaon: max}]}\n",
        CASE + "variants: [{name: a, sets: {}}]\n",
        CASE + "expect: {allowed: true, violations: [{reason: max}]}\n",
        CASE + "request: {object: {}}\n",
        "policies: []\n",
        "- a\n",
        "a: [\n",
    ],
)
def test_a_mistake_in_a_case_is_told(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadCase, match=r"case\.yaml"):
        cases_of(written(tmp_path, text))


def test_all_mistakes_in_a_case_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
    wrong = "polices: []\nsystemPolicy: 'no'\nexpect: {warnings: 3, violations: [{resaon: max}]}\n"
    file = written(tmp_path, wrong + CASE.replace("systemPolicy: false\n", ""))
    with pytest.raises(BadCase) as caught:
        cases_of(file)
    lines = str(caught.value).splitlines()
    assert len(lines) == 4
    for line, place, fix in (
        (1, "polices", "did you mean `policies`?"),
        (2, "systemPolicy", "write true or false"),
        (3, "expect.warnings", "write a list of texts, or any"),
        (3, "expect.violations[0].resaon", "did you mean `reason`?"),
    ):
        assert any(f"case.yaml:{line}:" in e and f"{place}: " in e and fix in e for e in lines), (
            place
        )


def test_what_a_variant_sets_in_the_request_is_checked_too(tmp_path: Path) -> None:
    text = CASE.split("object:")[0] + (
        "request: {object: {apiVersion: v1, kind: Pod, metadata: {name: p}}}\n"
        "variants: [{name: a, set: {usr: someone}}]\n"
    )
    with pytest.raises(BadCase, match=r"case\.yaml:.*request\.usr: .*did you mean `user`"):
        cases_of(written(tmp_path, text))


def test_a_policy_with_an_error_is_told_with_its_line(tmp_path: Path) -> None:
    file = written(tmp_path, CASE.replace("workingDir", "workingDri"))
    with pytest.raises(BadCase, match=r"case\.yaml:4:\d+: .*workingDri"):
        run(cases_of(file)[0])


@pytest.mark.parametrize(
    "settings",
    [
        "{s3Drivers: {a: [b]}}",
        "{s3Drivers: [a]}",
        "{dataVolumes: a}",
        "{gpuResources: {a: b}}",
        "{gpuLimit: elsewhere}",
        "{gitImage: [a]}",
        "{features: 1}",
        "{severalDevices: {}}",
        "{controllers: a}",
        "{draDriverVersion: '0.9'}",
        "{draFeatureGates: {MPSSupport: maybe}}",
        "{deviceClasses: {a.example.com: tpu}}",
    ],
)
def test_a_setting_of_another_type_is_named(tmp_path: Path, settings: str) -> None:
    file = written(tmp_path, f"settings: {settings}\n{CASE}")
    with pytest.raises(
        BadCase, match=rf"case\.yaml:1:\d+: settings\.{settings[1:].partition(':')[0]}.*; write "
    ):
        run(cases_of(file)[0])


def test_settings_about_devices_have_the_names_of_the_server(tmp_path: Path) -> None:
    settings = "{draDriverVersion: '0.4', draMaxNodesPerDomain: 4, kubernetesMinor: '1.35'}"
    read = settings_of(cases_of(written(tmp_path, f"settings: {settings}\n{CASE}"))[0]).devices
    assert (read.driver_version, read.most_nodes, read.kubernetes_minor) == ("0.4", 4, 35)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("{draFeatureGates: {MPSSuport: true}}", "write MPSSupport"),
        ("{draFeatureGates: {DynamicMIG: true, MPSSupport: true}}", "does not start with both"),
        ("{draImexMode: hostManaged, draDriverVersion: '0.4'}", "since 0.5"),
    ],
)
def test_a_driver_that_would_not_start_is_told(tmp_path: Path, settings: str, told: str) -> None:
    file = written(tmp_path, f"settings: {settings}\n{CASE}")
    with pytest.raises(BadCase, match=told):
        run(cases_of(file)[0])


@pytest.mark.parametrize("minor", ["x", "1", "1.x", "1.", "1.²"])
def test_a_minor_that_is_no_version_is_told(tmp_path: Path, minor: str) -> None:
    file = written(tmp_path, f"settings: {{kubernetesMinor: '{minor}'}}\n{CASE}")
    with pytest.raises(BadCase, match="no table for Kubernetes"):
        run(cases_of(file)[0])


def test_a_minor_without_defaults_is_told(tmp_path: Path) -> None:
    file = written(tmp_path, f"settings: {{kubernetesMinor: '1.9'}}\n{CASE}")
    with pytest.raises(BadCase, match=r"no table for Kubernetes 1\.9"):
        run(cases_of(file)[0])


@pytest.mark.parametrize(
    "expect, differs",
    [
        ("{violations: [{reason: required}]}", False),
        ("{violations: [{rule: required, path: 'spec.containers[0].workingDir'}]}", False),
        ("{violations: [{reason: max}]}", True),
        ("{violations: [{reason: required}, {reason: required}]}", True),
        ("{violations: []}", True),
        ("{allowed: true}", True),
        ("{violations: [{reason: required}], warnings: [trial]}", True),
        ("{violations: [{reason: required}], warnings: any}", False),
    ],
)
def test_expectations_are_exact(tmp_path: Path, expect: str, differs: bool) -> None:
    (case,) = cases_of(written(tmp_path, f"{CASE}expect: {expect}\n"))
    assert case.expect is not None
    assert bool(compare(case.expect, run(case))) is differs


def test_a_variant_sets_and_removes_places(tmp_path: Path) -> None:
    text = CASE + (
        "variants:\n"
        "  - {name: b, set: {'spec.containers[0].workingDir': /w, 'metadata.labels[\"a/b\"]': c}}\n"
        "  - {name: c, set: {'spec.containers[0]': null}}\n"
    )
    first, second = cases_of(written(tmp_path, text))
    assert first.name == "a-case: b"
    assert first.given["object"]["metadata"]["labels"] == {"a/b": "c"}
    assert first.given["object"]["spec"]["containers"][0]["workingDir"] == "/w"
    assert second.given["object"]["spec"]["containers"] == []


def test_rewriting_changes_the_expectations_and_nothing_else(tmp_path: Path) -> None:
    text = CASE + (
        "expect: {allowed: true}  # wrong\n"
        "variants:\n"
        "  - name: b\n"
        "    set: {'spec.containers[0].workingDir': /w}\n"
        "    expect:\n"
        "      violations:\n"
        "        - {reason: max}\n"
        "  - name: c\n"
        "    set: {'spec.containers[0].workingDir': /c}\n"
    )
    file = written(tmp_path, text)
    for case in cases_of(file):
        rewrite(case, run(case))
    again = cases_of(file)
    assert file.read_text().startswith(CASE)
    assert [case.name for case in again] == ["a-case", "a-case: b", "a-case: c"]
    for case in again:
        assert case.expect is not None
        assert compare(case.expect, run(case)) == []


def test_manifests_are_read_as_kubectl_reads_them_and_policies_as_written(tmp_path: Path) -> None:
    text = CASE.replace("{required: true}", "{options: ['on', 0644]}") + "variants:\n"
    text += "  - {name: a, set: {'spec.containers[0].workingDir': '0644'}}\n"
    text += "  - {name: b, set: {'spec.containers[0].workingDir': on}}\n"
    first, second = cases_of(written(tmp_path, text))
    assert facts(run(first))["allowed"]
    assert second.given["object"]["spec"]["containers"][0]["workingDir"] is True
    assert not facts(run(second))["allowed"]
