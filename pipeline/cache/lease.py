"""Leases on staged manifests in use, so that nobody evicts what they name.

    CACHE/.leases/<lease>/beat          touched while its holder lives (pipeline/cache/beat.py)
    CACHE/.leases/<lease>/lease.json    the manifest and its holder; with it the lease counts
    CACHE/.leases/<lease>/manifest/     what is being staged, until it lies in .manifests
    CACHE/.leases/<lease>/reserved      space for what is to come (pipeline/cache/reservation.py)
    CACHE/.leases/<lease>/window        its holder fetches again what goes, and is needed
    CACHE/.manifests/<name>/used        touched when a lease on it begins or ends

A lease ends with its holder: by `release`, or when its beat stops. Standard library only: the
runner of a job holds one.
"""

import json
import os
import platform
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from catalog.errors import BadFile, StorageError
from catalog.storage.atomic_write import atomic_write
from catalog.storage.bounded_file import parsed_json, read_bounded
from pipeline.cache.beat import BEAT_S, Watch, beating, first_beat, own_name

LEASES, MANIFESTS = ".leases", ".manifests"
BEAT_FILE, LEASE_FILE, RESERVED_FILE, USED_FILE = "beat", "lease.json", "reserved", "used"
OWN_MANIFEST, WINDOW_FILE = "manifest", "window"
_MOST_BYTES = 65_536
_LOOKS = 20
"""Number of looks for a manifest that another process may be putting back."""
_LOOK_AGAIN_S = 0.05


@dataclass(frozen=True)
class Holder:
    """The holder of a lease, for people."""

    dataset: str
    """NAME@VERSION."""
    job: str = ""
    """The job that reads it; empty for a staging."""
    user: str = ""
    """Whose job or staging it is; empty where nobody is known."""

    def __str__(self) -> str:
        what = f"job {self.job}" if self.job else "a staging"
        return f"{self.dataset}, used by {what}{f' of {self.user}' if self.user else ''}"


@dataclass(frozen=True)
class HeldLease:
    """Lease as other processes see it."""

    folder: Path
    manifest: str
    """Name of the staged manifest."""
    holder: Holder
    host: str
    pid: int
    reserved_bytes: int
    """Room for what is still to come [bytes]."""
    reserved_files: int
    is_known: bool
    """Whether its holder is known to live, and not only not known to be dead."""
    is_window: bool = False
    """Whether its holder fetches again what goes: others of its kind may evict it."""

    def __str__(self) -> str:
        return f"{self.holder} (process {self.pid} on {self.host})"


