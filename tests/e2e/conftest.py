"""The control plane that end-to-end tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.e2e.testbed.cluster import Cluster
from tests.e2e.testbed.missing import MissingTestbed


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A running cluster; tests are skipped where it cannot be had, but fail on CI."""
    cluster = Cluster()
    try:
        cluster.start()
    except MissingTestbed as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no test bed: {error.reason} {error.how_to_get_it}")
    try:
        yield cluster
    finally:
        cluster.stop()
