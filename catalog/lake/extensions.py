"""DuckDB's extensions, from the packages that are installed.

To check an extension's signature DuckDB reads all of its 35 MB: 0.1 s of CPU for each of a
connection's two or three. So a process checks each file once, and again when it has changed;
connections after that load it unchecked, in 1 ms. What was checked can be remembered for the next
process: a file that is another, or was written to since, is checked again.
"""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

import duckdb

from catalog.errors import StorageError, not_installed
from catalog.storage.atomic_write import atomic_write
from catalog.text.quoting import quoted

_State = tuple[str, int, int, int, int]

_checked: set[_State] = set()
"""Path, inode, size and times [ns] of files whose signature was found to be right."""

_remembered: Path | None = None
"""File that keeps that result for other processes."""


def remember_in(file: Path) -> None:
    """Keep what is checked in a file that only this user may write; nothing where it cannot be.

    Whoever can write it can write the records and the catalog beside it, too.
    """
    global _remembered  # one for the process, as what is checked
    _remembered = file
    with suppress(OSError, ValueError, TypeError):
        status = file.stat()
        if status.st_uid == os.geteuid() and not status.st_mode & 0o022:
            _checked.update(tuple(state) for state in json.loads(file.read_bytes()))


def _remember() -> None:
    if _remembered is None:
        return
    with suppress(StorageError):  # the next process then checks for itself
        atomic_write(_remembered, json.dumps(sorted(_checked)), mode=0o600, fsync=False)


class Extensions:
    """DuckDB's extensions that a connection needs, in the order of loading.

    Attributes:
        settings: What DuckDB is to be connected with.
    """

    def __init__(self, names: Sequence[str]) -> None:
        """Find them."""
        self._files = [file_of(name) for name in names]
        self._states = [_state(file) for file in self._files]
        unchecked = _checked.issuperset(self._states)
        self.settings: dict[str, str | bool | int | float | list[str]] = {
            "allow_unsigned_extensions": unchecked
        }

    def load(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Load them into a connection that was made with the settings."""
        for file, state in zip(self._files, self._states, strict=True):
            connection.execute(f"LOAD '{quoted(file)}'")
            if state not in _checked:
                _checked.add(state)
                _remember()


def file_of(name: str) -> Path:
    """The file of an extension.

    Raises:
        InvalidInput: Its package is not installed.
        StorageError: The package has none for this version of DuckDB.
    """
    try:
        package = files(f"duckdb_extension_{name}")
    except ModuleNotFoundError as error:
        raise not_installed(f"DuckDB's extension {name}", "team") from error
    path = Path(str(package / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"))
    if not path.is_file():
        raise StorageError(
            f"DuckDB's extension {name} for version {duckdb.__version__} is not installed: "
            "run 'make setup' again",
            str(path),
        )
    return path


def _state(file: Path) -> _State:
    status = file.stat()
    return str(file), status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
