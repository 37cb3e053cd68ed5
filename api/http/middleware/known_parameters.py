"""Query parameters that a route does not know are refused: a misspelt filter filters nothing."""

from difflib import get_close_matches

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel


async def check_parameters(request: Request) -> None:
    """Go on only where the route declares each parameter; a dependency of Framesift's own routes.

    Spectrum Discover's routes ignore what they do not know, as the product's do.

    Raises:
        RequestValidationError: There is another one.
    """
    route: APIRoute = request.scope["route"]
    if not request.scope["query_string"]:
        return
    known = set(_names(route.dependant))
    for name in request.query_params:
        if name not in known:
            fault = {"type": "extra_forbidden", "loc": ("query", name[:80])}
            raise RequestValidationError([fault | {"msg": _message(name, sorted(known))}])


def _names(dependant: Dependant) -> list[str]:
    names = []
    for field in dependant.query_params:
        kind = field.field_info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            names += [parameter.alias or name for name, parameter in kind.model_fields.items()]
        else:
            names.append(field.alias)
    return names + [name for parameter in dependant.dependencies for name in _names(parameter)]


def _message(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    meant = f", did you mean '{near[0]}'?" if near else ""
    takes = f"expected one of {', '.join(known)}" if known else "this takes none"
    return f"no such parameter{meant}; {takes}"
