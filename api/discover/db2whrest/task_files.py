"""Results of asynchronous tasks as files: bounded, shared by all workers, safe from their end.

    <id>.part      being written; whoever writes it holds a lock on it, which ends with the process
    <id>.result    complete: a line of JSON with view, status and content type, then the body

A .part without a lock was left by a process that ended: whoever sees it first makes it the result
of a task that failed.
"""

import json
import os
import time
import uuid
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import IO

from api.discover.replies import failure
from catalog.errors import InvalidInput, StorageError
from catalog.storage.eviction import Bounds, entries_in, entries_to_evict
from catalog.storage.file_lock import lock, open_locked

_LOST = "the server ended while the task was running; send the request again"
_JSON = "application/json"
_SWEEP_S = 60.0


@dataclass(frozen=True)
class Limits:
    """Limits of tasks."""

    result_bytes: int = 2 << 30
    """Of one result."""
    kept: int = 10_000
    """Results that are complete; the oldest go first, of those who keep most."""
    kept_bytes: int = 10 << 30
    """Of all of those."""
    kept_s: float = 24 * 3600
    """How long a result is kept [s]."""


@dataclass(frozen=True)
class Result:
    """The result of a task."""

    status: int
    """HTTP status of the answer."""
    content_type: str
    """Of the body."""
    length: int
    """Bytes of the body."""
    body: IO[bytes]
    """The file, to be read from where it stands and closed."""


class Output:
    """Where a task writes its body; nobody reads it before `finish`.

    Attributes:
        id: The task's.
    """

    def __init__(self, folder: Path, view: str, content_type: str, most_bytes: int) -> None:
        """Begin a new one.

        Raises:
            StorageError: The folder cannot be written.
        """
        self.id, self._view = str(uuid.uuid4()), view
        self._part, self._done = folder / f"{self.id}.part", folder / f"{self.id}.result"
        self._left = most_bytes
        self._most = most_bytes
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Without a buffer: what a full disk refused must not be tried again at the end.
            self._file = self._part.open("xb", buffering=0)
            lock(self._file)
            _write_all(self._file, _head(view, 200, content_type))
        except OSError as error:
            raise _refused(error, self._part) from error

    def write(self, data: bytes) -> None:
        """Add to the body.

        Raises:
            InvalidInput: It is longer than it may be.
            StorageError: The disk refuses.
        """
        self._left -= len(data)
        if self._left < 0:
            raise InvalidInput(f"the result has more than {self._most:,} bytes; ask for less")
        try:
            _write_all(self._file, data)
        except OSError as error:
            raise _refused(error, self._part) from error

    def replace(self, status: int, body: str) -> None:
        """Have this as the whole result, in JSON, whatever was written before."""
        _rewrite(self._file, self._view, status, body)

    def finish(self) -> None:
        """Show the result to everybody."""
        try:
            self._part.rename(self._done)
        except OSError as error:
            raise _refused(error, self._part) from error
        finally:
            self._file.close()  # and with it the lock

    def discard(self) -> None:
        """Leave nothing."""
        self._part.unlink(missing_ok=True)
        self._file.close()


class TaskFiles:
    """The folder of all tasks of a home."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        """Nothing is made before the first task."""
        self.folder, self.limits = folder, limits
        self._swept = 0.0

    def new(self, view: str, content_type: str) -> Output:
        """The output of a new task for that view: api.services.accounts.callers.Caller.view."""
        if time.monotonic() - self._swept > _SWEEP_S:
            self._swept = time.monotonic()
            self.sweep()
        return Output(self.folder, view, content_type, self.limits.result_bytes)

    def view(self, task: str) -> str | None:
        """With which view it was asked for; None where there is none."""
        for suffix in (".part", ".result"):  # in this order: the one becomes the other
            try:
                with (self.folder / f"{task}{suffix}").open("rb") as file:
                    return _view(file)
            except OSError:
                continue
        return None

    def running(self, task: str) -> bool:
        """Return whether somebody still writes it."""
        temporary = self.folder / f"{task}.part"
        try:
            handle = open_locked(temporary, os.O_RDWR, wait_s=0)
        except OSError:
            return False  # it became the result, or another took care of it
        if handle is None:
            return True
        with FileIO(handle, "rb+") as file:
            _rewrite(file, _view(file), 500, failure(_LOST))
            temporary.rename(temporary.with_suffix(".result"))
        return False

    def result(self, task: str, *, take: bool = False) -> Result | None:
        """The result of a task; None where there is no such task, or it runs.

        Args:
            take: Leave it to nobody else.
        """
        path = self.folder / f"{task}.result"
        try:
            file = path.open("rb")
        except OSError:
            return None
        if take:
            path.unlink(missing_ok=True)
        try:
            head = json.loads(file.readline())
            length = os.fstat(file.fileno()).st_size - file.tell()
            return Result(head["status"], head["content_type"], length, file)
        except (ValueError, KeyError, TypeError):  # the machine stopped before it was on the disk
            file.close()
            return None

    def sweep(self) -> None:
        """Remove what is too old, and of what is too much the oldest of those who keep most."""
        for temporary in self.folder.glob("*.part"):
            self.running(temporary.stem)
        limits = self.limits
        bounds = Bounds(limits.kept, limits.kept_bytes, since=time.time() - limits.kept_s)
        results = entries_in(self.folder.glob("*.result"))
        for result in entries_to_evict(results, bounds, lambda one: self.view(one.path.stem) or ""):
            result.path.unlink(missing_ok=True)


def is_task(text: str) -> bool:
    """Return whether it could be a task's id, and nothing else: it becomes a file's name."""
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def _head(view: str, status: int, content_type: str) -> bytes:
    head = {"view": view, "status": status, "content_type": content_type}
    return json.dumps(head).encode() + b"\n"


def _view(file: IO[bytes] | FileIO) -> str:
    try:
        return str(json.loads(file.readline())["view"])
    except (ValueError, KeyError, TypeError):  # it ended before it began
        return ""


def _rewrite(file: FileIO, view: str, status: int, body: str) -> None:
    # Cut off last: whoever looks at the first line meanwhile finds the old one or the new one.
    file.seek(0)
    _write_all(file, _head(view, status, _JSON) + body.encode("utf-8", "replace"))
    file.truncate()


def _write_all(file: FileIO, data: bytes) -> None:
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[file.write(remaining) or 0 :]


def _refused(error: OSError, path: Path) -> StorageError:
    return StorageError(
        f"{path.parent}: a task's result cannot be written: {error.strerror}", str(path.parent)
    )
