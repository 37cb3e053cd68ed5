"""Index of a tar archive's members: read once from its headers, kept in SQLite.

A tar is a chain: a header tells where the next one is. On S3 every step is a request, so several
walks start at once, spread over the archive, each at the first header it finds from there. What a
walk found counts only from the place where the walk before it arrives: then both read the same
chain. A walk that fell for something that looks like a header, as in a tar inside the tar, is
arrived at nowhere, is dropped, and the one before goes on.
"""

import contextlib
import io
import os
import sqlite3
import tarfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from catalog.errors import BadFile, FramesiftError, StorageError
from catalog.storage.atomic_write import part_of
from catalog.storage.to_disk import to_disk
from ingest.sources.source_files import ArchiveBytes

FORMAT = 1
"""Version of the index file; others are made again."""

MOST_HEADER_BYTES = 2**20
"""A longer extended header is taken for damage: names and times need some hundred bytes."""

_BLOCK = tarfile.BLOCKSIZE
_NEAR_WINDOW = 64 * 2**10
_FAR_WINDOW = 4 * 2**10
_SMALL_MEMBER = 16 * 2**10
_SEARCH_BYTES = 8 * 2**20
_MOST_PADDING = 4 * 2**20
_ROWS = 5_000


@dataclass(frozen=True, slots=True)
class IndexCost:
    """The cost of making an index: requests (or reads) and bytes; 0 when it was there."""

    requests: int = 0
    bytes: int = 0


class _Step(NamedTuple):
    """One member as a walk meets it. ``start`` is its first header, ``next`` the next member's."""

    start: int
    next: int
    key: str
    data: int
    size: int
    mtime: float
    skipped: str


class _Meter:
    """Counts what all walks read."""

    def __init__(self, archive: ArchiveBytes) -> None:
        self.archive, self.requests, self.bytes = archive, 0, 0
        self._lock = threading.Lock()

    def read(self, start: int, length: int) -> bytes:
        content = self.archive.read_range(start, length)
        with self._lock:
            self.requests += 1
            self.bytes += len(content)
        if len(content) != length:
            raise StorageError(
                f"{self.archive.uri}: {len(content):,} bytes came from byte {start:,}, not "
                f"{length:,}; scan it again",
                self.archive.uri,
            )
        return content


class _Window(io.RawIOBase):
    """An archive as tarfile wants to read it, fetched in windows that fit what is there.

    Between large members 4 KiB hold a header and a small neighbour (a frame's JSON before its
    image); where members are small, 64 KiB hold several headers and save requests.
    """

    def __init__(self, meter: _Meter, size: int) -> None:
        self._meter, self._size = meter, size
        self._at = self._base = 0
        self._held = b""
        self.span = float(_NEAR_WINDOW)

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at}.get(whence, self._size)
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        if not 0 <= size <= MOST_HEADER_BYTES:
            raise tarfile.ReadError(f"a header claims {size:,} bytes")
        size = min(size, max(0, self._size - self._at))
        start = self._at - self._base
        if start < 0 or start + size > len(self._held):
            window = _NEAR_WINDOW if self.span < _SMALL_MEMBER else _FAR_WINDOW
            length = min(max(window, size), self._size - self._at)
            self._base, start = self._at, 0
            self._held = self._meter.read(self._at, length) if length else b""
        content = self._held[start : start + size]
        self._at += len(content)
        return content

    def passed(self, span: int) -> None:
        """Set how far the last member reached [bytes]: the window follows the recent mean."""
        self.span += (span - self.span) / 4


