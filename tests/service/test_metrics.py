"""What is counted, and that nobody can make it grow or make it say the wrong thing."""

from __future__ import annotations

import contextlib
import errno
import http.client
import json
import os
import re
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client import values

from tests.server.test_http import eventually
from webhook.libjq.worker import JqDeadlineError, JqDiedError, JqRefusedError, JqWorker
from webhook.service import metric_rows, metrics, side_port
from webhook.service.controller_metrics import ControllerMetrics
from webhook.service.metric_rows import Row
from webhook.service.metrics import MOST_NAMES, Metrics

NAME = re.compile(r"podgate_[a-z_]+")


def value(text: bytes, series: str) -> float | None:
    """The value of one series, None where there is none."""
    for line in text.decode().splitlines():
        if line.startswith(f"{series} "):
            return float(line.rpartition(" ")[2])
    return None


@pytest.mark.parametrize(
    "made, table",
    [
        (Metrics.new().registry, metric_rows.ADMISSION),
        (ControllerMetrics.new().registry, metric_rows.CONTROLLER),
    ],
)
def test_every_row_is_registered_and_nothing_else(made: object, table: tuple[Row, ...]) -> None:
    registered = {
        (each.name + ("_total" if each.type == "counter" else ""), each.type, each.documentation)
        for each in made.collect()  # type: ignore[attr-defined]
    }
    assert registered == {(each.name, each.kind, each.meaning) for each in table}


def test_what_may_be_counted_is_there_from_the_start() -> None:
    text = Metrics.new().text()
    assert value(text, 'podgate_reload_failures_total{what="catalog"}') == 0
    assert value(text, 'podgate_owner_events_total{outcome="dropped"}') == 0
    hook = metric_rows.CONFIGURATIONS[0]
    series = f'podgate_configurations_written_total{{cause="drift",configuration="{hook}"}}'
    assert value(ControllerMetrics.new().text(), series) == 0


def test_names_of_documents_that_come_and_go_do_not_make_metrics_grow() -> None:
    counted = Metrics.new()
    for number in range(MOST_NAMES + 50):
        counted.count_violation(f"policy-{number}", "max")
        counted.count_exempted(f"exception-{number}", "policy-0", "max")
    text = counted.text()
    assert value(text, 'podgate_violations_total{policy="other",rule="max"}') == 50
    series = 'podgate_exceptions_used_total{exception="other",policy="policy-0",rule="max"}'
    assert value(text, series) == 50


@pytest.fixture
def calls() -> Iterator[tuple[JqWorker, Metrics]]:
    counted = Metrics.new()
    with JqWorker(1, deadline=0.2, queue_timeout=60, on_outcome=counted.count_jq_call) as worker:
        yield worker, counted


def test_calls_of_jq_are_counted_by_what_came_of_them(calls: tuple[JqWorker, Metrics]) -> None:
    worker, counted = calls
    assert worker.evaluate(".a", b'{"a": 1}', 60.0) == [1]
    with pytest.raises(JqRefusedError):
        worker.evaluate("input", b"{}")
    worker.refuse = lambda _: None
    with pytest.raises(JqDeadlineError):
        worker.evaluate("def f: f; f", b"{}")
    text = counted.text()
    for outcome in ("answered", "refused", "deadline"):
        assert value(text, f'podgate_jq_calls_total{{outcome="{outcome}"}}') == 1
    assert value(text, "podgate_jq_deaths_total") == 0


def test_a_process_of_jq_that_dies_is_counted_in_a_call_and_between_calls(
    calls: tuple[JqWorker, Metrics],
) -> None:
    worker, counted = calls
    worker.evaluate(".", b"1", 60.0)
    process = worker.processes[0].process
    assert process is not None
    process.kill()
    process.wait()
    worker.evaluate(".", b"1", 60.0)
    text = counted.text()
    assert value(text, "podgate_jq_deaths_total") == 1
    assert value(text, 'podgate_jq_calls_total{outcome="died"}') == 0
    worker.close()
    with pytest.raises(JqDiedError):
        worker.evaluate(".", b"1")
    assert value(counted.text(), 'podgate_jq_calls_total{outcome="died"}') == 1


def test_who_does_not_lead_says_nothing_of_hooks_documents_and_certificates() -> None:
    counted = ControllerMetrics.new()
    counted.leads(True)
    hook = metric_rows.CONFIGURATIONS[1]
    counted.hooks(hook, closed=True, off=False)
    counted.set_documents([("WorkloadPolicy", "in-force"), ("WorkloadPolicy", "in-force")])
    counted.certificates({"ca": datetime(2030, 1, 1, tzinfo=UTC)})
    text = counted.text()
    assert value(text, f'podgate_hooks_fail_closed{{configuration="{hook}"}}') == 1
    assert value(text, f'podgate_hooks_switched_off{{configuration="{hook}"}}') == 0
    documents = 'podgate_documents{kind="WorkloadPolicy",state="in-force"}'
    assert value(text, documents) == 2
    assert value(text, 'podgate_certificate_not_after_seconds{part="ca"}') == 1893456000
    counted.leads(False)
    lines = [each for each in counted.text().decode().splitlines() if not each.startswith("#")]
    assert value(counted.text(), "podgate_leader") == 0
    assert not [each for each in lines if "{configuration=" in each and "_total" not in each]
    assert not [each for each in lines if each.startswith(("podgate_documents", "podgate_cert"))]


