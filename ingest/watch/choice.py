"""Opens the events of a source that were asked for."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from catalog.errors import InvalidInput, not_installed
from catalog.records.tables import Source
from ingest.sources.local_folder import LocalFolder
from ingest.sources.recorded import open_recorded
from ingest.sources.schemes import events_of
from ingest.sources.source_files import SourceFiles
from ingest.sources.source_options import SourceOptions
from ingest.watch.events import Events, NoEvents

if TYPE_CHECKING:
    from ingest.watch.object_events import ObjectMessages

_EXPECTED = (
    "expected inotify, none, sqs://QUEUE, the https:// URL of an SQS queue, or "
    "kafka://HOST:PORT/TOPIC"
)


@dataclass(frozen=True)
class EventChoice:
    """Choice of the events that report a source's changes."""

    url: str = ""
    """"inotify", "none", or the URL of a queue or topic; empty for inotify where the source is a
    folder of this machine, and for none elsewhere.
    """
    config: Path | None = None
    """File of librdkafka's properties for a topic."""
    group: str = "framesift"
    """Name that a topic's offsets are kept under, unless the file says another."""
    index_folder: Path | None = None


@contextmanager
def open_events(
    source: Source, choice: EventChoice, stop: threading.Event, warn: Callable[[str], None]
) -> Iterator[Events]:
    """The events of a source, for the block.

    Args:
        stop: Ends waits where nothing is heard of.

    Raises:
        InvalidInput: The URL cannot be used, or does not fit the source.
        StorageError: The source or the queue cannot be reached.
    """
    events = _open(source, choice, stop, warn)
    try:
        yield events
    finally:
        events.close()


@dataclass(frozen=True)
class _Request:
    """Events that are asked for: their URL, of a source, and what the caller hands over."""

    url: str
    source: Source
    choice: EventChoice
    files: SourceFiles
    stop: threading.Event
    warn: Callable[[str], None]

    def messages(self) -> "ObjectMessages":
        """The reader of a queue's messages about the source's objects."""
        from ingest.sources.s3.s3_bucket import S3Address
        from ingest.watch.object_events import ObjectMessages

        address = S3Address.parse(self.source.uri)
        prefix = address.key.strip("/") and address.key.rstrip("/") + "/"
        return ObjectMessages(address.bucket, prefix, self.warn)


def _open(
    source: Source, choice: EventChoice, stop: threading.Event, warn: Callable[[str], None]
) -> Events:
    files = open_recorded(source, choice.index_folder)
    offered = events_of(source.uri)
    url = choice.url or offered[0]
    name, separator, _ = url.partition("://")
    kind = _KINDS.get(name + separator)
    if kind is None:
        raise InvalidInput(f"events '{url}': {_EXPECTED}")
    if name + separator not in offered:
        raise InvalidInput(f"source {source.name} {kind.refusal}")
    try:
        return kind.open(_Request(url, source, choice, files, stop, warn))
    except ImportError as error:
        raise not_installed(f"events {url}: {error.name}", kind.extra) from error


def _none(request: _Request) -> Events:
    return NoEvents(request.stop)


def _inotify(request: _Request) -> Events:
    from ingest.watch.local_events import LocalEvents

    if not isinstance(request.files, LocalFolder):
        raise InvalidInput(f"source {request.source.name} {_NO_FOLDER}")
    return LocalEvents(request.files.folder, request.warn, request.files.excluded)


# Late: boto3 and librdkafka are in extras, and take a third of a second.
def _sqs(request: _Request) -> Events:
    from ingest.watch.sqs_events import SqsEvents

    options = SourceOptions.from_json(request.source.options)
    return SqsEvents(request.url, options, request.messages(), request.warn)


def _kafka(request: _Request) -> Events:
    from ingest.watch.kafka_events import KafkaEvents, read_properties

    parts = urlsplit(request.url)
    topic = parts.path.strip("/")
    if not parts.netloc or not topic or "/" in topic or "@" in parts.netloc:
        raise InvalidInput(
            f"events kafka://...: {_EXPECTED}; several hosts with commas, and who asks "
            "in --events-config FILE"
        )
    properties = {"group.id": request.choice.group}
    if request.choice.config is not None:
        properties |= read_properties(request.choice.config)
    return KafkaEvents(parts.netloc, topic, properties, request.messages(), request.warn)


@dataclass(frozen=True)
class _Kind:
    """One kind of events, and how it is opened."""

    open: Callable[[_Request], Events]
    extra: str
    """The extra of framesift that this needs."""
    refusal: str
    """What is said of a source that has none of them, after its name."""


_NO_FOLDER = "is no folder: inotify cannot watch it"
_NO_BUCKET = "is no folder of a bucket: queues tell of objects; leave --events out"

_KINDS = {
    "none": _Kind(_none, "", ""),
    "inotify": _Kind(_inotify, "", _NO_FOLDER),
    **dict.fromkeys(("sqs://", "https://", "http://"), _Kind(_sqs, "s3", _NO_BUCKET)),
    "kafka://": _Kind(_kafka, "kafka", _NO_BUCKET),
}
"""By how their URLs begin; ingest.sources.schemes says which a source may have."""
