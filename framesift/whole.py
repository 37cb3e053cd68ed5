"""What of the distribution framesift the client uses, and what it says where that is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

from framesift.errors import MissingPackage


@contextmanager
def of_whole(subject: str) -> Iterator[None]:
    """Import modules of the distribution framesift during the block.

    Args:
        subject: What needs them, as a sentence begins: "a class map".

    Raises:
        MissingPackage: framesift-client is installed alone.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingPackage(
            f"{subject} needs all of Framesift, and framesift-client is installed here alone "
            f"({error}): pip install --find-links FOLDER_OF_WHEELS framesift"
        ) from error
