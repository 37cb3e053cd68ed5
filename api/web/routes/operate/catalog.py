"""/operate: scans, the cache, snapshots."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Path, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from api.http.dependencies import CurrentContext, CurrentSession
from api.http.routing import Router
from api.http.rules import READ_ALL_ROWS, WRITE_ALL_ROWS, Api
from api.schemas.home_orders import Scan
from api.web.forms import form_of
from api.web.narrowed import MOST, Holding, narrowed, narrowed_path
from api.web.operate import shown_to
from api.web.pages import gone_on, page
from api.web.run.scan_figures import scan_figures
from catalog.errors import InvalidInput

router = Router(api=Api.WEB, prefix="/operate", include_in_schema=False)

_PROBLEMS = 500
_SNAPSHOTS = 30


@router.post("/scans", rule=WRITE_ALL_ROWS)
async def post_scan_page(
    request: Request, session: CurrentSession, context: CurrentContext
) -> Response:
    """Begin a scan, and go on to its job."""
    form = await form_of(request)
    order = Scan(source=form.get("source"), full=bool(form.get("full")))
    context.about = f"source {order.source}"[:500]
    job = await run_in_threadpool(session.scans.begin, order)
    return gone_on(request, f"/jobs/{job.name}")


@router.get("/scans/{number}", rule=READ_ALL_ROWS)
def get_scan_page(
    number: Annotated[int, Path(ge=1, lt=2**63)], request: Request, session: CurrentSession
) -> Response:
    """A scan: what it counted, and the problems that it met."""
    scan = session.scans.get(number)
    context = {
        "scan": scan,
        "figures": scan_figures({**scan.counts, "seconds": scan.seconds}),
        "problems": session.scans.problems(number, limit=_PROBLEMS),
        "most": _PROBLEMS,
    }
    return page(request, "operate/scan.html", context | shown_to(session.caller))


@router.get("/cache", rule=READ_ALL_ROWS.but(work="statistics"))
def get_cache_page(request: Request, session: CurrentSession, holding: Holding = "") -> Response:
    """The contents of the cache, and who uses it."""
    cache = session.cache.status()
    staged = narrowed(cache.datasets, holding, lambda one: one.dataset)
    context = {"cache": cache, "staged": staged, "most": MOST}
    return page(request, "operate/cache.html", context | shown_to(session.caller))


@router.post("/cache", rule=WRITE_ALL_ROWS)
async def post_cache_page(
    request: Request, session: CurrentSession, context: CurrentContext, holding: Holding = ""
) -> Response:
    """Pin, unpin or evict a staged dataset; back to the list as it was."""
    form = await form_of(request)
    dataset, action = form.get("dataset"), form.get("action")
    context.about = f"cache {action} {dataset}"[:500]
    actions: dict[str, Callable[[str], Any]] = {
        "pin": session.cache.pin,
        "unpin": session.cache.unpin,
        "evict": session.cache.evict,
    }
    if action not in actions:
        raise InvalidInput(f"action '{action[:40]}': expected {', '.join(actions)}")
    await run_in_threadpool(actions[action], dataset)
    return gone_on(request, narrowed_path("/operate/cache", holding))


@router.get("/snapshots", rule=READ_ALL_ROWS)
def get_snapshots_page(request: Request, session: CurrentSession) -> Response:
    """The catalog's newest snapshots, and how much there is."""
    context = {"snapshots": session.snapshots.list(_SNAPSHOTS), "info": session.info()}
    return page(request, "operate/snapshots.html", context | shown_to(session.caller))
