"""Names of what a training does to its examples, and what is usual. A leaf."""

from collections.abc import Iterable

from catalog.errors import UnknownName

AUGMENTATIONS = ("mirror", "crop", "scale", "colour")
USUAL = ("mirror",)
NONE = "none"


def checked_augmentations(names: Iterable[str]) -> tuple[str, ...]:
    """The names, each once, in their usual order.

    >>> checked_augmentations(["colour", "mirror"])
    ('mirror', 'colour')

    Raises:
        UnknownName: One is none.
    """
    chosen = set(names)
    for name in sorted(chosen - {*AUGMENTATIONS}):
        raise UnknownName("augmentation", name, AUGMENTATIONS)
    return tuple(name for name in AUGMENTATIONS if name in chosen)


def augmentations_in(text: str) -> tuple[str, ...]:
    """The names in a flag's text, "mirror,crop"; none for "none".

    Raises:
        UnknownName: One is none.
    """
    return () if text == NONE else checked_augmentations(text.replace(" ", "").split(","))
