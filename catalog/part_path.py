"""What is written beside its target and then takes its name: TARGET.<32 hex digits>.part.

Its writer holds a lock on it, which the kernel frees when the writer dies, however it dies: a part
whose lock is free belongs to nobody.
"""

import fcntl
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_HEX = "[0-9a-f]" * 32


@contextmanager
def part_of(target: Path, *, is_folder: bool = False) -> Iterator[Path]:
    """An empty file or folder beside ``target``, gone after the block unless it was renamed.

    What killed writers of the same target left goes first.

    Raises:
        OSError: It cannot be made.
    """
    clear_parts(target.parent.glob(f"{_literal(target.name)}.{_HEX}.part"))
    part, handle = _made(target, is_folder)
    try:
        yield part
    finally:
        with suppress(OSError):
            _remove(part)
        os.close(handle)


def clear_parts(found: Iterable[Path]) -> None:
    """Remove those parts that no living process writes."""
    for part in found:
        try:
            handle = _locked(part)
        except OSError:
            continue  # somebody writes it or has just renamed it, or it is another user's
        with suppress(OSError):
            _remove(part)
        os.close(handle)


def _made(target: Path, is_folder: bool) -> tuple[Path, int]:
    while True:
        part = target.with_name(f"{target.name}.{uuid.uuid4().hex}.part")
        if is_folder:
            part.mkdir()
        else:
            part.touch()
        with suppress(BlockingIOError, FileNotFoundError):  # who clears took it in that moment
            handle = _locked(part)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), part.stat()):
                    return part, handle
            os.close(handle)


def _locked(part: Path) -> int:
    handle = os.open(part, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle


def _remove(part: Path) -> None:
    if part.is_dir():
        shutil.rmtree(part, ignore_errors=True)
    else:
        part.unlink(missing_ok=True)


def _literal(name: str) -> str:
    """A name as a pattern that only it fits."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in name)