class _Walk:
    """The chain of members from one header on.

    Attributes:
        at: Where the next member starts.
        ended: The archive's end marker was met.
        global_headers: A PAX header for all that follows was met: no later walk can know it.
    """

    def __init__(self, meter: _Meter, start: int, stop: int) -> None:
        self._meter, self._start, self._stop = meter, start, stop
        self.at, self.ended, self.global_headers = start, False, False

    def __iter__(self) -> Iterator[_Step]:
        """Members that start before ``stop``.

        Raises:
            BadFile: The archive is damaged or truncated.
        """
        archive = self._meter.archive
        window = _Window(self._meter, archive.size)
        window.seek(self._start)
        try:
            # The header at the start is read when the archive is opened.
            with tarfile.TarFile(
                fileobj=window,
                encoding="utf-8",
                errors="surrogateescape",
            ) as tar:
                yield from self._steps(tar, window)
                self.global_headers = bool(set(tar.pax_headers) - {"comment"})
        except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
            # tarfile calls itself for each header that is about the next one.
            is_chain = isinstance(error, RecursionError)
            reason = "hundreds of headers for one member" if is_chain else str(error)
            raise BadFile(
                f"is no tar archive, or is damaged or truncated, at byte {self.at:,} "
                f"of {archive.size:,}: {reason}",
                archive.uri,
            ) from error

    def _steps(self, tar: tarfile.TarFile, window: _Window) -> Iterator[_Step]:
        while self.at < self._stop:
            member = tar.next()
            tar.members.clear()  # type: ignore[attr-defined]  # it would keep them all
            if member is None:
                self._check_end(window)
                return
            after = tar.offset
            if after <= self.at:
                raise tarfile.ReadError("a header leads backwards")
            if after > self._meter.archive.size:
                raise tarfile.ReadError(f"'{member.name}' reaches beyond the end")
            step = _step(member, self.at, after)
            window.passed(after - self.at)
            self.at = after
            yield step

    def _check_end(self, window: _Window) -> None:
        # tarfile takes a broken header for the end.
        window.seek(self.at)
        block = window.read(_BLOCK)
        if len(block) < _BLOCK:
            raise tarfile.ReadError("it has no end marker")
        if block.strip(b"\0"):
            raise tarfile.ReadError("no valid header there")
        self.ended = True


def _step(member: tarfile.TarInfo, start: int, after: int) -> _Step:
    key, skipped = _clean_name(member.name)
    if not skipped:
        skipped = _unusable(member)
    return _Step(start, after, key, member.offset_data, member.size, float(member.mtime), skipped)


def _unusable(member: tarfile.TarInfo) -> str:
    if member.isdir():
        return "folder"
    if member.issym() or member.islnk():
        kind = "symbolic" if member.issym() else "hard"
        return f"{kind} link to {_printable(member.linkname)}: links are not followed"
    if member.issparse():
        return "sparse file: not supported, unpack it"
    if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE):
        return f"no regular file (type {member.type!r})"
    return ""


def _clean_name(name: str) -> tuple[str, str]:
    """A member's key, as tar would extract it below a folder, and why it has none."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return _printable(name), "name is not UTF-8"
    parts = [segment for segment in name.split("/") if segment not in ("", ".")]
    if ".." in parts:
        return name, "name leads out of the archive"
    if "\0" in name:
        return name.replace("\0", "\\0"), "name holds a zero byte"
    return "/".join(parts), "" if parts else "folder"


def _printable(name: str) -> str:
    return name.encode(errors="backslashreplace").decode()


class TarIndex:
    """The members of one archive, in one SQLite file; safe for many threads."""

    def __init__(self, path: Path, cost: IndexCost) -> None:
        """Open a finished index; see open_index."""
        self.path, self.cost = path, cost
        self._lock = threading.Lock()
        self._connection = _connect_read_only(path)

    def find(self, key: str) -> tuple[int, int] | None:
        """The start and size of a member's data [bytes]; None if there is none."""
        member = self.member(key)
        return None if member is None else member[:2]

    def member(self, key: str) -> tuple[int, int, float] | None:
        """Find a member as `find` does, with the time of its last change [s since 1970]."""
        with self._lock:
            row = self._connection.execute(
                "SELECT data, size, mtime FROM members WHERE key = ?", [key]
            ).fetchone()
        return None if row is None else (int(row[0]), int(row[1]), float(row[2]))

    def members(self) -> Iterator[tuple[str, int, float]]:
        """Key, size [bytes] and time of last change [s since 1970], in byte order of the key."""
        yield from self._rows("SELECT key, size, mtime FROM members ORDER BY key")

    def skipped(self) -> Iterator[tuple[str, str]]:
        """Key and reason of the members that cannot be read; folders are not among them."""
        yield from self._rows("SELECT key, reason FROM skipped ORDER BY key, reason")

    def _rows(self, statement: str) -> Iterator[Any]:
        # A connection of its own: the caller may read members between two rows.
        with contextlib.closing(_connect_read_only(self.path)) as connection:
            yield from connection.execute(statement)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def open_index(archive: ArchiveBytes, path: Path) -> TarIndex:
    """The archive's index: the one at ``path`` if it is of this very archive, else a new one.

    Raises:
        StorageError: It cannot be reached, or the index cannot be written.
    """
    if _fits(path, archive):
        return TarIndex(path, IndexCost())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A folder, as SQLite puts locks of its own on the file, which NFS takes for the part's.
        with part_of(path, is_folder=True) as temporary_folder:
            cost = _build(archive, temporary_folder / path.name)
            to_disk(temporary_folder / path.name)
            (temporary_folder / path.name).replace(path)
    except (OSError, sqlite3.Error) as error:
        raise StorageError(f"{path}: the index cannot be written: {error}", str(path)) from error
    return TarIndex(path, cost)


