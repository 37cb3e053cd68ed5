"""Opens the events of a source that were asked for."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from catalog.errors import InvalidInput
from catalog.records.tables import Source
from ingest.sources.recorded import open_recorded
from ingest.sources.source_files import LocalFolder
from ingest.sources.source_options import SourceOptions
from ingest.sources.tar_source import is_tar
from ingest.watch.events import Events, NoEvents

_EXPECTED = (
    "expected inotify, none, sqs://QUEUE, the https:// URL of an SQS queue, or "
    "kafka://HOST:PORT/TOPIC"
)


@dataclass(frozen=True)
class EventChoice:
    """Where changes are heard of.

    Attributes:
        url: "inotify", "none", or the URL of a queue or topic; empty for inotify where the source
            is a folder of this machine, and for none elsewhere.
        config: File of librdkafka's properties for a topic.
        group: Name that a topic's offsets are kept under, unless the file says another.
        index_folder: Where the indexes of tar archives are kept.
    """

    url: str = ""
    config: Path | None = None
    group: str = "framesift"
    index_folder: Path | None = None


@contextmanager
def open_events(
    source: Source, choice: EventChoice, stop: threading.Event, warn: Callable[[str], None]
) -> Iterator[Events]:
    """The events of a source, for the block.

    Args:
        source: Which source.
        choice: Where its changes are heard of.
        stop: Ends waits where nothing is heard of.
        warn: Told in a line of what goes wrong.

    Raises:
        InvalidInput: The URL cannot be used, or does not fit the source.
        StorageError: The source or the queue cannot be reached.
    """
    events = _open(source, choice, stop, warn)
    try:
        yield events
    finally:
        events.close()


def _open(
    source: Source, choice: EventChoice, stop: threading.Event, warn: Callable[[str], None]
) -> Events:
    files = open_recorded(source, choice.index_folder)
    url = choice.url or ("inotify" if isinstance(files, LocalFolder) else "none")
    scheme = url.partition("://")[0] if "://" in url else ""
    if url == "none":
        return NoEvents(stop)
    if url == "inotify":
        if not isinstance(files, LocalFolder):
            raise InvalidInput(f"source {source.name} is no folder: inotify cannot watch it")
        from ingest.watch.local_events import LocalEvents

        return LocalEvents(files.folder, warn, files.excluded)
    if scheme not in ("sqs", "https", "http", "kafka"):
        raise InvalidInput(f"events '{url}': {_EXPECTED}")
    if not source.uri.lower().startswith("s3://") or is_tar(source.uri):
        raise InvalidInput(
            f"source {source.name} is no folder of a bucket: queues tell of objects; leave "
            "--events out"
        )
    try:
        return _open_queue(source, choice, scheme, warn)
    except ImportError as error:
        extra = "kafka" if scheme == "kafka" else "s3"
        raise InvalidInput(
            f"events {url}: {error.name} is not installed; install framesift with the extra "
            f"'{extra}'"
        ) from error


def _open_queue(
    source: Source, choice: EventChoice, scheme: str, warn: Callable[[str], None]
) -> Events:
    # Late: boto3 and librdkafka are in extras, and take a third of a second.
    from ingest.sources.s3_bucket import S3Address
    from ingest.watch.object_events import ObjectMessages

    address = S3Address.parse(source.uri)
    prefix = address.key.strip("/") and address.key.rstrip("/") + "/"
    messages = ObjectMessages(address.bucket, prefix, warn)
    if scheme == "kafka":
        from ingest.watch.kafka_events import KafkaEvents, read_properties

        parts = urlsplit(choice.url)
        topic = parts.path.strip("/")
        if not parts.netloc or not topic or "/" in topic or "@" in parts.netloc:
            raise InvalidInput(
                f"events kafka://...: {_EXPECTED}; several hosts with commas, and who asks "
                "in --events-config FILE"
            )
        properties = {"group.id": choice.group}
        if choice.config is not None:
            properties |= read_properties(choice.config)
        return KafkaEvents(parts.netloc, topic, properties, messages, warn)
    from ingest.watch.sqs_events import SqsEvents

    return SqsEvents(choice.url, SourceOptions.from_json(source.options), messages, warn)
