"""Traces: sends a span for each review to an OpenTelemetry collector; imports nothing if they are off.

podgate sets only the URL. The OTEL_* variables of the SDK set headers, certificates, the sampler and further
resource attributes.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Tracer

log = logging.getLogger("podgate.traces")

MODULE = "opentelemetry.exporter.otlp.proto.http"
REMEDY = (
    "install podgate[otel], build the image with --build-arg LOCK=requirements-image-otel.lock,"
    " or leave it out"
)
PATH = "/v1/traces"
EXPORT_SECONDS, CLOSE_SECONDS = 5.0, 3.0
CLOSING = "last spans"

Attributes = Mapping[str, str | float | bool | tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Span:
    """One span before it has times; `parent` is a W3C traceparent, empty for a new trace."""

    name: str
    attributes: Attributes
    parent: str = ""
    failed: bool = False


def lacking() -> str:
    """The missing packages for traces; empty if they are installed."""
    try:
        found = importlib.util.find_spec(MODULE)
    except ModuleNotFoundError:
        found = None
    return "" if found is not None else "a URL, but the OpenTelemetry SDK is not installed"


@dataclass(frozen=True, slots=True)
class Traces:
    """The connection to a collector: a thread sends spans in batches, and drops them if it is down."""

    provider: TracerProvider
    tracer: Tracer

    @classmethod
    def to(cls, url: str) -> Self:
        """Connect to the collector at `url`. Call it in the process that will use it."""
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        own = Resource.create(
            {
                "service.name": "podgate",
                "service.version": version("podgate"),
                "service.instance.id": f"{socket.gethostname()}-{os.getpid()}",
            }
        )
        resource = own.merge(OTELResourceDetector().detect())
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        target = url.rstrip("/")
        target = target if target.endswith(PATH) else target + PATH
        exporter = OTLPSpanExporter(target, timeout=EXPORT_SECONDS)
        provider.add_span_processor(BatchSpanProcessor(exporter))
        return cls(provider, provider.get_tracer("podgate", version("podgate")))

    def record(self, span: Span, seconds: float) -> None:
        """Record a span that ends now and took so many seconds."""
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        ended = time.time_ns()
        begun = ended - int(seconds * 1e9)
        context = Context()
        if span.parent:
            carrier = {"traceparent": span.parent}
            context = TraceContextTextMapPropagator().extract(carrier, context)
        made = self.tracer.start_span(
            span.name, context, SpanKind.SERVER, span.attributes, start_time=begun
        )
        if span.failed:
            made.set_status(StatusCode.ERROR)
        made.end(ended)

    def close(self) -> None:
        """Send what is left, but do not wait long for a collector that is down."""
        ending = threading.Thread(target=self.provider.shutdown, name=CLOSING, daemon=True)
        ending.start()
        ending.join(CLOSE_SECONDS)
        if ending.is_alive():
            log.warning("the last spans were not sent in %.0f s", CLOSE_SECONDS)
