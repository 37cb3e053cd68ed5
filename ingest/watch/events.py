"""Events that report changes to a watcher."""

import threading
from collections.abc import Collection
from typing import NamedTuple, Protocol


class Changes(NamedTuple):
    """Changed keys or folders below the source's root, and when that was noticed.

    ``since`` is on time.monotonic's clock.
    """

    paths: Collection[str]
    since: float


class Events(Protocol):
    """Changes of one source. What happens after it was opened is never missed without an error."""

    def poll(self, seconds: float) -> Changes | None:
        """Changes since the last call; waits about so long for something, else None.

        Raises:
            StorageError: Changes may have been missed: list the source again.
        """
        ...

    def unfinished(self) -> Collection[str]:
        """Keys of files that are being written."""
        ...

    def acknowledge(self) -> None:
        """Note that everything which poll gave is in the catalog.

        Raises:
            StorageError: The note could not be written: poll will give it again.
        """
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


class NoEvents:
    """Events of a source that reports no changes: it is listed now and then."""

    def __init__(self, stop: threading.Event) -> None:
        """Wait until ``stop`` is set at the longest."""
        self._stop = stop

    def poll(self, seconds: float) -> Changes | None:
        """Wait so long; None."""
        self._stop.wait(seconds)
        return None

    def unfinished(self) -> Collection[str]:
        """Unknown."""
        return ()

    def acknowledge(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""
