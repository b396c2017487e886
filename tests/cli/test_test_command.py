"""podgate test: what it prints, what it writes and how it exits."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import Result
from typer.testing import CliRunner

import webhook.cases.run
from webhook.cases.case import Case
from webhook.cases.compare import compare
from webhook.cases.read import cases_in
from webhook.cli.main import app

GOLDEN = Path(__file__).parent.parent / "golden"
CASE = """\
# A comment that stays.
policies:
  - defaults: {workingDir: /work}
    rules: {workingDir: {canEdit: false}}
object:
  apiVersion: v1
  kind: Pod
  metadata: {name: p}
  spec:
    containers: [{name: main, image: a}]
"""
GOOD = "expect: {allowed: true, changes: {'spec.containers[0].workingDir': /work}}\n"
WRONG = "expect: {allowed: true, changes: {'spec.containers[0].workingDir': /home}}\n"
VARIANT = """\
variants:
  - name: another
    set: {'spec.containers[0].workingDir': /else}
    expect: {violations: [{reason: canEdit}]}
"""


def written(folder: Path, text: str, name: str = "a-case") -> Path:
    """A case's file with that text."""
    file = folder / name / "case.yaml"
    file.parent.mkdir()
    file.write_text(text)
    return file


def run(*arguments: str | Path) -> Result:
    """The command with these arguments."""
    return CliRunner().invoke(app, ["test", *map(str, arguments)])


def test_passing_cases_get_a_line_each_and_the_exit_code_0(tmp_path: Path) -> None:
    file = written(tmp_path, CASE + GOOD + VARIANT)
    result = run(tmp_path)
    assert result.stdout.splitlines() == [
        f"passed  {file.parent}",
        f"passed  {file.parent}: another",
        "2 passed, 0 failed",
    ]
    assert result.exit_code == 0


def test_a_failing_case_shows_the_difference_and_the_exit_code_is_1(tmp_path: Path) -> None:
    file = written(tmp_path, CASE + WRONG + VARIANT)
    result = run(file)
    lines = [each.strip() for each in result.stdout.splitlines()]
    assert lines[0] == f"failed  {file.parent}"
    assert "--- expected changes" in lines
    assert "+++ actual changes" in lines
    assert next(each for each in lines if "/home" in each).startswith("-")
    assert next(each for each in lines if "/work" in each).startswith("+")
    assert lines[-1] == "1 passed, 1 failed"
    assert result.exit_code == 1


UNKNOWN = "object: {apiVersion: a.example/v1, kind: Zebra, metadata: {name: z}}\n"


def test_a_case_that_nobody_evaluates_is_told_and_fails_when_strict(tmp_path: Path) -> None:
    file = written(tmp_path, f"{UNKNOWN}expect: {{allowed: true}}\n")
    result = run(tmp_path)
    assert result.stdout.splitlines() == [
        f"passed  {file.parent} (not evaluated: unknown-kind)",
        "1 passed, 0 failed, 1 not evaluated",
    ]
    assert result.exit_code == 0
    strict = run(tmp_path, "--strict")
    assert "expect notEvaluated: unknown-kind if that is meant" in strict.stdout
    assert strict.exit_code == 1
    file.write_text(f"{UNKNOWN}expect: {{allowed: true, notEvaluated: unknown-kind}}\n")
    assert run(tmp_path, "--strict").stdout.splitlines()[-1] == "1 passed, 0 failed"
    file.write_text(f"{UNKNOWN}expect: {{allowed: true, notEvaluated: no-pods}}\n")
    assert run(tmp_path).exit_code == 1


def test_a_case_without_expectations_fails(tmp_path: Path) -> None:
    written(tmp_path, CASE)
    result = run(tmp_path)
    assert "no expect" in result.stdout
    assert result.exit_code == 1


def test_update_writes_what_came_names_it_and_leaves_the_rest(tmp_path: Path) -> None:
    file = written(tmp_path, CASE + WRONG + VARIANT)
    right = written(tmp_path, CASE + GOOD, "another-case")
    result = run(tmp_path, "--update")
    assert f"updated {file.parent}\n" in result.stdout
    assert "2 passed, 0 failed, 1 updated" in result.stdout
    assert result.exit_code == 0
    assert file.read_text().startswith(CASE)
    assert right.read_text() == CASE + GOOD
    assert "3 passed, 0 failed" in run(tmp_path).stdout


