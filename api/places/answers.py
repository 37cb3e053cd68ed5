"""Answers of a server, whose version may be another one, as this version's models."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from catalog.errors import InvalidInput

_Model = TypeVar("_Model", bound=BaseModel)


def read_as(model: type[_Model], body: Mapping[str, Any]) -> _Model:
    """An answer as a model; what the model does not know is left out.

    Raises:
        InvalidInput: The answer lacks what the model has.
    """
    from framesift.versions import Document, difference  # they import httpx

    try:
        return model.model_validate(body)
    except ValidationError as error:
        place = ".".join(str(part) for part in error.errors()[0]["loc"])
        server = body.server if isinstance(body, Document) else ""
        raise InvalidInput(
            f"the server's answer is none that this version reads, in '{place}'{difference(server)}"
        ) from error
