"""Answers of a home, or of a server, whose version may be another one, as this version's models."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from catalog.errors import InvalidInput

_Model = TypeVar("_Model", bound=BaseModel)


def read_as(model: type[_Model], body: object) -> _Model:
    """An answer as a model; what the model does not know is left out.

    Args:
        model: What it is read as.
        body: A home's answer, a model with the same fields; or a server's document.

    Raises:
        InvalidInput: The answer lacks what the model has.
    """
    if isinstance(body, model):
        return body
    try:
        return model.model_validate(body, from_attributes=True)
    except ValidationError as error:
        from framesift.http.versions import Document, difference  # with importlib.metadata

        path = ".".join(str(key) for key in error.errors()[0]["loc"])
        server = body.server if isinstance(body, Document) else ""
        raise InvalidInput(
            f"the server's answer is none that this version reads, in '{path}'{difference(server)}"
        ) from error
