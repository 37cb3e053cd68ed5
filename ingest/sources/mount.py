"""The mount of a source: a file system that has its files, too.

A bucket may be the home of an AFM fileset, an archive server's folder be exported: the source's
root lies at a path of its own there, and at another one in a container or pod that mounts it.
"""

from dataclasses import dataclass
from pathlib import PurePosixPath

from catalog.errors import InvalidInput

MOUNT = "HOST_FOLDER[:FOLDER_IN_CONTAINER]"
"""Format of a mount."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A source's root on a mounted file system."""

    host: str
    """Its folder on hosts that mount the file system."""
    container: str
    """Its folder in containers and pods; the host's where it was not given."""

    @classmethod
    def parse(cls, text: str) -> "Mount":
        """The mount that a text names.

        Raises:
            InvalidInput: It is no absolute folder, or two with a colon between.
        """
        host, colon, container = text.partition(":")
        for folder in (host, container) if colon else (host,):
            if not PurePosixPath(folder).is_absolute() or ":" in folder or ".." in folder:
                raise InvalidInput(
                    f"mount {text}: expected {MOUNT} with absolute folders, such as "
                    "/gpfs/fs1/a2d2:/data/a2d2"
                )
        return cls(_tidy(host), _tidy(container or host))

    def __str__(self) -> str:
        return self.host if self.container == self.host else f"{self.host}:{self.container}"


def _tidy(folder: str) -> str:
    return str(PurePosixPath(folder))
