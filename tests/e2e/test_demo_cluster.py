"""`make demo-cluster` goes as told."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.e2e.demo import MISSING
from tests.e2e.testbed.cluster import REPOSITORY

pytestmark = pytest.mark.e2e


def test_the_story_goes_as_told() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.e2e.demo"],
        cwd=REPOSITORY,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == MISSING and not os.environ.get("CI"):
        pytest.skip(f"no test bed: {done.stderr}")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "Everything went as described" in done.stdout
    assert "Stopped podgate" in done.stdout
