"""Limits the files that may leave the catalog at once.

A disk that is away for a minute looks like a source whose files were removed. A scan that finds
more of them gone than is likely removes none, and says how to allow it.
"""

from collections.abc import Callable

from catalog.errors import InvalidInput, RemovalRefused

MOST_REMOVED = 0.05
"""Share of a source's catalogued files that a scan may remove (0 to 1)."""

ALWAYS_REMOVED = 19
"""So many files may go from any source, however small."""


class RemovalGuard:
    """Counts the removed files of a source, and refuses when they are too many.

    Attributes:
        gone: Files counted so far.
        refuses: They are too many; it stays so.
    """

    def __init__(
        self,
        share: float = 1.0,
        catalogued: Callable[[], int] = lambda: 0,
        name: str = "",
        meant: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """Begin to count.

        Args:
            share: Most of the catalogued files that may go (0 to 1); with 1 all of them may.
            catalogued: How many there are; asked once, and only where ALWAYS_REMOVED are gone.
            name: The source's, for the message.
            meant: Whether a file is meant to go, by its key, and so is not counted.

        Raises:
            InvalidInput: The share is none.
        """
        if not 0 <= share <= 1:
            raise InvalidInput(f"max-removed: got {share}, expected a share from 0 to 1")
        self.gone, self.refuses = 0, False
        self._share, self._ask, self._name, self._meant = share, catalogued, name, meant
        self._catalogued: int | None = None

    def count(self, key: str) -> None:
        """Count one more removed file."""
        if self._meant(key):
            return
        self.gone += 1
        if self._share < 1 and self.gone > ALWAYS_REMOVED:
            if self._catalogued is None:
                self._catalogued = self._ask()
            self.refuses = self.gone > self._share * self._catalogued

    def check(self) -> None:
        """Say that nothing was removed, where too many are gone.

        Raises:
            RemovalRefused: They are.
        """
        if self.refuses:
            raise RemovalRefused(self._name, self.gone, self._catalogued or 0, self._share)
