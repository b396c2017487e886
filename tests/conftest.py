"""What tests of several layers share: CRDs and samples of other projects, from pinned archives."""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.e2e.testbed.missing import MissingTestbed
from tests.upstream import data

REPOSITORY = Path(__file__).parent.parent
# How long an example takes says how busy the machine is.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    """With `-n` alone, the tests of a file stay together: some go on where the last one ended."""
    if config.getoption("dist", "no") == "load":
        config.option.dist = "loadfile"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make quick` begins with the first tests of each file, so that none is left out as a whole."""
    if os.environ.get("TESTS_UNTIL"):
        before = Counter[Path]()
        rounds: dict[pytest.Item, int] = {}
        for item in items:
            before[item.path] += 1
            rounds[item] = before[item.path]
        items.sort(key=rounds.__getitem__)


def pytest_runtest_setup() -> None:
    """`make quick` begins no test when its time is over (TESTS_UNTIL, seconds since 1970)."""
    until = os.environ.get("TESTS_UNTIL")
    if until and time.time() > float(until):
        pytest.skip("left out: the time of make quick is over")


@pytest.fixture
def caplog(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Only podgate's records: a thread of a library may log long after the test that started it."""
    caplog.handler.addFilter(logging.Filter("podgate"))
    return caplog


@pytest.fixture(scope="session")
def upstream_data() -> Path:
    """Upstream CRDs, manifests and recorded reviews; skipped only without a registry, not on CI."""
    try:
        return data.folder()
    except MissingTestbed as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no upstream data: {error.reason} {error.how_to_get_it}")
