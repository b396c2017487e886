"""What tests of several layers share: the folder of upstream data beside the checkout."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Upstream CRDs, manifests and recorded reviews; PODGATE_SHARED names another folder."""
    folder = Path(os.environ.get("PODGATE_SHARED") or REPOSITORY.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no upstream data in {folder}: set PODGATE_SHARED to its folder")
    return folder
