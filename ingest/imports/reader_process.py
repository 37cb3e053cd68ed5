"""Reads a file that somebody sent in a process of its own, whose memory and time are limited.

A few kilobytes may ask a decoder for gigabytes: a Parquet footer that lies about sizes, a page that
unpacks to any length. There the process ends, and not the server.
"""

import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from catalog.errors import CatalogBusy, FramesiftError, InvalidInput, StorageError
from catalog.storage.atomic_write import atomic_write
from framesift_start import start

MEMORY_MB = 1536
"""Memory of a reader beyond what Python and Arrow take [MB]: 256 MB of CSV took 1,065."""

CPU_S = 120
"""CPU time of a reader [s]."""

_AT_ONCE = 2
_WAIT_S = 60.0
_LOOK_S = 0.2
_ERRORS = {error.__name__: error for error in (InvalidInput, StorageError)}

_turns = threading.BoundedSemaphore(_AT_ONCE)


def read_in_process(
    function: str,
    file: Path,
    options: Mapping[str, Any],
    *,
    extra_table: pa.Table | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> pa.Table:
    """Return the table that a function makes of a file, in a process of its own.

    Args:
        function: "module:name"; takes the file, ``options`` by name, and ``extra_table`` where
            there is one; returns a pa.Table.
        options: Ready for JSON.
        extra_table: A table to work on.

    Raises:
        InvalidInput, StorageError: As the function does, or it takes too much memory or time, or
            was stopped.
        CatalogBusy: Others are read, and were not done in time.
    """
    if not _turns.acquire(timeout=_WAIT_S):
        raise CatalogBusy(f"{_AT_ONCE} other files are being imported; try again later")
    try:
        with tempfile.TemporaryDirectory(prefix="framesift-") as name:
            folder = Path(name)
            if extra_table is not None:
                _write(extra_table, folder / "beside.arrow")
            job = {"function": function, "file": str(file), "options": dict(options)}
            (folder / "job.json").write_text(json.dumps(job))
            status = _run(folder, stopped)
            if (folder / "error.json").exists():
                error = json.loads((folder / "error.json").read_text())
                raise _ERRORS[error["kind"]](error["message"])
            if status:
                raise InvalidInput(
                    f"{file}: reading it takes more than {MEMORY_MB:,} MB or {CPU_S} s, or it is "
                    "damaged; send it in several files"
                )
            # Mapped: the values are not copied, and stay when the folder goes.
            with pa.memory_map(str(folder / "table.arrow")) as mapped:
                return pa.ipc.open_file(mapped).read_all()
    finally:
        _turns.release()


def go_on(stopped: Callable[[], bool]) -> None:
    """Go on with an import only where somebody waits for it.

    Raises:
        InvalidInput: It was stopped.
    """
    if stopped():
        raise InvalidInput("the import was stopped, as nobody waits for it; nothing was written")


def _run(folder: Path, stopped: Callable[[], bool]) -> int:
    environment = {
        name: value
        for name, value in os.environ.items()  # keys and passwords are not its business
        if name in ("PATH", "HOME", "TMPDIR", "LANG") or name.startswith(("LC_", "PYTHON"))
    }
    command = [sys.executable, *start("ingest.imports.reader_process"), str(folder)]
    one_thread = {"OMP_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment | one_thread,
    ) as process:
        while True:
            try:
                return process.wait(_LOOK_S)
            except subprocess.TimeoutExpired:
                if stopped():
                    process.kill()


def _write(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _limit() -> None:
    """Let this process have so much more than it has now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + (MEMORY_MB << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MEMORY_MB << 20, MEMORY_MB << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _main(folder: Path) -> None:
    job = json.loads((folder / "job.json").read_text())
    module, _, name = job["function"].partition(":")
    function = getattr(importlib.import_module(module), name)
    extra_table = folder / "beside.arrow"
    more = []
    if extra_table.exists():
        with pa.OSFile(str(extra_table)) as file:
            more.append(pa.ipc.open_file(file).read_all())
    _limit()
    try:
        _write(function(Path(job["file"]), *more, **job["options"]), folder / "table.arrow")
    except FramesiftError as error:
        kind = "StorageError" if isinstance(error, StorageError) else "InvalidInput"
        report = json.dumps({"kind": kind, "message": str(error)})
        atomic_write(folder / "error.json", report, fsync=False)
    except (MemoryError, pa.ArrowException):  # the caller says so
        sys.exit(1)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