def _connect_read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False
    )


def _about(archive: ArchiveBytes) -> tuple[int, str, int, str]:
    return (FORMAT, archive.uri, archive.size, archive.identity)


def _fits(path: Path, archive: ArchiveBytes) -> bool:
    try:
        with contextlib.closing(_connect_read_only(path)) as connection:
            row = connection.execute("SELECT format, uri, size, identity FROM about").fetchone()
    except sqlite3.Error:
        return False
    return bool(row == _about(archive))


def _build(archive: ArchiveBytes, path: Path) -> IndexCost:
    meter = _Meter(archive)
    with contextlib.closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        connection.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            "CREATE TABLE steps (region INTEGER, start INTEGER, next INTEGER, key TEXT,"
            " data INTEGER, size INTEGER, mtime REAL, skipped TEXT,"
            " PRIMARY KEY (region, start)) WITHOUT ROWID;"
        )
        _Builder(meter, connection).build()
        # Of several members of one name the last wins, as when tar extracts them.
        connection.executescript(
            "CREATE TABLE members (key TEXT PRIMARY KEY, data INTEGER, size INTEGER, mtime REAL)"
            " WITHOUT ROWID;"
            "CREATE TABLE skipped (key TEXT, reason TEXT);"
            "CREATE TEMP TABLE last AS SELECT key, max(start), data, size, mtime, skipped"
            " FROM steps WHERE skipped <> 'folder' GROUP BY key;"
            "INSERT INTO members SELECT key, data, size, mtime FROM last WHERE skipped = ''"
            " ORDER BY key;"
            "INSERT INTO skipped SELECT key, skipped FROM last WHERE skipped <> '';"
            "DROP TABLE steps;"
            "CREATE TABLE about (format INTEGER, uri TEXT, size INTEGER, identity TEXT);"
        )
        connection.execute("INSERT INTO about VALUES (?, ?, ?, ?)", _about(archive))
        connection.commit()
        connection.execute("VACUUM")
    return IndexCost(meter.requests, meter.bytes)


