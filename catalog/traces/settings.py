"""OpenTelemetry's own variables: whether spans are made, and where they go. Nothing is imported."""

import os
from dataclasses import dataclass

from catalog.errors import InvalidInput

_ENDPOINT, _OF_TRACES = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
_COLLECTOR = "http://localhost:4318"
_TIMEOUT_MS = 10_000
_PROTOCOL = "http/protobuf"
_COMPRESSIONS = ("none", "gzip")


@dataclass(frozen=True)
class Collector:
    """Receiver of spans, and how they are sent to it."""

    url: str
    """Of its traces."""
    headers: str = ""
    """Further headers, NAME=VALUE with commas between, percent-encoded."""
    timeout_s: float = _TIMEOUT_MS / 1000
    """How long a batch may take, further tries included [s]."""
    certificate: str = ""
    """PEM file of authorities to trust in place of the system's; empty for these."""
    compresses: bool = False
    """By gzip."""


def asked() -> bool:
    """Return whether the variables ask for traces: by an exporter, or by an endpoint alone."""
    exporter, endpoint = _text("OTEL_TRACES_EXPORTER"), _text(_OF_TRACES) or _text(_ENDPOINT)
    if exporter.lower() == "none" or not (exporter or endpoint):
        return False
    return _text("OTEL_SDK_DISABLED").lower() != "true"


def collector() -> Collector:
    """The receiver that the variables name.

    Raises:
        InvalidInput: A value cannot be used; the message names its variable.
    """
    exporter = _text("OTEL_TRACES_EXPORTER") or "otlp"
    if exporter.lower() != "otlp":
        raise InvalidInput(
            f"OTEL_TRACES_EXPORTER={exporter}: expected otlp or none; have a collector send spans "
            "on to anything else"
        )
    protocol = _of_exporter("PROTOCOL") or _PROTOCOL
    if protocol != _PROTOCOL:
        raise InvalidInput(
            f"OTEL_EXPORTER_OTLP_PROTOCOL={protocol}: expected {_PROTOCOL}; set it, and let the "
            "endpoint name the collector's port for HTTP, 4318 by default"
        )
    compression = _of_exporter("COMPRESSION") or "none"
    if compression not in _COMPRESSIONS:
        raise InvalidInput(
            f"OTEL_EXPORTER_OTLP_COMPRESSION={compression}: expected one of "
            f"{', '.join(_COMPRESSIONS)}"
        )
    url = _text(_OF_TRACES) or f"{(_text(_ENDPOINT) or _COLLECTOR).rstrip('/')}/v1/traces"
    if not url.startswith(("http://", "https://")):
        raise InvalidInput(f"{_ENDPOINT}={url}: expected a URL such as {_COLLECTOR}")
    return Collector(
        url,
        _of_exporter("HEADERS"),
        _timeout_s(),
        _of_exporter("CERTIFICATE"),
        compression == "gzip",
    )


def _timeout_s() -> float:
    text = _of_exporter("TIMEOUT") or str(_TIMEOUT_MS)
    if not text.isdecimal() or not int(text):
        raise InvalidInput(
            f"OTEL_EXPORTER_OTLP_TIMEOUT={text}: expected milliseconds, such as 10000"
        )
    return int(text) / 1000


def _of_exporter(name: str) -> str:
    """A setting of the exporter: that of traces before that of all signals."""
    return _text(f"OTEL_EXPORTER_OTLP_TRACES_{name}") or _text(f"OTEL_EXPORTER_OTLP_{name}")


def _text(name: str) -> str:
    """A variable's value; an empty one counts as none, as OpenTelemetry has it."""
    return os.environ.get(name, "").strip()
