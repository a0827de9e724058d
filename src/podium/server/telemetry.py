"""OpenTelemetry: sends finished traces to a collector.

It is on if the environment names a collector, and needs the extra `otel`. `otel_spans` turns a trace into spans, and
OpenTelemetry's own exporter sends them from a thread, so that no question waits for the collector.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from podium import __version__
from podium.errors import UsageError
from podium.trace import Trace

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

    from podium.server.otel_spans import TraceExporter
    from podium.workers.pool import Pool

_FLUSH_MS = 10_000
"""Milliseconds in which the collector must take the last spans."""
_LOG = logging.getLogger("podium.telemetry")
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_SUPPORTED = "http/protobuf"
_CAPTURE_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The variable that turns on the texts of messages."""
_YES = ("true", "1", "span_only", "span_and_event")


def open_telemetry(pool: Pool) -> Telemetry | None:
    """Open what OpenTelemetry's environment variables ask for. Returns None if they name no collector, or disable it.

    Args:
        pool: the workers, whose models the spans name.

    Raises:
        UsageError: the extra is not installed, or the protocol is not supported.
    """
    environ = os.environ
    variable = next((name for name in _ENDPOINTS if environ.get(name)), None)
    if variable is None or environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    protocol = next((environ[name] for name in _PROTOCOLS if environ.get(name)), _SUPPORTED)
    if protocol != _SUPPORTED:
        raise UsageError(
            f"{variable} is set, and spans are sent by {_SUPPORTED}, not by {protocol}; unset the protocol."
        )
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 - an extra
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError:
        raise UsageError(
            f"{variable} is set, and sending spans needs packages that are missing; install them: "
            "pip install 'podium-conductor[otel]', or unset it."
        ) from None
    from podium.server.otel_spans import TraceExporter, TraceIdGenerator  # noqa: PLC0415 - needs the extra

    named = environ.get("OTEL_SERVICE_NAME") or "service.name=" in environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    own = {"service.version": __version__} | ({} if named else {"service.name": "podium"})
    ids = TraceIdGenerator()
    provider = TracerProvider(resource=Resource.create(own), id_generator=ids, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    texts = environ.get(_CAPTURE_CONTENT, "").lower() in _YES
    return Telemetry(
        provider, TraceExporter(provider.get_tracer("podium", __version__), ids, pool, texts=texts)
    )


class Telemetry:
    """Exports finished traces.

    Args:
        provider: the tracer provider, which is closed with this.
        exporter: turns a trace into spans.
    """

    def __init__(self, provider: TracerProvider, exporter: TraceExporter) -> None:
        self._provider = provider
        self._exporter = exporter

    def close(self) -> None:
        """Send what is waiting and disconnect, within a few seconds."""
        self._provider.force_flush(_FLUSH_MS)
        self._provider.shutdown()

    def observe(self, _: object, trace: Trace) -> None:
        """Export the trace of a question that has ended (an `Observer`)."""
        # A plan that waits is part of the trace of the question that runs it, which has the same id.
        if trace.status != "planned":
            try:
                self._exporter.export(trace)
            except Exception:  # A bug here must not fail the question.
                _LOG.exception("The trace %s could not be made into spans.", trace.id)
