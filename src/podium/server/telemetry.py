"""OpenTelemetry: sends finished traces to a collector from a separate thread, so that no question waits for it.

It is on if the environment names a collector, and needs the extra `otel`. `otel_spans` turns a trace into spans, and
OpenTelemetry's own exporter sends them.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from queue import Empty, Full, Queue
from typing import TYPE_CHECKING

from podium import __version__
from podium.errors import UsageError
from podium.team import Event, QuestionEnded
from podium.trace import Trace

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

    from podium.server.otel_spans import SpanExporter
    from podium.workers.pool import Pool


_MAX_WAITING = 4096
"""The most traces that wait. Further traces are dropped and counted."""
_FLUSH_MS = 10_000
"""Milliseconds in which the collector must take the last spans."""
_POLL_S = 0.5
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
    from podium.server.otel_spans import SpanExporter, TraceIdGenerator  # noqa: PLC0415 - needs the extra

    named = environ.get("OTEL_SERVICE_NAME") or "service.name=" in environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    own = {"service.version": __version__} | ({} if named else {"service.name": "podium"})
    ids = TraceIdGenerator()
    provider = TracerProvider(resource=Resource.create(own), id_generator=ids, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    texts = environ.get(_CAPTURE_CONTENT, "").lower() in _YES
    return Telemetry(
        provider, SpanExporter(provider.get_tracer("podium", __version__), ids, pool, texts=texts)
    )


class Telemetry:
    """Exports finished traces.

    Args:
        provider: the tracer provider, which is closed with this.
        spans: turns a trace into spans.
    """

    def __init__(self, provider: TracerProvider, spans: SpanExporter) -> None:
        self._provider = provider
        self._spans = spans
        self._traces: Queue[Trace] = Queue(_MAX_WAITING)
        self._dropped = 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="podium-telemetry", daemon=True)
        self._thread.start()

    def observer(self, *question: object) -> Callable[[Event], None]:
        """The observer of one question (an `ObserverFactory`). It is the same for all questions."""

        def observe(event: Event) -> None:
            # A plan that waits is part of the trace of the question that runs it, which has the same id.
            if isinstance(event, QuestionEnded) and event.trace.status != "planned":
                self._put(event.trace)

        return observe

    def close(self) -> None:
        """Send what is waiting and disconnect, within a few seconds. Calling twice is fine."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._thread.join(_FLUSH_MS / 1000)
        self._provider.force_flush(_FLUSH_MS)
        self._provider.shutdown()
        if self._dropped:
            _LOG.warning("%d traces were not sent: they came faster than spans are made.", self._dropped)

    def _put(self, trace: Trace) -> None:
        try:
            self._traces.put_nowait(trace)
        except Full:
            self._dropped += 1

    def _run(self) -> None:
        while True:
            try:
                trace = self._traces.get(timeout=_POLL_S)
            except Empty:
                if self._closing.is_set():
                    return
                continue
            try:
                self._spans.export(trace)
            except Exception:  # A bug here must not end the thread and with it all later traces.
                _LOG.exception("The trace %s could not be made into spans.", trace.id)
