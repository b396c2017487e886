"""Certificates that others keep, cert-manager or an administrator: read anew, and their ends told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from certs import authority
from webhook.catalog.watched_documents import Outcome
from webhook.cluster.client import ApiServer
from webhook.cluster.lease import Election
from webhook.controller.controller import AskWorkers, Controller
from webhook.controller.registration import Options, Target
from webhook.controller.status import LoadedGenerations
from webhook.sources.load import Sources

NOW = datetime.now(UTC)


def ca(days: float) -> bytes:
    return authority.create_authority(NOW, timedelta(days=days)).certificate_pem


def controller(bundle: bytes) -> Controller:
    made = Controller(
        cast("ApiServer", None),
        Sources(),
        Target(url="https://podgate.example.com", ca=bundle),
        Options(),
        Election("podgate-system", "podgate", "one"),
        cast("AskWorkers", None),
    )
    made.leads = True
    return made


def test_a_ca_that_somebody_exchanges_is_published_and_its_absence_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old, new, file = ca(10), ca(20), tmp_path / "ca.crt"
    made = controller(old)
    assert made.read_ca(file) == old
    assert "cannot be read again" in caplog.text
    file.write_bytes(b"")  # cert-manager has not issued yet
    assert made.read_ca(file) == old
    file.write_bytes(new)
    assert made.read_ca(file) == new


def test_readiness_and_metrics_know_the_days_of_the_published_bundle() -> None:
    made = controller(ca(20) + ca(10))
    assert made.certificate_days() == {"certificate_days": {}}
    made.report_metrics(Outcome(None, {}), LoadedGenerations(0, {}))
    assert made.certificate_days() == {"certificate_days": {"bundle": 10.0}}
    text = made.metrics.text().decode()
    (row,) = (line for line in text.splitlines() if 'part="bundle"' in line)
    assert float(row.split()[-1]) == pytest.approx((NOW + timedelta(days=10)).timestamp(), abs=5)
