"""Traces by OpenTelemetry: spans of requests, statements and jobs, where OTEL_* asks for them."""