@pytest.mark.parametrize(
    "text, said",
    [
        (CASE + "polices: []\n", "polices"),
        (CASE.replace("workingDir", "workingDri"), "workingDri"),
        (CASE + "variants: 3\n", "write a list"),
        (CASE.replace("kind: Pod", "kid: Pod"), "apiVersion and kind"),
        (CASE + "variants: [{name: a, set: {'kind.a.b': 1}}]\n", "kind.a.b"),
        ("a: [\n", "case.yaml"),
    ],
)
def test_a_case_that_cannot_be_run_is_told_and_the_others_run(
    tmp_path: Path, text: str, said: str
) -> None:
    written(tmp_path, text)
    written(tmp_path, CASE + GOOD, "b-case")
    result = run(tmp_path)
    assert said in result.stdout
    assert result.stdout.splitlines()[-1] == "1 passed, 0 failed, 1 cannot be run"
    assert result.exit_code == 2


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_a_folder_without_cases_is_bad_input(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    result = run(tmp_path / name)
    assert name in result.stderr
    assert result.exit_code == 2


def test_junit_names_every_case_and_holds_the_differences(tmp_path: Path) -> None:
    folder = tmp_path / "cases"
    folder.mkdir()
    written(folder, CASE + WRONG + VARIANT)
    written(folder, CASE + "polices: []\n", "bad")
    report = tmp_path / "junit.xml"
    assert run(folder, "--junit", report).exit_code == 2
    root = ElementTree.parse(report).getroot()
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("3", "1", "1")
    names = [each.get("name") for each in root.iter("testcase")]
    assert names == ["a-case", "another", "bad"]
    failure = root.find(".//failure")
    assert failure is not None
    assert "/home" in str(failure.text)


def test_junit_that_cannot_be_written_is_bad_input(tmp_path: Path) -> None:
    written(tmp_path, CASE + GOOD)
    result = run(tmp_path, "--junit", tmp_path / "no" / "such.xml")
    assert "--junit" in result.stderr
    assert result.exit_code == 2


def test_it_says_of_golden_cases_what_pytest_says() -> None:
    folder = GOLDEN / "cronjob"
    expected = [
        not compare(case.expect or {}, webhook.cases.run.run(case)) for case in cases_in(folder)
    ]
    lines = run(folder).stdout.splitlines()
    assert [each.startswith("passed") for each in lines[:-1]] == expected
    assert lines[-1] == f"{expected.count(True)} passed, {expected.count(False)} failed"


REQUEST = "request: {object: {apiVersion: v1, kind: Pod, metadata: {name: p}}, MORE}\n"
MISSHAPEN = {
    CASE + "expect: {violations: true}\n": "expect.violations: write a list",
    CASE + "expect: {audit: {a: 1}}\n": "expect.audit: write a list",
    CASE + "expect: {allowed: true, changes: [1]}\n": "expect.changes: write a map",
    CASE
    + "expect: {allowed: true, warnings: 1}\n": "expect.warnings: write a list of texts, or any",
    CASE
    + "expect: {allowed: true, warnings: [{}]}\n": "expect.warnings: write a list of texts, or any",
    CASE + "references: [1]\n" + GOOD: "references must be a map with apiVersion and kind: found",
    CASE.replace("metadata: {name: p}", "metadata: [1]") + GOOD: "object must be a map with: found",
    CASE + "crds: 1\n" + GOOD: "crds: write a list",
    REQUEST.replace("MORE", "groups: a") + GOOD: "request.groups: write a list",
    REQUEST.replace("MORE", "extra: {a: 1}") + GOOD: "request.extra.a: write a list",
    REQUEST.replace("MORE", "cluster: [1]") + GOOD: "request.cluster[0]: write a map",
    REQUEST.replace("MORE", "cluster: [{a: 1}]")
    + GOOD: "request.cluster must be a map with: found",
    REQUEST.replace("MORE", "resource: a") + GOOD: "request.resource: write a map",
    REQUEST.replace("MORE", "stage: later") + GOOD: "request.stage: write `mutate`, `validate`",
    REQUEST.replace("MORE", "replaces: 1") + GOOD: "request.replaces: write true or false",
    CASE + "workloadType: 1\n" + GOOD: "workloadType: write text",
    CASE
    + VARIANT.replace("[{reason: canEdit}]", "1"): "variants[0].expect.violations: write a list",
}


@pytest.mark.parametrize("text", MISSHAPEN, ids=list(MISSHAPEN.values()))
def test_a_part_of_another_type_is_named_and_other_cases_run(tmp_path: Path, text: str) -> None:
    file = written(tmp_path, text, "broken")
    written(tmp_path, CASE + GOOD, "sound")
    result = run(tmp_path)
    assert result.exit_code == 2
    place, fix = MISSHAPEN[text].split(": ")
    (line,) = (each for each in result.stdout.splitlines() if f"{file}:" in each)
    assert place in line
    assert fix in line
    assert result.stdout.splitlines()[-1] == "1 passed, 0 failed, 1 cannot be run"


def test_a_fault_with_one_case_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = webhook.cases.run.run

    def failing(case: Case, *more: Any) -> Any:
        if case.file.parent.name == "broken":
            raise KeyError("a bug")
        return whole(case, *more)

    monkeypatch.setattr("webhook.cli.test.run", failing)
    for name in ("a", "broken", "z"):
        written(tmp_path, CASE + GOOD, name)
    report = tmp_path / "report.xml"
    result = run(tmp_path, "--junit", report)
    assert result.exit_code == 70
    assert "podgate has a fault: KeyError at " in result.stdout
    assert "a bug" not in result.output
    assert result.stdout.splitlines()[-1] == "2 passed, 0 failed, 1 cannot be run"
    assert len(ElementTree.parse(report).findall(".//error")) == 1


@pytest.mark.parametrize("key", ["violations", "audit", "warnings"])
def test_null_where_an_expectation_has_a_list_expects_none(tmp_path: Path, key: str) -> None:
    written(tmp_path, CASE + GOOD.replace("{allowed", f"{{{key}: null, allowed"))
    result = run(tmp_path)
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "1 passed, 0 failed")
