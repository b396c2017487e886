"""The bed that all tests of operators share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import bed_or_skip
from tests.e2e.operators.bed import Bed, standing


@pytest.fixture(scope="session")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """A cluster with fake nodes and podgate; operators start in it when they are wanted."""
    with bed_or_skip(), standing(tmp_path_factory.mktemp("operators")) as bed:
        yield bed
        if folder := os.environ.get("PODGATE_KEEP_REVIEWS"):
            shutil.copy(bed.gate.recorder.file, Path(folder) / "operators.jsonl")
