"""A collector of spans: OTLP over HTTP, decoded by OpenTelemetry's own protobuf messages."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.api.servers import wait_until


@dataclass(frozen=True)
class CollectedSpan:
    """A span as it came."""

    name: str
    trace: str
    id: str
    parent: str
    kind: int
    ok: bool
    attributes: dict[str, Any]
    resource: dict[str, Any]
    seconds: float


class Collector:
    """What a collector was sent.

    Attributes:
        url: Its endpoint.
        spans: That came.
        headers: Of each request.
        refusals: Statuses with which it answers the next requests, taking nothing.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.spans: list[CollectedSpan] = []
        self.headers: list[dict[str, str]] = []
        self.refusals: list[int] = []

    def take(self, body: bytes) -> None:
        """Keep the spans of a request."""
        for message in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource = _values(message.resource.attributes)
            for scope in message.scope_spans:
                assert scope.scope.name == "framesift"
                for span in scope.spans:
                    self.spans.append(
                        CollectedSpan(
                            span.name,
                            span.trace_id.hex(),
                            span.span_id.hex(),
                            span.parent_span_id.hex(),
                            span.kind,
                            span.status.code != 2,
                            _values(span.attributes),
                            resource,
                            (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
                        )
                    )

    def named(self, name: str, trace: str | None = None) -> list[CollectedSpan]:
        """The spans of a name, and of a trace."""
        return [span for span in self.spans if span.name == name and trace in (None, span.trace)]

    def wait_for(self, name: str, trace: str | None = None) -> list[CollectedSpan]:
        """Wait until there is a span of that name, and give all there are."""
        wait_until(lambda: bool(self.named(name, trace)))
        return self.named(name, trace)


def _values(attributes: Any) -> dict[str, Any]:
    return {each.key: _value(each.value) for each in attributes}


def _value(value: Any) -> Any:
    if value.WhichOneof("value") == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, value.WhichOneof("value"))


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.headers.append({name.lower(): text for name, text in self.headers.items()})
            assert self.path == "/v1/traces"
            assert self.headers["Content-Type"] == "application/x-protobuf"
            if collector.refusals:
                self.send_response(collector.refusals.pop(0))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if self.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            collector.take(body)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
