"""/static: the style, the scripts and the icon of pages, which hold nothing of a catalog."""

from mimetypes import guess_type

from fastapi import HTTPException, Request
from fastapi.responses import Response

from api.http.routing import Router
from api.http.rules import OPEN, Api
from api.web.pages import HEADERS, STATIC, asset

router = Router(api=Api.WEB, include_in_schema=False)

_FILES = frozenset(path.name for path in STATIC.iterdir())
_A_YEAR = "public, max-age=31536000, immutable"


@router.get("/static/{name}", rule=OPEN)
def get_static_file(name: str, request: Request) -> Response:
    """A file; browsers keep the one whose digest its URL names."""
    if name not in _FILES:
        raise HTTPException(404)
    kind = guess_type(name)[0] or "application/octet-stream"
    is_named = str(request.url).endswith(asset(name))
    content = (STATIC / name).read_bytes()
    headers = {"Cache-Control": _A_YEAR if is_named else "no-cache"}
    return Response(content, media_type=kind, headers={**HEADERS, **headers})
