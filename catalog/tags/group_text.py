"""Class groups as users write them: ``vehicle = car + truck + bus``."""

from catalog.errors import InvalidInput


def parse_group(text: str) -> tuple[str, tuple[str, ...]]:
    """The tag and the classes of ``vehicle = car + truck + bus``.

    Raises:
        InvalidInput: It is not written so.
    """
    tag, equals, rest = (piece.strip() for piece in text.partition("="))
    classes = tuple(name.strip() for name in rest.split("+"))
    if not (tag and equals and all(classes)):
        raise InvalidInput(
            f"class group '{text[:200]}': expected a tag and its classes, such as "
            "vehicle = car + truck + bus"
        )
    return tag, classes
