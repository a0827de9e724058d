"""A collector of OpenTelemetry spans on loopback, which reads what it is sent with OpenTelemetry's own messages."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class Collector:
    """What has arrived."""

    def __init__(self) -> None:
        self.url = ""
        self.resources: list[dict[str, Any]] = []
        self.spans: list[Any] = []
        self.paths: set[str] = set()

    def take(self, path: str, body: bytes) -> None:
        """One request of an exporter."""
        self.paths.add(path)
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resources.append(said(group.resource))
            for scope in group.scope_spans:
                self.spans.extend(scope.spans)

    def named(self, name: str) -> list[Any]:
        """The spans whose name begins so, by time."""
        found = [span for span in self.spans if span.name.startswith(name)]
        return sorted(found, key=lambda span: span.start_time_unix_nano)


def said(owner: Any) -> dict[str, Any]:
    """Attributes as plain values."""
    return {pair.key: _plain(pair.value) for pair in owner.attributes}


def _plain(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_plain(item) for item in value.array_value.values]
    return getattr(value, kind)


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that runs."""
    collector = Collector()

    class Receiving(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            collector.take(self.path, body)
            reply = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, format: str, *values: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiving)
    collector.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
