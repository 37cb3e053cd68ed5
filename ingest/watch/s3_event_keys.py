"""The keys that a message about a bucket's changes names, whoever sent it."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote_plus

from catalog.errors import InvalidInput

_LONGEST_KEY = 1024  # bytes, S3's own limit


def changed_keys(message: str | bytes, bucket: str) -> set[str]:
    """Keys of the bucket's objects that were written or removed.

    Understood are S3's notifications (AWS, Ceph, MinIO: ``Records``), the same wrapped by SNS,
    EventBridge's events, and those of IBM Cloud Object Storage (``bucket_name``, ``object_name``).
    What happened to an object does not matter: it is looked at.

    Notifications URL-encode a key ("a b" is "a+b"), EventBridge does not, and servers differ.
    So both readings of such a key are given; looking at one that is not there changes nothing.

    Args:
        bucket: Messages of other buckets are refused.

    Raises:
        InvalidInput: It names no object of the bucket; says why.
    """
    try:
        event = json.loads(message)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"not JSON: {error}") from error
    buckets = set()
    keys = set()
    for named, key in _objects(event):
        buckets.add(named)
        if named == bucket:
            keys |= {reading for reading in (key, unquote_plus(key)) if _is_key(reading)}
    if not keys:
        raise InvalidInput(_refusal(event, buckets - {bucket}, bucket))
    return keys


def _objects(event: Any) -> Iterator[tuple[str, str]]:
    """Bucket and key of each object that is named."""
    if isinstance(_at(event, "Message"), str):  # wrapped by SNS
        try:
            event = json.loads(event["Message"])
        except (ValueError, RecursionError):
            return
    records = _at(event, "Records")
    named = [
        (_at(event, "detail", "bucket", "name"), _at(event, "detail", "object", "key")),
        (_at(event, "bucket_name"), _at(event, "object_name")),
        *(
            (_at(record, "s3", "bucket", "name"), _at(record, "s3", "object", "key"))
            for record in (records if isinstance(records, list) else [])
        ),
    ]
    for bucket, key in named:
        if isinstance(bucket, str) and isinstance(key, str):
            yield bucket, key


def _at(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _is_key(key: str) -> bool:
    """Return whether it can be an object's, and not a folder's marker."""
    if not key or key.endswith("/"):
        return False
    try:
        return len(key.encode()) <= _LONGEST_KEY
    except UnicodeEncodeError:
        return False


def _refusal(event: Any, other_buckets: set[str], bucket: str) -> str:
    if _at(event, "Event") == "s3:TestEvent":
        return "S3's test of the notification"
    if other_buckets:
        return f"is about bucket {', '.join(sorted(other_buckets))}, expected {bucket}"
    return f"names no object of bucket {bucket}"
