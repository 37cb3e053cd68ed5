"""Values that clients of Spectrum Discover send as JSON in a string, as the product shows them."""

import json
from typing import Any

from pydantic import BeforeValidator


def _held(value: Any) -> Any:
    """What a text holds, nothing where it is blank; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value) if value.strip() else None
    except (ValueError, RecursionError) as error:
        raise ValueError("the text is no JSON") from error


ALSO_IN_TEXT = BeforeValidator(_held)
"""Marks a field of a body that may also come as JSON in a string."""
