"""The memory of a process that holds no snapshot in it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final

from catalog.lake.snapshot import Facts, Snapshot

if TYPE_CHECKING:
    from catalog.memory.keeper import Files  # commands hold nothing, and go without it


class NoMemory:
    """Keeper of a memory with a budget of 0: it loads nothing, ever."""

    tried: Final = True
    """True: answers are as fast as they will be."""
    loaded_bytes: Final = 0
    """0."""

    def __init__(self, files: "Files") -> None:
        """Hold nothing."""
        self._files = files

    def reading(self, at: int | None = None) -> AbstractContextManager[Snapshot]:
        """See Catalog: from the catalog's files."""
        return self._files.reading_files(at)

    def pinned(
        self, _at: int | None, _limited_to: str | None = None
    ) -> AbstractContextManager[None]:
        """No snapshot."""
        return nullcontext()

    def at(self, _number: int | None) -> None:
        """No snapshot."""

    def wait(self, _seconds: float) -> bool:
        """False: there is nothing to wait for."""
        return False

    def prepare_by(self, _prepare: Callable[[Facts | None], None]) -> None:
        """Nothing is prepared."""

    def close(self) -> None:
        """Nothing is open."""
