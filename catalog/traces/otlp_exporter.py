"""Sends spans to a collector by OTLP: protobuf over HTTP.

OpenTelemetry's own exporter needs a protobuf that TensorFlow 2.15 refuses, so one environment could
not both train and trace: docs/decisions/0129.
"""

import gzip
import logging
import random
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Status
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.util.re import parse_env_headers

from catalog.errors import InvalidInput
from catalog.traces.settings import Collector

_LOG = logging.getLogger(__name__)

_AGAIN = frozenset({429, 502, 503, 504})
"""Statuses after which the protocol has a client try again."""
_FIRST_PAUSE_S = 1.0
_QUIET_S = 60.0
"""Between two lines in the log about a collector that does not take spans."""
_HAS_IS_REMOTE, _IS_REMOTE = 0x100, 0x200
"""Flags of a span beside W3C's: whether its parent's process is another is known, and is so."""


class OtlpExporter(SpanExporter):
    """Sends each batch, and tries again for a while where the collector cannot take it."""

    def __init__(self, collector: Collector) -> None:
        """Connect to nothing yet.

        Raises:
            InvalidInput: The authorities' file cannot be read.
        """
        self._collector = collector
        self._ended = threading.Event()
        self._told_at = float("-inf")
        self._headers = {
            "Content-Type": "application/x-protobuf",
            **({"Content-Encoding": "gzip"} if collector.compresses else {}),
            **parse_env_headers(collector.headers, liberal=True),
        }
        try:
            trusted = ssl.create_default_context(cafile=collector.certificate or None)
        except OSError as error:
            raise InvalidInput(
                f"OTEL_EXPORTER_OTLP_CERTIFICATE={collector.certificate}: {error}; name a PEM file"
            ) from error
        self._client = httpx.Client(verify=trusted, timeout=collector.timeout_s)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch; what the collector does not take in time is lost, and the log says so."""
        body = request_of(spans).SerializeToString()
        if self._collector.compresses:
            body = gzip.compress(body)
        until, pause_s = time.monotonic() + self._collector.timeout_s, _FIRST_PAUSE_S
        while True:
            why, after_s = self._sent(body)
            if not why:
                return SpanExportResult.SUCCESS
            pause = max(pause_s * random.uniform(0.8, 1.2), after_s or 0.0)  # noqa: S311
            is_late = time.monotonic() + pause >= until
            if after_s is None or is_late or self._ended.wait(pause):
                self._tell(f"{self._collector.url}: {why}; spans lost: {len(spans):,}")
                return SpanExportResult.FAILURE
            pause_s *= 2

    def end(self) -> None:
        """Try nothing again from now on."""
        self._ended.set()

    def shutdown(self) -> None:
        """Close the connection."""
        self.end()
        self._client.close()

    def _sent(self, body: bytes) -> tuple[str, float | None]:
        """Why a batch was not taken, and when to try again [s]; None for never."""
        try:
            answer = self._client.post(self._collector.url, content=body, headers=self._headers)
        except httpx.TransportError as error:
            return f"{type(error).__name__}: {error}", 0.0
        if answer.status_code in _AGAIN:
            after = answer.headers.get("retry-after", "")
            return f"status {answer.status_code}", float(after) if after.isdecimal() else 0.0
        if not answer.is_success:
            return f"status {answer.status_code}", None
        self._tell_rejected(answer.content)
        return "", None

    def _tell_rejected(self, body: bytes) -> None:
        try:
            partial = ExportTraceServiceResponse.FromString(body).partial_success
        except ValueError:  # a receiver that answers something else
            return
        if partial.rejected_spans:
            self._tell(f"{self._collector.url}: spans rejected: {partial.rejected_spans:,}")

    def _tell(self, line: str) -> None:
        if time.monotonic() - self._told_at >= _QUIET_S:
            self._told_at = time.monotonic()
            _LOG.warning("traces: %s", line)


def request_of(spans: Sequence[ReadableSpan]) -> ExportTraceServiceRequest:
    """The message that has these spans, which are of one process and one scope."""
    if not spans:
        return ExportTraceServiceRequest()
    resource, scope = spans[0].resource, spans[0].instrumentation_scope
    scoped = ScopeSpans(spans=map(_span, spans))
    if scope is not None:
        scoped.scope.name, scoped.scope.version = scope.name, scope.version or ""
    message = ResourceSpans(scope_spans=[scoped])
    message.resource.attributes.extend(_attributes(resource.attributes))
    return ExportTraceServiceRequest(resource_spans=[message])


def _span(span: ReadableSpan) -> OtlpSpan:
    context, parent = span.get_span_context(), span.parent
    assert context is not None
    flags = int(context.trace_flags) | _HAS_IS_REMOTE
    if parent is not None and parent.is_remote:
        flags |= _IS_REMOTE
    return OtlpSpan(
        trace_id=context.trace_id.to_bytes(16, "big"),
        span_id=context.span_id.to_bytes(8, "big"),
        trace_state=context.trace_state.to_header(),
        parent_span_id=b"" if parent is None else parent.span_id.to_bytes(8, "big"),
        flags=flags,
        name=span.name,
        kind=OtlpSpan.SpanKind.ValueType(span.kind.value + 1),  # 0 is none there
        start_time_unix_nano=span.start_time or 0,
        end_time_unix_nano=span.end_time or 0,
        attributes=_attributes(span.attributes or {}),
        status=Status(
            code=Status.StatusCode.ValueType(span.status.status_code.value),
            message=span.status.description or "",
        ),
    )


def _attributes(attributes: Mapping[str, object]) -> Iterator[KeyValue]:
    return (KeyValue(key=key, value=_value(value)) for key, value in attributes.items())


def _value(value: object) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case list() | tuple():
            return AnyValue(array_value=ArrayValue(values=map(_value, value)))
    return AnyValue(string_value=str(value))
