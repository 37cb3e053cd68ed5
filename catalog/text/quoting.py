"""Texts as SQL writes them."""


def quoted(text: object) -> str:
    """A text as it stands between single quotes."""
    return str(text).replace("'", "''")


def literal(text: object) -> str:
    """A text as SQL writes it, quotes included."""
    return f"'{quoted(text)}'"
