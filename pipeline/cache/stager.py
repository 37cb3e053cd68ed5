"""One staging's place in a cache, and which files it fetches just now.

    CACHE/.parts/<staging>/beat     touched while it lives
    CACHE/.parts/<staging>/N.part   what is coming
    CACHE/.claims/<entry's hash>    a link to the beat of the staging that fetches an entry

No claim is needed to keep bytes right: what comes lies in a file of its own until it is whole. It
saves fetching a file twice. So a claim may be lost, when its staging stood still for a minute.
"""

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path

from catalog.errors import StorageError
from pipeline.cache.beat import Watch, beating, own_name

PARTS, CLAIMS, BEAT = ".parts", ".claims", "beat"

_NO_HARD_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV, errno.EINVAL)
"""Errors of a file system that has no hard links, or none between folders."""


class Stager:
    """A running staging, with its claims on the entries that it fetches.

    Attributes:
        folder: For what is coming.
    """

    def __init__(self, cache: Path, name: str) -> None:
        self.cache, self.name, self.folder = cache, name, cache / PARTS / name
        self._parts, self._claims, self._watch = cache / PARTS, cache / CLAIMS, Watch()
        self._beat = self.folder / BEAT

    def claim(self, entry: str) -> bool:
        """Take an entry to fetch it; False while another living staging fetches it.

        Args:
            entry: Its path below the cache.
        """
        claim = self._claim(entry)
        try:
            self._link(claim)
        except FileExistsError:
            return self._is_abandoned(claim) and self.claim(entry)
        return True

    def _link(self, claim: Path) -> None:
        """Make the claim with its staging's name in one step, also on NFS.

        A file is there before anything stands in it, and whoever was killed between the two held
        everybody up for a minute. A hard link takes no inode: ext4 looks through all inodes that
        were deleted in the last minutes for each new one, up to 0.6 ms.
        """
        try:
            claim.hardlink_to(self._beat)
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            claim.symlink_to(Path("..", PARTS, self.name, BEAT))

    def release(self, entry: str) -> None:
        """Let an entry go that was claimed: it is there, or could not be had."""
        self._unlink_own(self._claim(entry))

    @cached_property
    def _beat_status(self) -> os.stat_result:
        return self._beat.stat()

    def release_all(self) -> None:
        """Let every entry go that it still claims: of transfers that it has left behind."""
        with suppress(OSError):
            for claim in self._claims.iterdir():
                self._unlink_own(claim)

    def _unlink_own(self, claim: Path) -> None:
        with suppress(OSError):
            if os.path.samestat(claim.stat(), self._beat_status):
                claim.unlink()

    def _claim(self, entry: str) -> Path:
        return (
            self._claims / hashlib.sha256(entry.encode(errors="surrogateescape")).hexdigest()[:32]
        )

    def _is_abandoned(self, claim: Path) -> bool:
        """True where a claim's staging is dead; then it is gone by now."""
        try:
            # The last link to a beat: its staging's folder was removed.
            has_folder = claim.is_symlink() or claim.stat().st_nlink > 1
            if has_folder and not self._watch.is_dead(claim):
                return False
            claim.unlink()
        except FileNotFoundError:
            pass
        except OSError:
            return False
        return True

    def clear(self) -> None:
        """Remove the claims and folders of dead stagings, as far as they are known to be dead."""
        with suppress(OSError):
            for claim in self._claims.iterdir():
                self._is_abandoned(claim)
        with suppress(OSError):
            for folder in self._parts.iterdir():
                if folder == self.folder or not folder.is_dir():
                    continue
                beat = folder / BEAT
                if self._watch.is_dead(beat if beat.exists() else folder):
                    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def stager(cache: Path) -> Iterator[Stager]:
    """A staging's place in a cache, for the block.

    Raises:
        StorageError: It cannot be made.
    """
    own = Stager(cache, own_name())
    with ExitStack() as stack:
        try:
            own.folder.mkdir(parents=True)
            stack.callback(shutil.rmtree, own.folder, ignore_errors=True)
            (cache / CLAIMS).mkdir(exist_ok=True)
            stack.callback(own.release_all)
            stack.enter_context(beating(own.folder / BEAT))
        except OSError as error:
            raise StorageError(
                f"{own.folder}: cannot be made: {error.strerror}", str(own.folder)
            ) from error
        own.clear()
        yield own
        own.clear()
