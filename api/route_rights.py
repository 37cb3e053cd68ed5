"""Rights looked at once more, by the route that will answer.

The gate decides by a request's path before any route is known. Here the same is asked of the
route's own template, so that no path that is written in some other way finds a route for which
somebody else's rights are needed.
"""

from fastapi import Request

from api.callers import LOGIN, OPEN, Caller, need_of
from catalog.errors import NotAuthenticated


async def check_rights(request: Request) -> None:
    """Go on only where who asks may ask this route; a dependency of the whole application.

    Raises:
        NotAuthenticated: The gate asked nobody who they are, and the route is not open.
        NotAllowed: Who asks may not.
    """
    template = str(request.scope["route"].path)
    if template in OPEN:
        return
    caller: Caller | None = request.state.passage.caller
    if caller is None:
        raise NotAuthenticated(f"send 'Authorization: Bearer TOKEN'; a token comes from {LOGIN}")
    caller.need(need_of(request.method, template))
