"""Where a staging's unfinished copies lie: CACHE/.parts/<one staging>/."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from catalog.errors import StorageError
from catalog.storage.own_folder import own_folder

FOLDER = ".parts"


@contextmanager
def part_folder(cache: Path) -> Iterator[Path]:
    """A folder for one staging's unfinished copies, gone afterwards; leftovers are cleared first.

    Raises:
        StorageError: It cannot be made.
    """
    parts = cache / FOLDER
    with ExitStack() as stack:
        try:
            own = stack.enter_context(own_folder(parts))
        except OSError as error:
            raise StorageError(f"{parts}: cannot be made: {error.strerror}", str(parts)) from error
        yield own
