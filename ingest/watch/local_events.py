"""Changes below a folder of this machine, by inotify.

The kernel's events are read by watchdog's InotifyFD. Its Observer is not used: it hides that a
folder could not be watched or that events were lost (watchdog 7.1), and holds moves back for half a
second to pair them, which nobody needs here: a folder that is moved is gone in one place and new
in another.

Each folder is watched before it is listed, so that what appears in between is met by one of both.
inotify reports this machine's changes only: what other hosts write to a network file system is
found by listing it.
"""

import errno
import os
import stat
import threading
import time
import warnings
from collections.abc import Callable, Collection
from pathlib import Path

from watchdog.observers.inotify_c import (
    CallbackId,
    InotifyConstants,
    InotifyEvent,
    InotifyFD,
    Mask,
    WatchDescriptor,
)

from catalog.errors import InvalidInput, StorageError
from ingest.watch.batch import WHOLE
from ingest.watch.events import Changes

OPEN_AT_MOST_S = 60.0
"""A file that nobody has written to for so long counts as finished, closed or not."""

_LONGEST_WAIT_S = 0.5  # a signal ends the watcher after this wait
_MOST_PATHS = 100_000
_NEVER_WATCHED = WatchDescriptor(-1)  # watchdog's answer where permission is denied
_MASK = Mask(
    InotifyConstants.IN_CREATE
    | InotifyConstants.IN_MODIFY
    | InotifyConstants.IN_ATTRIB
    | InotifyConstants.IN_CLOSE_WRITE
    | InotifyConstants.IN_MOVE
    | InotifyConstants.IN_DELETE
    | InotifyConstants.IN_DELETE_SELF
    | InotifyConstants.IN_MOVE_SELF
    | InotifyConstants.IN_ONLYDIR
    | InotifyConstants.IN_DONT_FOLLOW
    | InotifyConstants.IN_EXCL_UNLINK
)
# A folder that was moved before its move was read is met under its new name, with the same watch.
warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)


