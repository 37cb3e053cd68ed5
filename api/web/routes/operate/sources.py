"""/operate: sources as they are added, looked at, given a layout; and how their scans went."""

from typing import Any

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from api.http.dependencies import CurrentContext, CurrentSession
from api.http.routing import Router
from api.http.rules import READ, READ_ALL_ROWS, WRITE_ALL_ROWS, Api
from api.schemas.home_orders import Scan
from api.schemas.sources import NewSource
from api.services.session import Session
from api.web.forms import form_of
from api.web.narrowed import Holding, narrowed
from api.web.operate import shown_to
from api.web.pages import elsewhere, gone_on, page
from api.web.source_form import frames_path, new_source
from catalog.values import FILE_PLATFORMS, OBJECT_PLATFORMS

router = Router(api=Api.WEB, prefix="/operate", include_in_schema=False)

_SCANS = 50
_PROBLEMS = 50


@router.get("", rule=READ)
def get_operate(request: Request, session: CurrentSession, holding: Holding = "") -> Response:
    """Sources and scans; the tokens of those who see rows of collections only."""
    if not session.caller.sees_all:
        return elsewhere("/operate/tokens")
    context = {
        "sources": narrowed(session.sources.list(), holding, lambda source: source.name),
        "newest": {scan.source: scan for scan in session.scans.newest()},
        "scans": session.scans.list(limit=_SCANS),
        "nameable": session.sources.nameable(), "presets": session.sources.layouts(),
        "file_platforms": ("local", *(one for one in FILE_PLATFORMS if one != "local")),
        "object_platforms": ("S3", *(one for one in OBJECT_PLATFORMS if one != "S3")),
    }  # fmt: skip
    return page(request, "operate/sources.html", context | shown_to(session.caller))


@router.post("/sources", rule=WRITE_ALL_ROWS)
async def post_source_page(
    request: Request, session: CurrentSession, context: CurrentContext
) -> Response:
    """Add a source; go on to the job of its scan, or to its page."""
    form = await form_of(request)
    body = new_source(form)
    context.about = f"source {body.name}"[:500]

    def add() -> str:
        session.sources.add(**dict(body))
        if not form.get("scan"):
            return _path(body)
        return f"/jobs/{session.scans.begin(Scan(source=body.name)).name}"

    return gone_on(request, await run_in_threadpool(add))


@router.post("/sources/look", rule=WRITE_ALL_ROWS)
async def post_look_part(request: Request, session: CurrentSession) -> Response:
    """The layout that the names at a place tell; nothing is added: a part of the form."""
    form = await form_of(request)
    recognition = await run_in_threadpool(session.sources.look, new_source(form, name="new"))
    return page(request, "operate/_looked_at.html", {"recognition": recognition})


@router.get("/sources/{name}", rule=READ_ALL_ROWS)
def get_source_page(name: str, request: Request, session: CurrentSession) -> Response:
    """A source: its place and layout, its scans, and the files that the last one could not read."""
    context = {
        "source": session.sources.get(name),
        "presets": session.sources.layouts(),
        **_scanned(session, name),
    }
    return page(request, "operate/source.html", context | shown_to(session.caller))


@router.post("/sources/{name}", rule=WRITE_ALL_ROWS)
async def post_source_change(
    name: str, request: Request, session: CurrentSession, context: CurrentContext
) -> Response:
    """Give a source another layout."""
    form = await form_of(request)
    context.about = f"source {name}"[:500]

    def change() -> Any:
        return session.sources.change(name, layout=form.get("layout"))

    return gone_on(request, f"/operate/sources/{(await run_in_threadpool(change)).name}")


def _scanned(session: Session, name: str) -> dict[str, Any]:
    scans = session.scans.list(source=name, limit=_SCANS)
    problems = session.scans.problems(scans[0].scan, limit=_PROBLEMS) if scans else []
    frames = frames_path(session.sources.get(name).datasource)
    return {"scans": scans, "problems": problems, "most": _PROBLEMS, "frames_path": frames}


def _path(body: NewSource) -> str:
    return f"/operate/sources/{body.name}"
