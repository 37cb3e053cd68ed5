"""Chooses the split of a training or a validation where none was named."""

from catalog.errors import InvalidInput
from pipeline.manifest import Manifest

UNDIVIDED = "all"
"""The one split of a dataset that was not divided."""


def chosen_split(manifest: Manifest, named: str | None, default: str) -> str:
    """The name of a split that the dataset has.

    Args:
        named: The split that was named; None where none was.
        default: The usual one, "train" or "validation"; a dataset that is not divided gives all
            its frames in its place.

    Raises:
        InvalidInput: The split has no frames.
    """
    name = named
    if name is None:
        name = UNDIVIDED if is_undivided(manifest) else default
    if not len(manifest.split(name)):
        header = manifest.header
        raise InvalidInput(
            f"dataset {header.name}@{header.version}: split {name} has no frames; name another "
            f"with --split, or divide it again: framesift dataset split {header.name}"
        )
    return name


def is_undivided(manifest: Manifest) -> bool:
    """Return whether the dataset is one split of all its frames."""
    return tuple(manifest.header.splits) == (UNDIVIDED,)
