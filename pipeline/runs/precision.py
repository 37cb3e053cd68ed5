"""Names of the precisions that a training may compute in. A leaf."""

from catalog.errors import UnknownName

AUTO, FLOAT32, MIXED = "auto", "float32", "mixed_float16"
PRECISIONS = (AUTO, FLOAT32, MIXED)


def check_precision(name: str) -> None:
    """Accept the name of a precision.

    Raises:
        UnknownName: There is none of that name.
    """
    if name not in PRECISIONS:
        raise UnknownName("precision", name, PRECISIONS)
