"""Every command over documents broken in many ways: no fault, no traceback, each message named.

MUTANTS=20000 tries so many; a few hundred are tried otherwise.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from tests.cli.running import podgate
from tests.mutated import mutants

REPOSITORY = Path(__file__).parent.parent.parent
COUNT = int(os.environ.get("MUTANTS") or 240)
SEED = 14
BATCH = 60
SOURCES = {
    "manifests": ("policies/examples/**/manifests/*.yaml",),
    "policies": ("policies/examples/**/polic*.yaml", "policies/system.yaml"),
    "definitions": ("policies/workloads/*.yaml",),
}
COMMANDS = {
    "manifests": (
        ("apply", "-o", "json"),
        ("apply", "-o", "text"),
        ("explain", "-o", "json"),
        ("explain",),
        ("interface", "extract", "deployments.apps"),
    ),
    "policies": (("lint",), ("lint", "-o", "sarif"), ("convert",)),
    "definitions": (
        ("interface", "check"),
        ("lint",),
        ("interface", "infer"),
        ("interface", "show"),
    ),
}
CASES = [(sort, command) for sort, several in COMMANDS.items() for command in several]


@cache
def texts(sort: str) -> list[str]:
    """The documents of the project that are broken."""
    files = [each for pattern in SOURCES[sort] for each in sorted(REPOSITORY.glob(pattern))]
    return [each.read_text("utf-8") for each in files]


@pytest.mark.parametrize(
    ("sort", "command"), CASES, ids=lambda each: "-".join(each) if isinstance(each, tuple) else each
)
def test_nothing_that_is_broken_breaks_a_command(
    sort: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    assert texts(sort)
    several = list(mutants(texts(sort), max(COUNT // len(CASES), 12), SEED))
    for start in range(0, len(several), BATCH):
        folder = tmp_path / str(start)
        folder.mkdir()
        for name, data in several[start : start + BATCH]:
            (folder / f"{name}.yaml").write_bytes(data)
        result = podgate(*command, str(folder))
        assert result.exit_code in (0, 1, 2), result.stderr[-2000:]
        assert "Traceback" not in result.output
        errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
        assert all(str(folder) in line for line in errors), errors
        assert result.exit_code != 2 or errors or str(folder) in result.stdout
