"""Compacts the catalog for as long as a server or a watcher runs, once commits left many files.

A process of its own does it, with a lower priority: its memory goes with it, and between its
commits, which are of seconds, others write. Of all processes on a catalog one does it.
"""

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from api.workspace import Workspace
from catalog.errors import FramesiftError, StorageError
from framesift_start import start

_FIRST_S = 10.0
_EVERY_S = 30.0
_AGAIN_S = 600.0
"""After a compaction, or one that failed: what it could not merge stays as it is."""

_LONGEST_S = 3600.0
_NICENESS = 10
_END_S = 5.0

_log = logging.getLogger(__name__)


@contextmanager
def compacting(workspace: Workspace, warn: Callable[[str], None] | None = None) -> Iterator[None]:
    """Compact when it is due within the block; its end ends a compaction, which loses nothing."""
    ends = threading.Event()
    thread = threading.Thread(
        target=_compact_when_due,
        args=(workspace, ends, warn or _log.warning),
        name="compaction",
        daemon=True,
    )
    if workspace.settings.compact_files:
        thread.start()
    try:
        yield
    finally:
        ends.set()
        if thread.is_alive():
            thread.join(_END_S)


def _compact_when_due(
    workspace: Workspace, ends: threading.Event, warn: Callable[[str], None]
) -> None:
    wait_s = _FIRST_S
    while not ends.wait(wait_s):
        try:
            wait_s = _AGAIN_S if compact_if_due(workspace, ends) else _EVERY_S
        except FramesiftError as error:
            warn(f"the catalog is not compacted: {error}")
            wait_s = _AGAIN_S


def compact_if_due(workspace: Workspace, ends: threading.Event) -> bool:
    """Compact where commits left many files and no other process does; whether this one did.

    Args:
        ends: Ends it when set.

    Raises:
        StorageError: The compaction failed; the message has its last line.
    """
    # With Prometheus, which a watcher does without until here.
    from api.server.metrics import COMPACTIONS, UNCOMPACTED_FILES
    from catalog.maintenance.automatic import compaction_due, uncompacted

    store, most = workspace.opened_catalog, workspace.settings.compact_files
    if store is None:
        return False
    files = uncompacted(store).files
    UNCOMPACTED_FILES.set(files)
    if files < most:
        return False
    with compaction_due(store, most) as is_due:
        if not is_due:
            return False
        try:
            _run(workspace, ends)
        except StorageError:
            COMPACTIONS.labels("failed").inc()
            raise
        COMPACTIONS.labels("done").inc()
        UNCOMPACTED_FILES.set(uncompacted(store).files)
        return True


def _run(workspace: Workspace, ends: threading.Event) -> None:
    process = subprocess.Popen(
        [sys.executable, *start("api.cli.main"), "compact", "--merge-only", "--json"],
        env={**os.environ, **workspace.variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with suppress(OSError):  # it has ended already
        os.setpriority(os.PRIO_PROCESS, process.pid, _NICENESS)
    killer = threading.Thread(target=_end_with, args=(process, ends), daemon=True)
    killer.start()
    _, errors = process.communicate()
    if process.returncode and not ends.is_set():
        lines = errors.strip().splitlines() or [f"it ended with {process.returncode}"]
        raise StorageError(f"a compaction failed: {lines[-1]}")


def _end_with(process: "subprocess.Popen[str]", ends: threading.Event) -> None:
    """End the process with the server, or when it takes too long."""
    waited_s = 0.0
    while process.poll() is None and waited_s < _LONGEST_S and not ends.wait(1.0):
        waited_s += 1.0
    if process.poll() is None:
        process.terminate()
