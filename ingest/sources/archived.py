"""Files of a source that lie in an archive, and must be brought back before they are read."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """A request to an object store for archived objects."""

    days: int = 7
    """How long it keeps a copy that can be read."""
    tier: str = "Standard"
    """How soon it does: "Standard", "Bulk", "Expedited"; IBM COS has "Accelerated", too."""


@runtime_checkable
class RestoresFiles(Protocol):
    """A source's files that are restored one by one, on request."""

    def restored(self, key: str, request: RestoreRequest) -> bool:
        """True where a file can be read now; requests an archived one, once.

        Raises:
            BadFile: It vanished, or may not be restored.
            StorageError: The source itself fails.
        """
        ...
