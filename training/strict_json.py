"""JSON as its standard has it, without NaN, for reports that other programs read."""

import json


def strict_json(data: object) -> str:
    """JSON text of ``data``, indented, with a line end.

    Raises:
        ValueError: A number is not finite.
    """
    return json.dumps(data, indent=2, allow_nan=False) + "\n"
