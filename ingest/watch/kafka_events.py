"""Changes of a bucket that arrive in a Kafka topic, as IBM Cloud Object Storage sends them.

All partitions are assigned to this one consumer. Offsets are committed under a group's name, but no
group is joined: after a kill the broker would hand out the partitions only when the dead member's
session has ended, 45 s later, and the lock of the watcher keeps others away anyway.
"""

import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from catalog.errors import InvalidInput, StorageError
from ingest.watch.events import Changes
from ingest.watch.object_events import ObjectMessages

_MESSAGES_AT_ONCE = 1_000
_ANSWER_S = 10.0
_LONGEST_WAIT_S = 1.0
_LOOK_FOR_PARTITIONS_S = 60.0
_ERROR_SAID_EVERY_S = 60.0


class KafkaEvents:
    """Messages of a topic. Their offsets are committed when they are acknowledged.

    The first time, what is in the topic already is passed over: the source is listed whole then.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        properties: Mapping[str, str],
        messages: ObjectMessages,
        warn: Callable[[str], None],
    ) -> None:
        """Find the topic and the place to go on from.

        Args:
            servers: "host:port", several with commas.
            properties: librdkafka's, such as security.protocol; "group.id" names the offsets.

        Raises:
            InvalidInput: A property cannot be used.
            StorageError: There is no such topic, no access to it, or no answer.
        """
        self._topic, self._messages, self._warn = topic, messages, warn
        self._shown = f"kafka://{servers}/{topic}"
        self._said = -_ERROR_SAID_EVERY_S
        self._reached: dict[int, int] = {}  # partition -> offset to go on from
        try:
            self._consumer = Consumer(
                {
                    "log_level": 0,  # error_cb tells what is worth telling
                    "max.poll.interval.ms": 86_400_000,  # a first scan takes its time
                    **properties,
                    "bootstrap.servers": servers,
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",  # where a committed offset has expired
                    "error_cb": self._note_error,
                }
            )
        except (KafkaException, ValueError, TypeError) as error:
            raise InvalidInput(f"{self._shown}: {_reason(error)}; see --events-config") from error
        try:
            self._partitions = self._find_partitions()
            self._consumer.assign(self._resume_offsets())
        except KafkaException as error:
            self.close()
            raise self._trouble(error) from error
        except BaseException:
            self.close()
            raise
        self._looked = time.monotonic()

    def poll(self, seconds: float) -> Changes | None:
        """See Events."""
        try:
            self._look_for_partitions()
            messages = self._consumer.consume(_MESSAGES_AT_ONCE, min(seconds, _LONGEST_WAIT_S))
        except KafkaException as error:
            raise self._trouble(error) from error
        bodies = []
        for message in messages:
            if message.error() is not None:
                raise self._trouble(KafkaException(message.error()))
            partition, offset = message.partition(), message.offset()
            if partition is not None and offset is not None:
                self._reached[partition] = offset + 1
            bodies.append(message.value() or b"")
        return Changes(self._messages.paths(bodies), time.monotonic()) if bodies else None

    def unfinished(self) -> Collection[str]:
        """None: an object is there when it is whole."""
        return ()

    def acknowledge(self) -> None:
        """Commit the offsets."""
        if not self._reached:
            return
        offsets = [TopicPartition(self._topic, p, offset) for p, offset in self._reached.items()]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            raise self._trouble(error) from error
        self._reached.clear()

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()

    def _find_partitions(self) -> list[int]:
        topic = self._consumer.list_topics(self._topic, timeout=_ANSWER_S).topics[self._topic]
        if topic.error is not None:
            raise KafkaException(topic.error)
        return sorted(topic.partitions)

    def _resume_offsets(self) -> list[TopicPartition]:
        partitions = [TopicPartition(self._topic, number) for number in self._partitions]
        committed = self._consumer.committed(partitions, timeout=_ANSWER_S)
        if any(partition.offset >= 0 for partition in committed):
            # Partitions that were added since: from their beginning.
            return [
                partition
                if partition.offset >= 0
                else TopicPartition(self._topic, partition.partition, OFFSET_BEGINNING)
                for partition in committed
            ]
        ends = [self._consumer.get_watermark_offsets(p, timeout=_ANSWER_S)[1] for p in partitions]
        positions = [
            TopicPartition(self._topic, number, end)
            for number, end in zip(self._partitions, ends, strict=True)
        ]
        # Kept at once: what comes before the first batch is not passed over by the next start.
        self._consumer.commit(offsets=positions, asynchronous=False)
        return positions

    def _look_for_partitions(self) -> None:
        if time.monotonic() - self._looked < _LOOK_FOR_PARTITIONS_S:
            return
        self._looked = time.monotonic()
        if self._find_partitions() != self._partitions:
            raise StorageError(f"{self._shown}: its partitions have changed", self._shown)

    def _note_error(self, error: KafkaError) -> None:
        if time.monotonic() - self._said >= _ERROR_SAID_EVERY_S:
            self._said = time.monotonic()
            self._warn(f"{self._shown}: {error.str()}")

    def _trouble(self, error: KafkaException) -> StorageError:
        return StorageError(f"{self._shown}: {_reason(error)}", self._shown)


def read_properties(path: Path) -> dict[str, str]:
    """The properties in a file: name=value lines; empty ones and # comments are left out.

    Raises:
        InvalidInput: The file cannot be read, or a line is none; values are never repeated.
    """
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: cannot be read: {error}") from error
    properties = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, separator, value = line.partition("=")
        if not separator:
            raise InvalidInput(f"{path}, line {number}: expected name=value")
        properties[name.strip()] = value.strip()
    return properties


def _reason(error: Any) -> str:
    cause = error.args[0] if error.args else error
    return " ".join(str(cause.str() if isinstance(cause, KafkaError) else cause).split())
