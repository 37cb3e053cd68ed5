"""Listed files read whole: what came is compared with the listing, and asked for again.

A server, or a proxy before it, may answer once with nothing, with a part, or with other bytes, and
call it a success. Were that taken for the file, a good file would be bad until it changes.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from catalog.errors import BadFile, UnreadableFile
from catalog.values import File
from ingest.sources.source_files import MAX_FILE_BYTES, FileReader

_T = TypeVar("_T")

_PAUSES_S = (0.1, 0.5)
"""Pauses before a file is asked for again [s]; the next scan asks later."""


@runtime_checkable
class KnowsChecksums(Protocol):
    """A source whose listing has checksums of its files."""

    def has_content(self, file: File, content: bytes) -> bool | None:
        """Return whether a listed file has this content; None where no checksum tells.

        Raises:
            StorageError: The source itself fails.
        """
        ...


@dataclass(frozen=True, slots=True)
class ListedContent:
    """A listed file's bytes."""

    content: bytes
    """All of them, as many as the listing says."""
    is_proven: bool
    """Whether a checksum says that they are the file's."""


def read_listed(source: FileReader, file: File) -> ListedContent:
    """A whole file that is as its listing says, asked for again where other bytes came.

    Raises:
        UnreadableFile: It cannot be read, vanished, or each time something else came.
        BadFile: It is larger than MAX_FILE_BYTES.
    """
    if file.size > MAX_FILE_BYTES:
        raise BadFile(f"has {file.size:,} bytes; at most {MAX_FILE_BYTES:,} are read", file.key)
    read: ListedContent | str = ""
    for pause in (*_PAUSES_S, 0.0):
        read = _read_once(source, file)
        if isinstance(read, ListedContent):
            return read
        time.sleep(pause)
    raise UnreadableFile(
        f"cannot be read: what came, {len(_PAUSES_S) + 1} times, is not the file that was listed "
        f"({read}); scan again",
        file.key,
    )


def use_listed(source: FileReader, file: File, use: Callable[[bytes], _T]) -> tuple[_T, bytes]:
    """The result of ``use`` for a listed file's bytes, and these.

    Bytes that no checksum proves are called bad only when they come twice.

    Args:
        use: Raises BadFile where it cannot use them.

    Raises:
        UnreadableFile: As `read_listed`, or what came the second time was other, and bad as well.
    """
    read = read_listed(source, file)
    try:
        return use(read.content), read.content
    except BadFile as error:
        if read.is_proven:
            raise
        again = read_listed(source, file)
        if again.content == read.content:
            raise
        try:
            return use(again.content), again.content
        except BadFile:
            raise UnreadableFile(
                f"cannot be read: other bytes came each time, the first ones bad: {error.reason}; "
                "scan again",
                file.key,
            ) from error


def _read_once(source: FileReader, file: File) -> ListedContent | str:
    """The file's bytes, or how what came differs from it."""
    try:
        content = source.read(file.key)
    except UnreadableFile:
        raise
    except BadFile as error:  # the listing says that it is not too large
        return error.reason
    if len(content) != file.size:
        return f"{len(content):,} bytes, and not {file.size:,}"
    is_content = source.has_content(file, content) if isinstance(source, KnowsChecksums) else None
    if is_content is False:
        return "its MD5 is not the listed ETag"
    return ListedContent(content, bool(is_content))
