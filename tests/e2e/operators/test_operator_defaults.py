"""What operators' own code fills in and converts is what the recordings have of it, and decided alike."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.decision.test_conversions import CONVERSIONS
from tests.decision.test_operator_defaults import FUNCTIONS, POLICIES, decide_twice
from tests.e2e.operators.cases import asked, how_to_run
from tests.e2e.testbed import golang, programs, upstream
from webhook.documents.yaml_source import read_documents

pytestmark = pytest.mark.e2e
Json = dict[str, Any]
SOURCES = programs.PINS / "defaults"


def recorded(file: Path) -> list[Json]:
    """The rows of a recording."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


ROWS, CONVERTED = recorded(FUNCTIONS), recorded(CONVERSIONS)
NAMES = sorted(each.stem for each in SOURCES.glob("*.go") if each.stem != "run")
# The tests have pins of their own for the operators that run in them, which are built anyway.
PINNED = {each for each in NAMES if (programs.PINS / each).is_dir()}


def programs_of(always: set[str]) -> pytest.MarkDecorator:
    """The programs of the operators that are asked for, and of those that always run."""
    unasked = {each for each in NAMES if each not in always and not asked(each)}
    params = [
        pytest.param(each, marks=pytest.mark.skipif(each in unasked, reason=how_to_run(each)))
        for each in NAMES
    ]
    return pytest.mark.parametrize("built", params, indirect=True)


LOCAL = re.compile(r"(\S+) => \./\S+$", re.MULTILINE)
"""A module of the same repository, whose archive lacks it."""


def without_empty(value: Any) -> Any:
    """The JSON without null creation times and the status, which Go's types always print."""
    if isinstance(value, dict):
        kept = {
            k: v
            for k, v in value.items()
            if k != "status" and (k, v) != ("creationTimestamp", None)
        }
        return {key: without_empty(each) for key, each in kept.items()}
    return [without_empty(each) for each in value] if isinstance(value, list) else value


def with_zeros(before: Any, after: Any) -> Any:
    """The operator's object with the author's zeros, which Go's types leave out and its patch keeps."""
    if isinstance(before, list) and isinstance(after, list):
        return [*map(with_zeros, before, after), *after[len(before) :]]
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    zeros = {k: v for k, v in before.items() if type(v) is int and v == 0 and k not in after}
    return {k: with_zeros(before.get(k), v) for k, v in after.items()} | zeros


def with_names(before: Any, after: Any) -> Any:
    """The author's object with the names of containers that the operator gives them.

    KServe calls the first container of a component `kserve-container`: see docs/operator-defaults.md.
    """
    if isinstance(before, list) and isinstance(after, list):
        return [*map(with_names, before, after), *before[len(after) :]]
    if not isinstance(before, dict) or not isinstance(after, dict):
        return before
    found = {k: with_names(v, after.get(k)) for k, v in before.items()}
    return found | {"name": after["name"]} if {"name", "image"} <= before.keys() else found


def write_module(operator: str, folder: Path) -> None:
    """Write a go.mod and go.sum with which a program can use the operator's packages, its own too.

    Without pins of ours it is a module below the operator's, of the same requirements.
    """
    pins = programs.PINS / operator
    if pins.is_dir():
        shutil.copy(pins / "go.mod", folder)
        shutil.copy(pins / "go.sum", folder)
        return
    module, version = upstream.find(operator).module, upstream.version(operator)
    archive, ours = upstream.module_dir(operator), (upstream.PINS / "go.sum").read_text("utf-8")
    versions = dict(re.findall(r"^(\S+) (v[^\s/]+) ", ours, re.MULTILINE))
    text = re.sub(
        r"^module .*", f"module {module}/podgate", (archive / "go.mod").read_text(), flags=re.M
    )
    text = LOCAL.sub(lambda found: f"{found[1]} => {found[1]} {versions[found[1]]}", text)
    (folder / "go.mod").write_text(f"{text}\nrequire {module} {version}\n", "utf-8")
    (folder / "go.sum").write_text((archive / "go.sum").read_text("utf-8") + ours, "utf-8")


@pytest.fixture(scope="module")
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that runs an operator's defaulting."""
    operator = str(request.param)
    folder = tmp_path_factory.mktemp(operator)
    write_module(operator, folder)
    for name in ("run.go", f"{operator}.go"):
        shutil.copy(SOURCES / name, folder)
    flags = ("-mod=readonly", "-trimpath", "-buildvcs=false")
    golang.find().run("build", *flags, "-o", operator, ".", folder=folder)
    return folder / operator


def answers(program: Path, objects: list[Json], *mode: str) -> list[Json]:
    """What the program makes of each object."""
    text = "\n".join(map(json.dumps, objects))
    done = subprocess.run([program, *mode], input=text, capture_output=True, text=True, check=True)
    return [without_empty(json.loads(line)) for line in done.stdout.splitlines()]


EACH = programs_of(PINNED)


@EACH
def test_the_recording_is_what_the_operators_own_code_returns(built: Path) -> None:
    rows = [each for each in ROWS if each["operator"] == built.name]
    assert rows
    assert answers(built, [each["before"] for each in rows]) == [each["after"] for each in rows]


@EACH
def test_the_recording_is_what_the_operators_own_code_converts(built: Path) -> None:
    for row in (each for each in CONVERTED if each["operator"] == built.name):
        (found,) = answers(built, [row["before"]], "convert")
        after = row["after"]
        # The version is written by those who call these functions.
        assert {**found, **{key: after[key] for key in ("apiVersion", "kind")}} == after


@programs_of(set())
def test_samples_are_decided_alike_before_and_after_their_operator(built: Path) -> None:
    kinds = {
        (row["before"]["apiVersion"], row["before"]["kind"])
        for row in ROWS
        if row["operator"] == built.name
    }
    project = f"operators/{built.name}" if built.name in PINNED else built.name
    samples = [
        each.data
        for file in upstream.samples(project)
        for each in read_documents(file.read_bytes(), file.name, kubernetes=True)[0]
        if isinstance(each.data, dict)
        and (each.data.get("apiVersion"), each.data.get("kind")) in kinds
    ]
    assert samples
    for before, after in zip(samples, answers(built, samples), strict=True):
        for policy in POLICIES:
            written = with_names(before, after)
            offline, cluster = decide_twice(written, with_zeros(before, after), policy)
            assert offline == cluster, (policy, before)
