"""Spans of what this process does; none, and nothing imported, where no variable asks for traces.

A span has names, numbers and states: no text of a statement, no message of an error, which may
quote what a user asked.
"""

import atexit
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from catalog.errors import FramesiftError, installs
from catalog.traces.settings import asked, collector

if TYPE_CHECKING:
    from opentelemetry import trace
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider

    from catalog.traces.otlp_exporter import OtlpExporter

VARIABLE = "TRACEPARENT"
"""Variable by which a process is told what its spans belong to, as OpenTelemetry names it."""

Value = str | bool | int | float | list[str]

_END_S = 2.0
"""How long the end of a process waits for a collector."""

queue_wait_s: ContextVar[float] = ContextVar("queue wait", default=0.0)
"""How long the request that is answered here has waited for its slot [s]."""


class Span:
    """A span under way; of none, where traces are off."""

    def __init__(self, span: "trace.Span | None" = None) -> None:
        self._span = span

    def name(self, name: str) -> None:
        """Call it otherwise, once more is known."""
        if self._span is not None:
            self._span.update_name(name)

    def set(self, attributes: Mapping[str, Value]) -> None:
        """Add attributes."""
        if self._span is not None:
            self._span.set_attributes(attributes)

    def fail(self, kind: str) -> None:
        """Say that what it stands for failed, and how that is called."""
        if self._span is not None:
            from opentelemetry.trace import StatusCode

            self._span.set_attribute("error.type", kind)
            self._span.set_status(StatusCode.ERROR)

    def end(self) -> None:
        """End one of `begin`."""
        if self._span is not None:
            self._span.end()


@contextmanager
def span(
    name: str,
    attributes: Mapping[str, Value] | None = None,
    *,
    kind: Literal["internal", "server"] = "internal",
    parent: Mapping[str, str] | None = None,
) -> Iterator[Span]:
    """A span of the block, in which others are its children.

    Args:
        name: One of few.
        kind: Whether it answers another program.
        parent: Headers that say what it belongs to; what this thread does now, or the process'
            variable, when None.
    """
    provider = _provider()
    if provider is None:
        yield Span()
        return
    from opentelemetry.trace import SpanKind

    with _tracer(provider).start_as_current_span(
        name,
        _context(parent),
        SpanKind[kind.upper()],
        attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as begun:
        own = Span(begun)
        try:
            yield own
        except BaseException as error:
            own.fail(type(error).__name__)
            raise


def begin(name: str, attributes: Mapping[str, Value]) -> Span:
    """A child of the span here, to be ended by `Span.end`; none where there is no span here."""
    provider = _provider()
    if provider is None or not traceparent():
        return Span()
    return Span(_tracer(provider).start_span(name, attributes=attributes))


def record(
    name: str,
    attributes: Mapping[str, Value],
    *,
    parent: str,
    began: datetime,
    ended: datetime,
    error: str = "",
) -> None:
    """Make a span of what is over.

    Args:
        name: One of few.
        parent: W3C's traceparent of what it belongs to.
        began: Naive UTC.
        ended: Naive UTC.
        error: How its failure is called; empty for none.
    """
    provider = _provider()
    if provider is None:
        return
    over = _tracer(provider).start_span(
        name,
        _context({"traceparent": parent}),
        attributes=attributes,
        start_time=_nanoseconds(began),
    )
    if error:
        Span(over).fail(error)
    over.end(max(_nanoseconds(ended), _nanoseconds(began)))


def traceparent() -> str:
    """W3C's traceparent of the span here; empty for none."""
    if not _providers or not asked():
        return ""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get("traceparent", "")


def trace_id() -> str:
    """Hexadecimal number of the trace here; empty for none."""
    return traceparent()[3:35]


def begin_traces() -> None:
    """Have a process that lives long say at its start what is wrong with its traces."""
    _provider()


def end_traces() -> None:
    """Send what is left, as far as the collector takes it within 2 s."""
    made = _providers.get(os.getpid())
    if made is None:
        return
    provider, exporter = made
    exporter.end()
    ending = threading.Thread(target=provider.shutdown, name="traces", daemon=True)
    ending.start()
    ending.join(_END_S)


_providers: "dict[int, tuple[TracerProvider, OtlpExporter] | None]" = {}
"""Of each process, for a fork has threads of its own; None where there can be none."""
_making = threading.Lock()


def _provider() -> "TracerProvider | None":
    if not asked():
        return None
    process = os.getpid()
    if process not in _providers:
        with _making:
            if process not in _providers:
                _providers[process] = _made()
    made = _providers[process]
    return None if made is None else made[0]


def _tracer(provider: "TracerProvider") -> "trace.Tracer":
    return provider.get_tracer("framesift", _version())


def _version() -> str:
    from importlib.metadata import version  # 20 ms, which commands without traces do without

    return version("framesift")


def _made() -> "tuple[TracerProvider, OtlpExporter] | None":
    """The maker of this process' spans; None, and a line in its log, where there can be none."""
    import logging  # which commands that list records do without

    log = logging.getLogger(__name__)
    try:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        from catalog.traces.otlp_exporter import OtlpExporter
    except ImportError as error:
        log.warning(
            "no traces: OTEL_* asks for them, and %s is not installed here: %s; or set "
            "OTEL_SDK_DISABLED=true",
            error.name, installs("traces"),
        )  # fmt: skip
        return None
    try:
        exporter = OtlpExporter(collector())
    except FramesiftError as error:
        log.warning("no traces: %s", error)
        return None
    provider = TracerProvider(resource=Resource.create(_of_resource()), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    atexit.register(end_traces)
    return provider, exporter


def _of_resource() -> dict[str, str | int]:
    """Attributes of this process; the variables' go before the service's name."""
    of_process: dict[str, str | int] = {
        "service.version": _version(), "process.pid": os.getpid(),
    }  # fmt: skip
    variables = os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    if os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in variables:
        return of_process
    return {"service.name": "framesift", **of_process}


def _context(parent: Mapping[str, str] | None) -> "Context | None":
    """What a span belongs to."""
    from opentelemetry import propagate, trace

    if parent is not None:
        return propagate.extract(parent)
    if trace.get_current_span().get_span_context().is_valid or VARIABLE not in os.environ:
        return None
    return propagate.extract({"traceparent": os.environ[VARIABLE]})


def _nanoseconds(moment: datetime) -> int:
    return int(moment.replace(tzinfo=UTC).timestamp() * 1e6) * 1000
