"""What operators' own defaulting functions make of objects is what the recording has of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.core.test_operator_defaults import FUNCTIONS
from tests.e2e.testbed import golang, programs

pytestmark = pytest.mark.e2e
SOURCES = programs.PINS / "defaults"
ROWS = [json.loads(line) for line in FUNCTIONS.read_text("utf-8").splitlines()]
OPERATORS = sorted(each.name for each in SOURCES.iterdir())


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


def build(operator: str, target: Path) -> Path:
    """Build the program that runs an operator's defaulting, in the module that pins the operator."""
    module, overlay = programs.PINS / operator, target / "overlay.json"
    source = SOURCES / operator / "main.go"
    overlay.write_text(json.dumps({"Replace": {str(module / "defaults/main.go"): str(source)}}))
    flags = ("-mod=readonly", "-trimpath", "-buildvcs=false", f"-overlay={overlay}")
    golang.find().run("build", *flags, "-o", str(target / "run"), "./defaults", folder=module)
    return target / "run"


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_recording_is_what_the_operators_own_code_returns(
    operator: str, tmp_path: Path
) -> None:
    run = build(operator, tmp_path)
    rows = [each for each in ROWS if each["operator"] == operator and not each.get("read")]
    assert rows
    for row in rows:
        text = json.dumps(row["before"])
        done = subprocess.run([run], input=text, capture_output=True, text=True, check=True)
        assert without_empty(json.loads(done.stdout)) == row["after"]
