"""Changes of a bucket that arrive in an SQS queue."""

import math
import re
import time
from collections.abc import Callable, Collection
from typing import Any
from urllib.parse import urlsplit

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from catalog.errors import StorageError
from ingest.sources.s3.s3_bucket import session_of
from ingest.sources.source_options import SourceOptions
from ingest.watch.events import Changes
from ingest.watch.object_events import ObjectMessages

_MESSAGES_AT_ONCE = 10  # SQS's most
_LONGEST_WAIT_S = 5  # a signal ends the watcher after this wait


class SqsEvents:
    """Messages of a queue. They are deleted when they are acknowledged; until then SQS keeps them.

    A message that is given twice costs a look and changes nothing.
    """

    def __init__(
        self,
        url: str,
        options: SourceOptions,
        messages: ObjectMessages,
        warn: Callable[[str], None],
    ) -> None:
        """Find the queue and receive from it once.

        Args:
            url: "sqs://NAME", a queue of the source's own account and region, or its https URL.
            options: The source's; profile, region and CA bundle are the queue's, too.

        Raises:
            InvalidInput: The URL or profile cannot be used.
            StorageError: There is no such queue, no access to it, or no answer.
        """
        self._messages, self._warn = messages, warn
        self._shown = url
        try:
            self._client = _client(url, options)
            self._queue = url
            if url.startswith("sqs://"):
                name = url.removeprefix("sqs://")
                self._queue = self._client.get_queue_url(QueueName=name)["QueueUrl"]
        except (BotoCoreError, ClientError, ValueError) as error:
            raise self._trouble(error) from error
        self._receipts: list[str] = []
        self._first = self._receive(0)

    def poll(self, seconds: float) -> Changes | None:
        """See Events."""
        messages, self._first = self._first, []
        messages = messages or self._receive(max(1, min(_LONGEST_WAIT_S, math.ceil(seconds))))
        if not messages:
            return None
        self._receipts += [message["ReceiptHandle"] for message in messages]
        paths = self._messages.paths(message["Body"] for message in messages)
        return Changes(paths, time.monotonic())

    def unfinished(self) -> Collection[str]:
        """None: an object is there when it is whole."""
        return ()

    def acknowledge(self) -> None:
        """Delete the messages."""
        receipts, self._receipts = self._receipts, []
        for start in range(0, len(receipts), _MESSAGES_AT_ONCE):
            some = receipts[start : start + _MESSAGES_AT_ONCE]
            entries = [{"Id": str(n), "ReceiptHandle": receipt} for n, receipt in enumerate(some)]
            try:
                answer = self._client.delete_message_batch(QueueUrl=self._queue, Entries=entries)
            except (BotoCoreError, ClientError) as error:
                raise self._trouble(error) from error
            if failed := answer.get("Failed"):
                reason = failed[0].get("Message") or failed[0].get("Code")
                self._warn(f"{len(failed)} messages of {self._shown} are not deleted: {reason}")

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _receive(self, seconds: int) -> list[dict[str, Any]]:
        try:
            answer = self._client.receive_message(
                QueueUrl=self._queue, MaxNumberOfMessages=_MESSAGES_AT_ONCE, WaitTimeSeconds=seconds
            )
        except (BotoCoreError, ClientError) as error:
            raise self._trouble(error) from error
        messages: list[dict[str, Any]] = answer.get("Messages", [])
        return messages

    def _trouble(self, error: Exception) -> StorageError:
        reason = " ".join(str(error).split())[:300]
        return StorageError(f"queue {self._shown}: {reason}", self._shown)


def _client(url: str, options: SourceOptions) -> Any:
    session = session_of(options)
    parts = urlsplit(url)
    endpoint = None if parts.scheme == "sqs" else f"{parts.scheme}://{parts.netloc}"
    of_aws = re.fullmatch(r"sqs\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?", parts.netloc)
    region = of_aws[1] if of_aws else options.region or session.region_name or "us-east-1"
    return session.client(
        "sqs",
        endpoint_url=endpoint,
        region_name=region,
        verify=(options.ca_bundle or None) if options.verify_tls else False,
        config=Config(
            retries={"mode": "standard", "total_max_attempts": 4},
            connect_timeout=5,
            read_timeout=_LONGEST_WAIT_S + 20,
        ),
    )