class LocalEvents:
    """Files that were closed, moved or removed below a folder, and those still being written."""

    def __init__(
        self,
        root: Path,
        warn: Callable[[str], None],
        excluded: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """Watch a folder and everything below it.

        Args:
            warn: Called with a line on what cannot be watched from now on.
            excluded: Whether a folder is left out, by its path below the root.

        Raises:
            InvalidInput: There are more folders than this machine may watch.
        """
        self._folder, self._warn, self._excluded = root, warn, excluded
        self._root = f"{os.path.realpath(root)}/"
        self._id = CallbackId(id(self))
        self._changed = threading.Condition()
        self._paths: set[str] = set()
        self._since = 0.0
        self._unfinished: dict[str, float] = {}  # key -> when it counts as finished
        self._lost = ""
        self._full = self._watching = False
        self._folders: dict[WatchDescriptor, str] = {}
        self._watches: dict[str, WatchDescriptor] = {}
        self._identity = self._identify()
        try:
            self._inotify = InotifyFD()
        except OSError as error:
            raise InvalidInput(
                f"{root}: inotify cannot be used: {error.strerror}; raise "
                "fs.inotify.max_user_instances (sysctl), or re-list only: --events none"
            ) from error
        self._inotify.start()
        with self._changed:
            self._watch_below("")
        self._watching = True
        if self._full:
            self.close()
            raise InvalidInput(
                f"{root}: has more folders than this machine may watch; raise "
                "fs.inotify.max_user_watches (sysctl), or re-list only: --events none"
            )

    def poll(self, seconds: float) -> Changes | None:
        """See Events."""
        with self._changed:
            self._take_finished()
            if not self._paths and not self._lost:
                self._changed.wait(min(seconds, _LONGEST_WAIT_S))
                self._take_finished()
            if self._lost:
                raise StorageError(f"{self._folder}: {self._lost}", str(self._folder))
            paths, self._paths = self._paths, set()
        if self._identify() != self._identity:
            raise StorageError(f"{self._folder}: was replaced", str(self._folder))
        return Changes(paths, self._since) if paths else None

    def unfinished(self) -> Collection[str]:
        """Keys of files that were written to and are still open."""
        with self._changed:
            return tuple(self._unfinished)

    def acknowledge(self) -> None:
        """Nothing to do: the kernel keeps no events."""

    def close(self) -> None:
        """Stop watching."""
        self._inotify.stop()
        self._inotify.join()

    def _identify(self) -> tuple[int, int]:
        try:
            status = self._folder.stat()
        except OSError as error:
            raise StorageError(
                f"{self._folder}: {error.strerror}; is the source mounted?", str(self._folder)
            ) from error
        return status.st_dev, status.st_ino

    # What follows is called by watchdog's thread, or with the lock held.

    def on_event(self, event: InotifyEvent) -> None:
        """Note one event of the kernel."""
        with self._changed:
            try:
                self._note(event)
            except Exception as error:
                # This thread must live on; the watcher begins again.
                self._lose(f"inotify: {type(error).__name__}: {error}")

    def on_watch_deleted(self, wd: WatchDescriptor) -> None:
        """Forget a watch that the kernel ended."""
        with self._changed:
            folder = self._folders.pop(wd, None)
            if folder is not None:
                self._watches.pop(folder, None)

    def on_queue_overflow(self) -> None:
        """The kernel dropped events."""
        with self._changed:
            self._lose(
                "more changes than inotify's queue holds, some are lost; raise "
                "fs.inotify.max_queued_events (sysctl) if this repeats"
            )

    def _note(self, event: InotifyEvent) -> None:
        folder = self._folders.get(event.wd)
        if folder is None:
            return  # moved away
        is_self = event.is_delete_self or event.is_move_self
        if event.mask & InotifyConstants.IN_UNMOUNT or (is_self and not folder):
            self._lose("was removed, moved or unmounted")
        elif event.name:
            key = folder + os.fsdecode(event.name)
            if event.mask & InotifyConstants.IN_ISDIR:
                self._note_folder(key + "/", event)
            else:
                self._note_file(key, event)

    def _note_folder(self, folder: str, event: InotifyEvent) -> None:
        if event.is_delete or event.is_moved_from:
            self._forget(folder, below=event.is_moved_from)
        elif event.is_create or event.is_moved_to:
            self._watch_below(folder)
        else:
            return
        self._changed_at(folder)

    def _note_file(self, key: str, event: InotifyEvent) -> None:
        if event.is_modify or (event.is_create and not self._is_link(key)):
            self._unfinished[key] = time.monotonic() + OPEN_AT_MOST_S
            if len(self._unfinished) > _MOST_PATHS:
                self._unfinished.clear()
                self._changed_at(WHOLE)
        elif not (event.is_attrib and key in self._unfinished):
            self._unfinished.pop(key, None)
            self._changed_at(key)

    def _is_link(self, key: str) -> bool:
        """Return whether a new name is a link, which nobody closes."""
        try:
            status = os.lstat(self._root + key)
        except OSError:
            return False
        return stat.S_ISLNK(status.st_mode) or status.st_nlink > 1

    def _changed_at(self, path: str) -> None:
        if not self._paths:
            self._since = time.monotonic()
        if len(self._paths) >= _MOST_PATHS:
            self._paths = {WHOLE}
        self._paths.add(path)
        self._changed.notify_all()

    def _take_finished(self) -> None:
        now = time.monotonic()
        for key in [key for key, finished in self._unfinished.items() if finished <= now]:
            del self._unfinished[key]
            self._changed_at(key)

    def _lose(self, reason: str) -> None:
        self._lost = self._lost or reason
        self._changed.notify_all()

    def _watch_below(self, folder: str) -> None:
        todo = [folder]
        while todo:
            folder = todo.pop()
            if self._excluded(folder):
                continue
            try:
                todo += self._watch(folder)
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                continue  # gone again; or not to be read, which the scan will say
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    self._lose(f"{folder}: {error.strerror}")
                    return
                if self._watching and not self._full:
                    self._warn(
                        f"{self._root}{folder}: cannot be watched, as no new folder can: raise "
                        "fs.inotify.max_user_watches (sysctl). Until the watcher is started "
                        "again, they are found by re-listing"
                    )
                self._full = True
                return

    def _watch(self, folder: str) -> list[str]:
        """Watch one folder; the folders in it."""
        path = self._root + folder
        if folder not in self._watches:
            wd = self._inotify.add_callback(os.fsencode(path), _MASK, self, self._id)
            if wd == _NEVER_WATCHED:
                raise PermissionError(errno.EACCES, "permission denied", path)
            self._watches.pop(self._folders.get(wd, ""), None)
            self._folders[wd], self._watches[folder] = folder, wd
        with os.scandir(path) as entries:
            return [f"{folder}{e.name}/" for e in entries if e.is_dir(follow_symlinks=False)]

    def _forget(self, folder: str, *, below: bool) -> None:
        forgotten = [folder]
        if below:
            forgotten = [watched for watched in self._watches if watched.startswith(folder)]
        watches = [self._watches.pop(watched, None) for watched in forgotten]
        known = [wd for wd in watches if wd is not None]
        for wd in known:
            self._folders.pop(wd, None)
        self._inotify.remove_callbacks([(wd, self._id) for wd in known])