class Lease:
    """Lease held by this process.

    Attributes:
        manifest: Name of the staged manifest; empty where room is made and nothing held.
    """

    def __init__(self, cache: Path, manifest: str, holder: Holder) -> None:
        """Take it; it ends with `release`.

        Raises:
            StorageError: The cache cannot be written.
        """
        self.cache, self.manifest, self.holder = cache, manifest, holder
        self.folder = cache / LEASES / own_name()
        self._beaten = time.monotonic()
        record = {
            "manifest": manifest,
            **asdict(holder),
            "host": platform.node(),
            "pid": os.getpid(),
        }
        try:
            self.folder.mkdir(parents=True)
            first_beat(self.folder / BEAT_FILE)
            atomic_write(self.folder / LEASE_FILE, json.dumps(record, indent=2), clear=False)
        except OSError as error:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise StorageError(
                f"{self.folder}: cannot be made: {error.strerror}", str(self.folder)
            ) from error
        self._touch_used()

    @property
    def own_manifest(self) -> Path:
        """The folder for a manifest that is not in the cache yet; its entries are held, too."""
        return self.folder / OWN_MANIFEST

    def as_window(self) -> None:
        """Have others of its kind evict what they need no more, though this lease names it."""
        (self.folder / WINDOW_FILE).touch()

    def beat(self) -> None:
        """Say that the holder lives, where the last beat was long ago; costs nothing else."""
        now = time.monotonic()
        if now - self._beaten >= BEAT_S:
            self._beaten = now
            with suppress(OSError):  # a share may be away for a while
                os.utime(self.folder / BEAT_FILE)

    def release(self) -> None:
        """End it."""
        self._touch_used()
        # First what makes it count: the rest may take a while.
        with suppress(OSError):
            (self.folder / LEASE_FILE).unlink()
        shutil.rmtree(self.folder, ignore_errors=True)

    def need_manifest(self) -> None:
        """See that the staged manifest is there, which nobody evicts from now on.

        Raises:
            StorageError: It was evicted before.
        """
        folder = self.cache / MANIFESTS / self.manifest
        for _ in range(_LOOKS):
            # An eviction looks for leases once more when it has moved it, and puts it back.
            if (folder / "manifest.json").exists():
                return
            time.sleep(_LOOK_AGAIN_S)
        raise StorageError(
            f"{folder}: was evicted from the cache before the job began: stage the dataset again "
            "(framesift stage), and resume the job",
            str(folder),
        )

    def _touch_used(self) -> None:
        if not self.manifest:
            return
        with suppress(OSError):  # not there yet, or not there any more
            folder = self.cache / MANIFESTS / self.manifest
            if folder.is_dir():
                (folder / USED_FILE).touch()


@contextmanager
def leased(cache: Path, manifest: str, holder: Holder) -> Iterator[Lease]:
    """A lease for the block, kept alive by a thread.

    Args:
        manifest: Name of the staged manifest in it; it need not be there yet.
    """
    lease = Lease(cache, manifest, holder)
    try:
        with beating(lease.folder / BEAT_FILE):
            yield lease
    finally:
        lease.release()


def cache_of(manifest: Path) -> Path | None:
    """The cache in which a staged manifest lies; None for one that lies elsewhere."""
    path = manifest.absolute()
    return path.parent.parent if path.parent.name == MANIFESTS else None


def held_leases(cache: Path, watch: Watch) -> list[HeldLease]:
    """The leases of a cache; those whose holders are dead are removed.

    Args:
        watch: Detects dead holders; the same at every call, for it must see beats stop.

    Raises:
        StorageError: The cache cannot be read.
    """
    folder, leases = cache / LEASES, []
    try:
        with suppress(OSError):
            # NFS: a change by this host has it list the folder again instead of from its memory.
            os.utime(folder)
        lease_folders = sorted(
            lease_folder for lease_folder in folder.glob("[!.]*") if lease_folder.is_dir()
        )
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StorageError(f"{folder}: {error.strerror}", str(folder)) from error
    for lease_folder in lease_folders:
        beat = lease_folder / BEAT_FILE
        if watch.is_dead(beat if beat.exists() else lease_folder):
            shutil.rmtree(lease_folder, ignore_errors=True)
            continue
        record = _read(lease_folder / LEASE_FILE)
        if record is None:
            continue  # being made, or being released
        reserved = _read(lease_folder / RESERVED_FILE) or {}
        holder = Holder(*(str(record.get(name, "")) for name in ("dataset", "job", "user")))
        leases.append(
            HeldLease(
                lease_folder,
                str(record.get("manifest", "")),
                holder,
                str(record.get("host", "")),
                _number(record, "pid"),
                _number(reserved, "bytes"),
                _number(reserved, "files"),
                watch.is_alive(beat),
                (lease_folder / WINDOW_FILE).exists(),
            )
        )
    return leases


def _read(path: Path) -> dict[str, Any] | None:
    try:
        data = parsed_json(read_bounded(path, _MOST_BYTES))
    except (OSError, ValueError, BadFile):
        return None
    return data if isinstance(data, dict) else None


def _number(data: dict[str, Any], name: str) -> int:
    value = data.get(name)
    return value if isinstance(value, int) else 0
