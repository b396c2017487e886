"""Tests of requests to API servers do not depend on how busy the machine is."""

from __future__ import annotations

import pytest

LIMITS = {
    "webhook.server.call.LOOKUP_SECONDS": 8.0,
    "webhook.cluster.namespaces.LOOKUP_TIMEOUT": 30.0,
    "webhook.cluster.lookups.LOOKUP_TIMEOUT": 30.0,
    "webhook.cluster.events.REQUEST_TIMEOUT": 30.0,
}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a look-up more time; a test of the limits sets its own."""
    for name, seconds in LIMITS.items():
        monkeypatch.setattr(name, seconds)
