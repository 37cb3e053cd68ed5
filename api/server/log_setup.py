"""The server's log: a line on stderr for each event, as JSON or as text.

Lines are written by a thread of their own out of a bounded queue: whoever reads stderr and stops
must not stop the server. What does not fit into the queue is lost.
"""

import json
import logging
import queue
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener
from typing import Any, Literal

from api.server.request_id import request_id, trace_id
from catalog.text.visible_text import visible, visible_lines

LogFormat = Literal["json", "text"]
LogLevel = Literal["info", "warning", "error"]

_WAITING = 10_000


@contextmanager
def logging_to_stderr(format_: LogFormat, level: LogLevel) -> Iterator[None]:
    """Log there within the block; at its end everything that was said is written."""
    lines: queue.Queue[Any] = queue.Queue(_WAITING)
    handler = _BoundedHandler(lines)
    handler.setFormatter(JsonLines() if format_ == "json" else TextLines())
    listener = QueueListener(lines, logging.StreamHandler(sys.stderr))
    root = logging.getLogger()
    before, root.handlers = root.handlers, [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("api").setLevel(level.upper())
    listener.start()
    try:
        yield
    finally:
        root.handlers = before
        listener.stop()


class _BoundedHandler(QueueHandler):
    def emit(self, record: logging.LogRecord) -> None:
        record.request_id, record.trace_id = request_id.get(), trace_id.get()
        super().emit(record)

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            super().enqueue(record)
        except queue.Full:
            return


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """Fields of a line: those of every line, and this one's own."""
    time = datetime.fromtimestamp(record.created, UTC)
    return {
        "time": f"{time.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z",
        "level": record.levelname.lower(),
        "process": record.process,
        "logger": record.name,
        "message": record.getMessage(),
        "request_id": getattr(record, "request_id", ""),
        "trace_id": getattr(record, "trace_id", ""),
        **getattr(record, "fields", {}),
    }


class JsonLines(logging.Formatter):
    """One JSON object a line; `traceback` where an exception was logged."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        fields = _fields(record)
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        filled = {name: value for name, value in fields.items() if value not in ("", None)}
        return visible(json.dumps(filled))


class TextLines(logging.Formatter):
    """For people: time, level, message, and what else there is as name=value."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, and below it the traceback of an exception."""
        fields = _fields(record)
        del fields["process"], fields["logger"]
        time, level, message = (fields.pop(name) for name in ("time", "level", "message"))
        # As in JSON: a name that somebody chose must not look like a line of its own.
        fields["trace_id"] = fields.pop("trace_id")  # last: it is long
        rest = (f"{name}={json.dumps(value)}" for name, value in fields.items() if value != "")
        line = visible(" ".join([time, level, message, *rest]))
        if not record.exc_info:
            return line
        return f"{line}\n{visible_lines(self.formatException(record.exc_info))}"
