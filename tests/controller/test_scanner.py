"""Looks at what is there: they count without a report API, say so, and write once there is one."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any, cast

import pytest

import webhook.controller.audit
import webhook.controller.controller
from tests.building import catalog, policy
from tests.cli.test_audit import fail_on
from tests.listing import page, query_of
from webhook.cli import audit
from webhook.cluster.client import ApiError, ApiServer
from webhook.cluster.lease import Election
from webhook.controller.controller import AskWorkers, Controller
from webhook.controller.registration import Options, Target
from webhook.controller.reports import APIS, KINDS
from webhook.controller.scan import Scanner, api_of_reports
from webhook.service.controller_metrics import ControllerMetrics
from webhook.sources.load import Sources

Json = dict[str, Any]
NEW, OLD = APIS
RULES = "rules: {image: {options: [{value: registry.example.com/good:1}]}}"


def pod(name: str, image: str) -> Json:
    metadata = {"name": name, "namespace": "team", "uid": name}
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": image}]}}


class Cluster:
    """A played API server: a governed namespace, two Pods, and the APIs of reports that it has."""

    def __init__(self) -> None:
        self.apis: dict[str, list[str]] = {}
        self.written: list[tuple[str, Json]] = []
        self.error = 0

    async def find(self, path: str) -> Json | None:
        for api, plurals in self.apis.items():
            if path == f"/apis/{api}":
                return {"resources": [{"name": each} for each in plurals]}
        return None

    async def apply(self, path: str, body: Json) -> Json:
        if self.error:
            raise ApiError(self.error, "no such resource")
        self.written.append((path, body))
        return body

    async def ask(self, method: str, path: str, accept: str = "") -> Json:
        path, query = query_of(path)
        if path == "/api/v1/namespaces":
            labels = {"podgate.dev/governed": "true"}
            return page([{"metadata": {"name": "team", "labels": labels}}], query)
        good = pod("good", "registry.example.com/good:1")
        bad = pod("bad", "registry.example.com/bad:1")
        return page([good, bad] if path == "/api/v1/pods" else [], query)


def scanner(cluster: Cluster) -> Scanner:
    return Scanner(cast("ApiServer", cluster), "label", ControllerMetrics.new())


def look(made: Scanner) -> str:
    """One look; the metrics then."""
    asyncio.run(made.look(catalog(policy(RULES))))
    return made.metrics.text().decode()


def test_without_an_api_of_reports_a_look_counts_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = Cluster()
    made = scanner(cluster)
    for _ in range(2):
        told = look(made)
        assert 'podgate_scan_objects{result="fail"} 1.0' in told
        assert 'podgate_scan_objects{result="pass"} 1.0' in told
        assert 'podgate_scan_reports{api="none"} 1.0' in told
        assert f'podgate_scan_reports{{api="{OLD}"}} 0.0' in told
    told = (each for each in caplog.records if each.name == "podgate.scanner")
    (line,) = (each.message for each in told if each.levelno == logging.WARNING)
    assert "neither openreports.io nor wgpolicyk8s.io" in line
    assert "podgate audit" in line
    assert cluster.written == []


def test_an_api_that_comes_later_is_used_at_the_next_look_and_the_newer_one_wins(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    cluster = Cluster()
    made = scanner(cluster)
    look(made)
    for api in (OLD, NEW):
        cluster.apis[api] = [KINDS[api][1]]
        told = look(made)
        assert f'podgate_scan_reports{{api="{api}"}} 1.0' in told
        assert 'podgate_scan_reports{api="none"} 0.0' in told
        path, body = cluster.written.pop()
        assert path == f"/apis/{api}/namespaces/team/{KINDS[api][1]}/podgate"
        assert (body["summary"]["fail"], body["summary"]["pass"]) == (1, 1)
        assert f"reports are written as {api}" in caplog.messages
    cluster.apis.clear()
    assert 'podgate_scan_reports{api="none"} 1.0' in look(made)
    assert cluster.written == []


def test_a_fault_with_one_object_is_an_error_in_the_report(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        webhook.controller.audit,
        "decide_with_facts",
        fail_on("bad", webhook.controller.audit.decide_with_facts),
    )
    cluster = Cluster()
    cluster.apis[NEW] = [KINDS[NEW][1]]
    told = look(scanner(cluster))
    assert 'podgate_scan_objects{result="error"} 1.0' in told
    assert 'podgate_scan_objects{result="pass"} 1.0' in told
    _, body = cluster.written.pop()
    assert (body["summary"]["error"], body["summary"]["pass"]) == (1, 1)
    (result,) = body["results"]
    assert (result["result"], result["subjects"][0]["name"]) == ("error", "bad")
    assert "a bug" not in json.dumps(body)
    assert "Pod team/bad is not evaluated" in caplog.messages


def test_another_version_or_half_an_api_takes_no_reports() -> None:
    cluster = Cluster()
    cluster.apis = {NEW: ["clusterreports"], "wgpolicyk8s.io/v1beta1": ["policyreports"]}
    assert asyncio.run(api_of_reports(cast("ApiServer", cluster))) == ""


def test_an_api_that_goes_during_a_look_ends_no_look(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    cluster.apis, cluster.error = {OLD: ["policyreports"]}, 404
    assert 'podgate_scan_objects{result="fail"} 1.0' in look(scanner(cluster))
    assert any("cannot be written any more" in each for each in caplog.messages)
    cluster.error = 403
    with pytest.raises(ApiError):
        look(scanner(cluster))


def test_an_audit_notes_that_reports_have_nowhere_to_go() -> None:
    assert "neither openreports.io nor wgpolicyk8s.io is installed" in audit.NO_REPORTS


def test_a_controller_scans_as_soon_as_it_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not after a pause of an hour, because somebody else led when it started."""
    monkeypatch.setattr(webhook.controller.controller, "RENEWED", 0.01)
    made = Controller(
        cast("ApiServer", Cluster()),
        Sources(),
        Target(url="https://podgate.example.com"),
        Options(),
        Election("podgate-system", "podgate", "one"),
        cast("AskWorkers", None),
        scan_every=3600.0,
    )

    async def run() -> str:
        task = asyncio.create_task(made.scan_all())
        await asyncio.sleep(0)
        made.leads, made.catalog = True, catalog(policy(RULES))
        async with asyncio.timeout(30):
            while 'result="fail"} 1.0' not in (told := made.metrics.text().decode()):
                await asyncio.sleep(0.01)
        task.cancel()
        return told

    assert "podgate_scan_duration_seconds_count 1.0" in asyncio.run(run())
