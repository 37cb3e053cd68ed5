"""Running stagings of a cache, which any process and host that shares it may look at and end.

    CACHE/.parts/<staging>/staging.json    what is staged, for whom (StagingAbout)
    CACHE/.parts/<staging>/progress.json   how far it is, at most `REPORT_EVERY_S` old
    CACHE/.parts/<staging>/cancel          there when somebody asked it to end

A staging runs while its beat goes on (pipeline.cache.beat).
"""

import json
import os
import platform
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from catalog.errors import BadFile, StagingCancelled, StorageError
from catalog.storage.atomic_write import atomic_write
from catalog.storage.bounded_file import parsed_json, read_bounded
from pipeline.cache.beat import Watch
from pipeline.cache.stager import BEAT, PARTS, Stager

REPORT_EVERY_S = 2.0
"""Interval at which a staging writes its progress and looks whether it was cancelled [s]."""

_ABOUT, _PROGRESS, _CANCEL = "staging.json", "progress.json", "cancel"
_MOST_BYTES = 65_536


@dataclass(frozen=True)
class StagingAbout:
    """Description of a staging: its dataset, its plan and its process."""

    dataset: str
    """NAME@VERSION."""
    content_id: str
    """Of the dataset: two homes may have datasets of one name."""
    job_folder: str
    """Of the job that does it; empty for a command."""
    user: str
    """Whose it is: the job's owner, or the command's user on its machine."""
    files: int
    bytes: int
    missing_files: int
    missing_bytes: int
    host: str = field(default_factory=platform.node)
    pid: int = field(default_factory=os.getpid)
    began: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    """When, by that host's clock, ISO 8601 in UTC."""


_TEXTS = [each.name for each in fields(StagingAbout) if each.type is str]
_NUMBERS = [each.name for each in fields(StagingAbout) if each.type is int]


@dataclass(frozen=True)
class RunningStaging:
    """A running staging."""

    name: str
    about: StagingAbout
    progress: Mapping[str, Any]
    """As pipeline.staging.progress.Progress.to_json gives it; empty at first."""
    is_cancelled: bool


class Announcement:
    """Announcement of a staging in its cache: has its progress, and receives its cancellation."""

    def __init__(self, own: Stager, about: StagingAbout) -> None:
        """Announce it."""
        self._folder, self._dataset = own.folder, about.dataset
        self._reported_s = 0.0
        self._write(_ABOUT, asdict(about))

    def report(self, progress: Mapping[str, Any]) -> None:
        """Record the progress, at most every `REPORT_EVERY_S`.

        Raises:
            StagingCancelled: Somebody asked it to end.
        """
        now = time.monotonic()
        if self._reported_s and now - self._reported_s < REPORT_EVERY_S:
            return
        self._reported_s = now
        with suppress(StorageError):  # a full disk is for the files themselves to report
            self._write(_PROGRESS, progress)
        if (self._folder / _CANCEL).exists():
            raise StagingCancelled(
                f"the staging of {self._dataset} was cancelled (what has come stays in the cache: "
                "the next one fetches the rest)"
            )

    def _write(self, name: str, data: object) -> None:
        atomic_write(self._folder / name, json.dumps(data), fsync=False, clear=False)


def running_stagings(cache: Path, watch: Watch) -> list[RunningStaging]:
    """The stagings that run, the one that began last first.

    Args:
        watch: Detects dead holders; the same at every call, for it must see beats stop.

    Raises:
        StorageError: The cache cannot be read.
    """
    stagings = []
    try:
        folders = list((cache / PARTS).iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StorageError(f"{cache}: {error.strerror}", str(cache)) from error
    for folder in folders:
        about = _about(_read(folder / _ABOUT))
        if about is None or watch.is_dead(folder / BEAT):
            continue
        cancelled = (folder / _CANCEL).exists()
        stagings.append(RunningStaging(folder.name, about, _read(folder / _PROGRESS), cancelled))
    return sorted(stagings, key=lambda running: running.about.began, reverse=True)


def cancel_staging(cache: Path, name: str) -> None:
    """Ask a running staging to end; one that has ended is left alone.

    Raises:
        StorageError: The cache cannot be written.
    """
    path = cache / PARTS / name / _CANCEL
    try:
        path.touch()
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}", str(path)) from error


def _about(record: Mapping[str, Any]) -> StagingAbout | None:
    """The description that a staging wrote of itself; None for none yet, or an unknown one."""
    try:
        texts = {name: str(record[name]) for name in _TEXTS}
        numbers = {name: int(record[name]) for name in _NUMBERS}
    except (KeyError, TypeError, ValueError):
        return None
    return StagingAbout(**texts, **numbers)  # type: ignore[arg-type]  # by their types


def _read(path: Path) -> dict[str, Any]:
    try:
        data = parsed_json(read_bounded(path, _MOST_BYTES))
    except (OSError, ValueError, BadFile):
        return {}
    return data if isinstance(data, dict) else {}