def test_a_document_that_is_gone_is_not_counted_any_more() -> None:
    counted = ControllerMetrics.new()
    counted.set_documents([("WorkloadPolicy", "faulty")])
    counted.set_documents([])
    assert value(counted.text(), 'podgate_documents{kind="WorkloadPolicy",state="faulty"}') is None


Get = Callable[[str], tuple[int, str]]


@pytest.fixture
def port() -> Iterator[tuple[Get, list[str], int]]:
    reasons: list[str] = []
    listener = socket.create_server(("127.0.0.1", 0))
    number = listener.getsockname()[1]
    pages = {
        "/readyz": side_port.probe(lambda: reasons, "ready"),
        "/metrics": side_port.metrics(Metrics.new().text),
    }
    end = side_port.start(listener, pages)

    def get(path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", number, timeout=30)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    yield get, reasons, number
    end()
    with pytest.raises(ConnectionRefusedError):
        get("/readyz")


def test_a_side_port_answers_probes_and_metrics(port: tuple[Get, list[str], int]) -> None:
    get, reasons, _ = port
    assert get("/readyz?verbose") == (200, '{"status":"ready","reasons":[]}')
    reasons.append("the cluster was not read yet")
    status, text = get("/readyz")
    assert (status, json.loads(text)["reasons"]) == (503, reasons)
    status, text = get("/metrics")
    assert status == 200
    assert "podgate_requests_total" in NAME.findall(text)
    assert get("/other")[0] == 404


def test_a_side_port_has_a_bounded_number_of_callers(port: tuple[Get, list[str], int]) -> None:
    """Who says nothing, or a byte now and then, gives way; probes are answered meanwhile."""
    get, _, number = port
    get("/readyz")
    before, held = threading.active_count(), list[socket.socket]()
    try:
        for count in range(3 * side_port.MOST):
            made = socket.create_connection(("127.0.0.1", number), timeout=60)
            held.append(made)
            if count % 2:
                made.sendall(b"GET /")
            if count % 16 == 0:
                assert get("/readyz")[0] == 200
        for each in held[: side_port.MOST]:
            with contextlib.suppress(ConnectionResetError):
                assert each.recv(1) == b""
        assert eventually(lambda: threading.active_count() <= before + side_port.MOST)
    finally:
        for each in held:
            each.close()


def test_a_full_volume_ends_no_worker_and_no_scrape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    room = [True]

    def allocate(descriptor: int, offset: int, length: int) -> None:
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        os.ftruncate(descriptor, offset + length)

    monkeypatch.setattr(os, "posix_fallocate", allocate)
    folder = metrics.share()
    assert folder is not None
    assert folder.parent == tmp_path
    try:
        shown = metrics.Metrics.new()
        shown.count_namespace_lookup("found")
        room[0] = False
        for number in range(500):  # more series than the file has blocks for
            shown.count_violation(f"policy-{number}", "rule" * 50)
        shown.count_namespace_lookup("found")
        assert b'podgate_namespace_lookups_total{outcome="found"} 1.0' in shown.text()
        with monkeypatch.context() as patch:  # a worker that starts while the volume is full
            patch.setattr(values, "ValueClass", values.MultiProcessValue(lambda: 999_999_999))
            late = metrics.Metrics.new()
            late.count_namespace_lookup("found")
        assert not list(folder.glob("*999999999*"))
        assert b'outcome="found"} 1.0' in shown.text()
    finally:
        metrics.unshare(folder)


def test_without_a_folder_each_worker_counts_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    folder = metrics.share()
    assert folder is None
    shown = metrics.Metrics.new()
    shown.count_namespace_lookup("found")
    metrics.forget(1)
    assert b'outcome="found"} 1.0' in shown.text()
    metrics.unshare(folder)


def test_a_file_of_counters_has_all_its_blocks(tmp_path: Path) -> None:
    made = metrics.Allocated(str(tmp_path / "a.db"))
    for number in range(3_000):
        made.read_value(f"series {number}")
    made.close()  # type: ignore[no-untyped-call]
    seen = (tmp_path / "a.db").stat()
    assert seen.st_size > metrics.INITIAL
    assert seen.st_blocks * 512 >= seen.st_size
