"""Values that clients of Spectrum Discover send as JSON in a string, as the product shows them."""

import json
from typing import Any

from pydantic import BeforeValidator

from api.http.middleware.json_shape import TooMuch, check_shape


def _document(value: Any) -> Any:
    """The JSON document in a text, None where it is blank; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        document = json.loads(value) if value.strip() else None
        check_shape(document)
    except TooMuch as error:
        raise ValueError(f"the text {error}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError("the text is no JSON") from error
    return document


ALSO_IN_TEXT = BeforeValidator(_document)
"""Marks a field of a body that may also come as JSON in a string."""
