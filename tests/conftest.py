"""What tests of several layers share: CRDs and samples of other projects, from pinned archives."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.e2e.testbed.missing import MissingTestbed
from tests.upstream import data

REPOSITORY = Path(__file__).parent.parent
# How long an example takes says how busy the machine is.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def upstream_data() -> Path:
    """Upstream CRDs, manifests and recorded reviews; skipped only without a registry, not on CI."""
    try:
        return data.folder()
    except MissingTestbed as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no upstream data: {error.reason} {error.how_to_get_it}")
