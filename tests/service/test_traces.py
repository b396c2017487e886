"""Spans of reviews as a collector on loopback gets them over OTLP; and none of it unless asked for."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.server.test_http import (  # noqa: F401 - fixtures
    JSON,
    SECRET,
    UID,
    Documents,
    Running,
    ca,
    eventually,
    launch,
    named,
    review,
)
from webhook.server.serve import serve
from webhook.service import traces
from webhook.service.settings import Settings

if os.environ.get("CI") is None:  # CI installs everything, so that nothing is passed over there
    pytest.importorskip(traces.MODULE, reason="make setup installs the extra otel")

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@dataclass
class Collector:
    """What was received."""

    url: str
    bodies: list[tuple[str, bytes]] = field(default_factory=list)

    def spans(self) -> list[tuple[dict[str, Any], Any]]:
        """Each span with the attributes of its resource."""
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )

        found = []
        for _, body in self.bodies:
            for part in ExportTraceServiceRequest.FromString(body).resource_spans:
                resource = {each.key: each.value.string_value for each in part.resource.attributes}
                found += [(resource, span) for each in part.scope_spans for span in each.spans]
        return found


@pytest.fixture
def collector() -> Iterator[Collector]:
    """An OTLP receiver."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            told.bodies.append((self.path, body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told = Collector(f"http://127.0.0.1:{listening.server_address[1]}")
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    yield told
    listening.shutdown()
    listening.server_close()
    thread.join()


def attributes(span: Any) -> dict[str, Any]:
    """Attributes as plain values."""
    found = {}
    for each in span.attributes:
        value = getattr(each.value, each.value.WhichOneof("value"))
        if each.value.HasField("array_value"):
            value = [one.string_value for one in value.values]
        found[each.key] = value
    return found


def test_a_review_is_a_span_of_the_api_servers_trace_and_tells_no_content(
    launch: Callable[..., Running],  # noqa: F811
    collector: Collector,
) -> None:
    made = launch(traces=collector.url)
    parent = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
    before = time.time_ns()
    made.post(review(), headers=JSON | parent)
    made.post(review("second", object=named("denied")), "/validate")
    made.post(review("third", object=named("bug")))
    assert made.stop() == 0
    after = time.time_ns()
    found = {attributes(span)["podgate.uid"]: span for _, span in collector.spans()}
    told = {uid: attributes(span) for uid, span in found.items()}
    linked = found[UID]
    assert (linked.trace_id.hex(), linked.parent_span_id.hex()) == (TRACE, CALLER)
    assert (linked.name, linked.kind) == ("mutate review", 2)
    assert before <= linked.start_time_unix_nano < linked.end_time_unix_nano <= after
    facts = {key: each for key, each in told[UID].items() if "seconds" not in key}
    assert facts == {
        "podgate.uid": UID,
        "podgate.outcome": "patched",
        "podgate.kind": "Pod.v1",
        "podgate.operation": "CREATE",
        "podgate.namespace": "team-a",
        "podgate.dry_run": False,
    }
    whole = (linked.end_time_unix_nano - linked.start_time_unix_nano) / 1e9
    phases = {key: each for key, each in told[UID].items() if "seconds" in key}
    assert [key.rpartition(".")[2] for key in phases] == [
        "wait", "decode", "labels", "judge", "encode",
    ]  # fmt: skip
    assert all(each > 0 for each in phases.values())
    assert sum(phases.values()) <= whole + 1e-6
    alone = found["second"]
    assert alone.parent_span_id == b""
    assert alone.trace_id.hex() not in ("", TRACE)
    assert told["second"]["podgate.outcome"] == "denied"
    assert told["second"]["podgate.policies"] == ["p1"]
    assert [found[uid].status.code for uid in (UID, "second", "third")] == [0, 0, 2]
    for path, body in collector.bodies:
        assert path == "/v1/traces"
        for secret in (SECRET, "alice", "nodeName", "hunter2"):
            assert secret.encode() not in body
    resource, _ = collector.spans()[0]
    assert resource["service.name"] == "podgate"


def test_what_the_caller_does_not_sample_is_not_sent(
    launch: Callable[..., Running],  # noqa: F811
    collector: Collector,
) -> None:
    made = launch(traces=collector.url + "/v1/traces")
    made.post(review("unsampled"), headers=JSON | {"traceparent": f"00-{TRACE}-{CALLER}-00"})
    made.post(review("nonsense"), headers=JSON | {"traceparent": "nonsense"})
    assert made.stop() == 0
    assert [attributes(span)["podgate.uid"] for _, span in collector.spans()] == ["nonsense"]


def test_spans_come_while_it_runs(
    launch: Callable[..., Running],  # noqa: F811
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "gate-of-mine")
    made = launch(traces=collector.url)
    made.post(review())
    assert eventually(lambda: bool(collector.bodies))
    assert collector.spans()[0][0]["service.name"] == "gate-of-mine"


def test_a_collector_that_is_away_holds_up_neither_answers_nor_the_end(
    launch: Callable[..., Running],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(traces, "CLOSE_SECONDS", 0.5)
    monkeypatch.setattr(traces, "EXPORT_SECONDS", 10.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        made = launch(traces=f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert made.post(review())[0] == 200
        assert made.stop() == 0
        (closing,) = (each for each in threading.enumerate() if each.name == traces.CLOSING)
    closing.join(60)  # it would log in the middle of another test
    assert not closing.is_alive()


def test_without_the_setting_nothing_of_it_is_imported() -> None:
    program = (
        "import sys, webhook.server.serve, webhook.cli.main;"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
    assert done.returncode == 0


def test_where_the_sdk_is_not_installed_it_is_told_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(traces, "MODULE", "opentelemetry_is_not_here.exporter")
    settings = Settings.from_sources({"plain_http": True, "traces": "http://collector:4318"}, {})
    assert isinstance(settings, Settings)
    with contextlib.suppress(SystemExit):
        assert serve(settings, Documents().load) == 2
    told = capsys.readouterr().err
    assert "--traces" in told
    assert "podgate[otel]" in told
    assert "requirements-image-otel.lock" in told
