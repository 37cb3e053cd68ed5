"""The interface of every kind of source: list its files, read one, read a part of one."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from catalog.values import File, Problem

MAX_FILE_BYTES = 256 * 2**20
"""Label files larger than this are refused unread: A2D2's have 30 to 105 kB."""

Unreadable = Callable[[str, str], None]
"""Called with the key of a folder (ends in a slash) or file that cannot be read, and the reason."""


class FileReader(Protocol):
    """Reads files of a source by key. Keys use slashes and never leave the root."""

    def read(self, key: str) -> bytes:
        """A whole file as it comes; `listed_read` compares it with its listing.

        Raises:
            UnreadableFile: It cannot be read, or vanished.
            BadFile: It is larger than MAX_FILE_BYTES.
            StorageError: The source itself fails.
        """
        ...

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """At most ``length`` bytes from ``start``; fewer at the file's end.

        Raises:
            UnreadableFile: It cannot be read, or vanished.
            StorageError: The source itself fails.
        """
        ...


class SourceFiles(FileReader, Protocol):
    """The files below a source's root."""

    root: str

    def list(self, below: str = "", unreadable: Unreadable | None = None, /) -> Iterator[File]:
        """Every file but those left out, in byte order of the keys: a scene's come together.

        Args:
            below: Only what lies in this folder (ends in a slash), or this one file; nothing
                where it is not there.
            unreadable: Called for a folder that may not be read, before what follows is listed;
                where None, that ends the listing.

        Raises:
            StorageError: The source fails, or a folder may not be read.
        """
        ...

    def problems(self) -> Iterable[Problem]:
        """Entries that cannot be listed as files, such as a tar archive's links."""
        ...

    def spans(self, keys: Iterable[str], /) -> dict[str, tuple[int, int]]:
        """The spans of files in the one file that the source is: start and length [bytes] by key.

        Empty where each is a file of its own. With them another process reads the files without
        an index.
        """
        ...


class ArchiveBytes(Protocol):
    """An archive that can be read in ranges, by several threads at once."""

    uri: str
    """How messages call it."""
    size: int
    """Its size [bytes]."""
    identity: str
    """Changes with its content: ETag, or time of last change."""
    walks: int
    """Walks that pay to run at once when it is indexed; 1 where a read costs no wait."""

    def read_range(self, start: int, length: int, label: str = "") -> bytes:
        """At most ``length`` bytes from ``start``.

        Raises:
            UnreadableFile: It vanished or changed; ``label`` is the member concerned.
            StorageError: It cannot be reached.
        """
        ...
