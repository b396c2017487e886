"""Traces: a span of each review for an OpenTelemetry collector; without it nothing is imported.

Where it is sent and how is the SDK's affair beyond the URL: its OTEL_* variables give headers,
certificates, the sampler and further attributes of the resource.
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

Attributes = Mapping[str, str | float | bool | tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Span:
    """One span before it has times; `parent` is a W3C traceparent, empty for a trace of its own."""

    name: str
    attributes: Attributes
    parent: str = ""
    failed: bool = False


def lacking() -> str:
    """What is not installed that traces need; empty when they can be sent."""
    try:
        found = importlib.util.find_spec(MODULE)
    except ModuleNotFoundError:
        found = None
    return "" if found is not None else "a URL, but the OpenTelemetry SDK is not installed"


@dataclass(frozen=True, slots=True)
class Traces:
    """The way to a collector: spans go in batches, from a thread, and are dropped when it is away."""

    provider: TracerProvider
    tracer: Tracer

    @classmethod
    def to(cls, url: str) -> Self:
        """The way to the collector at `url`. To be called in the process that will use it."""
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

    def tell(self, span: Span, seconds: float) -> None:
        """A span that ends now and took so many seconds."""
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
        """Send what is left, but do not wait long for a collector that is away."""
        ending = threading.Thread(target=self.provider.shutdown, daemon=True)
        ending.start()
        ending.join(CLOSE_SECONDS)
        if ending.is_alive():
            log.warning("the last spans were not sent in %.0f s", CLOSE_SECONDS)
