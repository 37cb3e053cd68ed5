"""A prefix of an S3 bucket as a source: AWS, IBM COS, Ceph, MinIO."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from catalog.errors import BadFile, StorageError
from catalog.values import File, Problem
from ingest.sources.archived import RestoreRequest
from ingest.sources.exclude import Excluded
from ingest.sources.object_file import object_file
from ingest.sources.opened_file import OpenedFile
from ingest.sources.s3.s3_bucket import S3Address, S3Bucket
from ingest.sources.s3.s3_listing import list_objects
from ingest.sources.s3.s3_page import ARCHIVED, ObjectEntry
from ingest.sources.source_files import MAX_FILE_BYTES, Unreadable
from ingest.sources.source_options import NO_OPTIONS, SourceOptions

_IS_ASKED = "RestoreAlreadyInProgress"


class S3Folder:
    """The objects below s3://bucket/prefix, as SourceFiles.

    The prefix counts as a folder: "s3://bucket/a" holds "a/x" and not "ab". read and read_range
    release the interpreter while they wait, so many threads may have requests in flight.
    """

    def __init__(self, uri: str, options: SourceOptions = NO_OPTIONS) -> None:
        """Find credentials and ask the server once.

        Raises:
            StorageError: No such bucket, no access, nothing below the prefix, no answer.
        """
        address = S3Address.parse(uri)
        self.prefix = address.key.rstrip("/") + "/" if address.key.strip("/") else ""
        self.root = f"s3://{address.bucket}/{self.prefix}".rstrip("/")
        self.bucket = S3Bucket(address.bucket, options)
        self._excluded = Excluded(options.exclude)
        objects, _, _ = self.bucket.page(self.prefix, keys=1)
        if self.prefix and not objects:
            raise StorageError(
                f"{self.root}: no object below it; check the prefix (a .tar is read as an archive)",
                self.root,
            )

    def list(self, below: str = "", _unreadable: Unreadable | None = None, /) -> Iterator[File]:
        """Every object in byte order of its key; see SourceFiles."""
        skip = len(self.prefix)
        for entry in self._objects(self.prefix + below):
            if self._excluded(entry.key[skip:]):
                continue
            yield object_file(
                entry.key[skip:], entry.size, entry.modified, entry.etag, entry.state,
                entry.storage_class or None,
            )  # fmt: skip

    def _objects(self, below: str) -> Iterable[ObjectEntry]:
        if not below or below.endswith("/"):
            return list_objects(self.bucket, below)
        objects, _, _ = self.bucket.page(below, keys=1)  # the key itself sorts first
        return [entry for entry in objects if entry.key == below]

    def spans(self, _keys: Iterable[str], /) -> dict[str, tuple[int, int]]:
        """None: each is an object of its own."""
        return {}

    def problems(self) -> Iterable[Problem]:
        """None: every object can be listed."""
        return ()

    def read(self, key: str) -> bytes:
        """A whole object; see SourceFiles."""
        return self.bucket.read(self._full(key), key, MAX_FILE_BYTES)

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """A part of an object; see SourceFiles and read."""
        return self.bucket.read_range(self._full(key), key, start, length)

    def has_content(self, file: File, content: bytes) -> bool | None:
        """Return whether an object has this content; see ingest.sources.listed_read."""
        md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
        return self.bucket.has_md5(self._full(file.key), file.etag, md5)

    def open_file(
        self, key: str, version: str | None = None, start: int = 0, length: int | None = None
    ) -> AbstractContextManager[OpenedFile]:
        """An object, opened to be read; see ingest.sources.opened_file."""
        return self.bucket.open_object(self._full(key), key, version, start, length)

    def restored(self, key: str, request: RestoreRequest) -> bool:
        """True where an object can be read now; see ingest.sources.archived."""
        return _restored(self.bucket, self._full(key), key, request)

    def _full(self, key: str) -> str:
        if not key:
            raise BadFile("an empty name; expected a key below the source's root")
        return self.prefix + key


class S3Archive:
    """An archive that is an object in a bucket; see tar_index.ArchiveBytes.

    Every read asks for the very object that was there when it was opened (If-Match).
    """

    walks = 32

    def __init__(self, uri: str, options: SourceOptions = NO_OPTIONS) -> None:
        """Ask for the object's size and ETag."""
        address = S3Address.parse(uri)
        self._bucket, self._key, self.uri = S3Bucket(address.bucket, options), address.key, uri
        entry = self._bucket.head(address.key)
        self.size, self._etag = entry.size, entry.etag
        where = options.endpoint_url and f" {options.endpoint_url}"
        self.identity = (entry.etag or entry.modified.isoformat()) + where

    def read_range(self, start: int, length: int, label: str = "") -> bytes:
        """A part of the object; see ArchiveBytes."""
        return self._bucket.read_range(self._key, label or self.uri, start, length, self._etag)


def open_folder(uri: str, options: SourceOptions = NO_OPTIONS) -> S3Folder:
    """The objects below a prefix; see S3Folder for what it raises."""
    return S3Folder(uri, options)


def open_archive(uri: str, options: SourceOptions = NO_OPTIONS) -> S3Archive:
    """The archive that an object is; see S3Archive for what it raises."""
    return S3Archive(uri, options)


def _restored(bucket: S3Bucket, key: str, label: str, request: RestoreRequest) -> bool:
    """True where an object can be read now; requests an archived one, once.

    Glacier and Deep Archive of S3, Archive of IBM COS. Source:
    https://docs.aws.amazon.com/AmazonS3/latest/API/API_RestoreObject.html and
    https://cloud.ibm.com/docs/cloud-object-storage?topic=cloud-object-storage-archive

    Raises:
        BadFile: It vanished, or may not be restored.
        StorageError: The server cannot be reached, or refuses everything.
    """
    try:
        about = bucket.client.head_object(Bucket=bucket.name, Key=key)
        if 'ongoing-request="true"' in about.get("Restore", ""):
            return False
        # Of INTELLIGENT_TIERING, which brings an object back for good.
        is_tiered = "ArchiveStatus" in about
        is_archived = is_tiered or about.get("StorageClass") in ARCHIVED
        if not is_archived or "ongoing-request" in about.get("Restore", ""):
            return True
        restore_request: dict[str, Any] = {"GlacierJobParameters": {"Tier": request.tier}}
        if not is_tiered:
            restore_request["Days"] = request.days
        bucket.client.restore_object(Bucket=bucket.name, Key=key, RestoreRequest=restore_request)
    except ClientError as error:
        if error.response["Error"]["Code"] == _IS_ASKED:
            return False
        raise bucket.object_trouble(error, label) from error
    except BotoCoreError as error:
        raise bucket.object_trouble(error, label) from error
    return False