class _Builder:
    """Runs the walks of one archive and joins them."""

    def __init__(self, meter: _Meter, connection: sqlite3.Connection) -> None:
        self._meter, self._connection = meter, connection
        self._lock = threading.Lock()
        archive = meter.archive
        walks = max(1, min(archive.walks, archive.size // _SEARCH_BYTES // 2))
        even = archive.size // walks // _BLOCK * _BLOCK
        self._bounds = [even * number for number in range(walks)] + [max(archive.size, 1)]

    def build(self) -> None:
        """Fill the table steps with exactly the archive's chain."""
        regions = list(pairwise(self._bounds))
        with ThreadPoolExecutor(len(regions), thread_name_prefix="index") as pool:
            walks = [
                pool.submit(self._walk if number == 0 else self._try_walk, number, start, stop)
                for number, (start, stop) in enumerate(regions)
            ]
            walk = walks[0].result()
            for number, (_, stop) in enumerate(regions[1:], 1):
                tried = walks[number].result()
                if walk is None or walk.ended or walk.global_headers:
                    break
                walk = self._join(number, walk.at, stop, tried)
        if walk is not None and walk.global_headers and not walk.ended:
            self._restart()
        elif walk is not None:
            self._finish(walk)

    def _join(self, number: int, at: int, stop: int, tried: "_Walk | None") -> "_Walk":
        """Take a region's walk from ``at`` on, or walk there again if it never came by."""
        if at >= stop:
            self._drop(number)
            return _Walk(self._meter, at, stop)
        known = self._one("SELECT 1 FROM steps WHERE region = ? AND start = ?", number, at)
        if tried is not None and known:
            self._run("DELETE FROM steps WHERE region = ? AND start < ?", number, at)
            return tried
        self._drop(number)
        return self._walk(number, at, stop)

    def _finish(self, walk: "_Walk") -> None:
        """Drop what lies behind the end marker; walk on to it if no walk met it."""
        if not walk.ended:
            last = _Walk(self._meter, walk.at, self._meter.archive.size + 1)
            self._store(len(self._bounds), last)
            walk = last
        self._run("DELETE FROM steps WHERE start >= ?", walk.at)
        archive = self._meter.archive
        is_padding = archive.size - walk.at <= _MOST_PADDING
        if not is_padding or _has_header(self._meter, walk.at, archive.size):
            raise BadFile(
                f"its end marker is at byte {walk.at:,} of {archive.size:,}, and what follows is "
                "not read; expected one archive, not several joined or a damaged one: join them "
                "with tar --concatenate, or add each as a source",
                archive.uri,
            )

    def _restart(self) -> None:
        """One walk from the start: a header for all that follows reaches across the regions."""
        self._run("DELETE FROM steps")
        self._finish(self._walk(0, 0, self._meter.archive.size + 1))

    def _walk(self, region: int, start: int, stop: int) -> "_Walk":
        walk = _Walk(self._meter, start, stop)
        self._store(region, walk)
        return walk

    def _try_walk(self, region: int, start: int, stop: int) -> "_Walk | None":
        """A walk from the first header after ``start``; None if there is none or it goes astray."""
        try:
            header = _find_header(self._meter, start, min(stop, start + _SEARCH_BYTES))
            return None if header is None else self._walk(region, header, stop)
        except FramesiftError:
            return None  # whoever arrives here reads it again, and reports if it is true

    def _store(self, region: int, walk: "_Walk") -> None:
        rows: list[tuple[object, ...]] = []
        for step in walk:
            rows.append((region, *step))
            if len(rows) == _ROWS:
                self._insert(rows)
                rows = []
        self._insert(rows)

    def _insert(self, rows: list[tuple[object, ...]]) -> None:
        with self._lock:
            self._connection.executemany("INSERT INTO steps VALUES (?,?,?,?,?,?,?,?)", rows)

    def _drop(self, region: int) -> None:
        self._run("DELETE FROM steps WHERE region = ?", region)

    def _run(self, statement: str, *values: int) -> None:
        with self._lock:
            self._connection.execute(statement, values)

    def _one(self, statement: str, *values: int) -> bool:
        with self._lock:
            return self._connection.execute(statement, values).fetchone() is not None


def _has_header(meter: _Meter, start: int, stop: int) -> bool:
    """Return whether some block is a header; POSIX allows other bytes behind the end marker."""
    for at in range(start, stop, _NEAR_WINDOW):
        content = meter.read(at, min(_NEAR_WINDOW, stop - at))
        blocks = (content[offset : offset + _BLOCK] for offset in range(0, len(content), _BLOCK))
        if any(block.strip(b"\0") and _is_header(block) for block in blocks):
            return True
    return False


def _find_header(meter: _Meter, start: int, stop: int) -> int | None:
    """The first block from ``start`` on that is a valid header with a magic word."""
    piece = _NEAR_WINDOW
    for at in range(start, stop, piece):
        content = meter.read(at, min(piece, stop - at))
        for offset in range(0, len(content) - _BLOCK + 1, _BLOCK):
            if content[offset + 257 : offset + 262] == b"ustar" and _is_header(
                content[offset : offset + _BLOCK]
            ):
                return at + offset
    return None


def _is_header(block: bytes) -> bool:
    try:
        tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True
