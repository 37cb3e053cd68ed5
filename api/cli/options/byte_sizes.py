"""Sizes as people write them."""

import re

from catalog.errors import InvalidInput

_TEXT = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGTP]?)(i?)B?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


def parse_bytes(text: str) -> int:
    """The bytes that a text such as "500GB", "1.5 TiB" or "1000" says.

    Raises:
        InvalidInput: It says none.

    >>> parse_bytes("1.5GB"), parse_bytes("2 KiB"), parse_bytes("7")
    (1500000000, 2048, 7)
    """
    match = _TEXT.fullmatch(text.strip())
    if match is None or (match[3] and not match[2]):
        raise InvalidInput(f"size '{text}': expected bytes, such as 500GB or 1.5TiB")
    unit: int = (1024 if match[3] else 1000) ** _POWERS[match[2].lower()]
    return round(float(match[1]) * unit)


def parse_count(text: str) -> int:
    """The number that a text says.

    Raises:
        InvalidInput: It says none.
    """
    if not text.isdecimal():
        raise InvalidInput(f"number '{text}': expected a whole number, such as 2000000")
    return int(text)
