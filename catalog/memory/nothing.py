"""The memory of a process that holds no snapshot in it."""

from typing import Final


class NothingInMemory:
    """Keeper of a memory with a budget of 0: it loads nothing, ever.

    Attributes:
        tried: True: answers are as fast as they will be.
        held_bytes: 0.
    """

    tried: Final = True
    held_bytes: Final = 0

    def at(self, _number: int | None) -> None:
        """No snapshot."""

    def wait(self, _seconds: float) -> bool:
        """False: there is nothing to wait for."""
        return False

    def close(self) -> None:
        """Nothing is open."""
