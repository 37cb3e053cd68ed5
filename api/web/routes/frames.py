"""/frames: one frame, its neighbours in the drive; and /marks, which gives frames tags."""

from itertools import groupby
from typing import Annotated, Any

from fastapi import Path, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from api.http.dependencies import CurrentContext, CurrentSession
from api.http.routing import Router
from api.http.rules import READ, WRITE_ALL_ROWS, Api
from api.services.session import Session
from api.web.find.url_question import UrlQuestion
from api.web.forms import form_of
from api.web.pages import elsewhere, is_part, page
from api.web.routes.find import MARK
from query.frames.one_frame import SnapshotFrame

router = Router(api=Api.WEB, include_in_schema=False)

_NEIGHBOURS = 4


@router.get("/frames/{fkey:path}", rule=READ.but(work="selection"))
def get_frame_page(
    fkey: Annotated[str, Path()], request: Request, session: CurrentSession
) -> Response:
    """A frame: its pictures, its classes, its tags, what came before and after it."""
    search = UrlQuestion.of(request.query_params.multi_items())
    frame = session.frames.get(fkey, at=search.at)
    before, after = session.frames.neighbours(frame, _NEIGHBOURS)
    context = {
        "asked": search,
        "frame": frame,
        "legend": session.pictures.legend(frame),
        "predictions": session.pictures.predictions(frame) if frame.image else [],
        "groups": _groups(session, frame),
        "before": before,
        "after": after,
        "mark": frame.tags.get(MARK) or "",
    }
    return page(request, "frame.html", context)


@router.post("/marks", rule=WRITE_ALL_ROWS)
async def post_marks(
    request: Request, session: CurrentSession, context: CurrentContext
) -> Response:
    """Give the frames of a form a tag's value; as ``framesift tags set FKEY... TAG=VALUE``."""
    form = await form_of(request)
    fkeys, tag, value = form.all("fkey"), form.get("tag").lower(), form.get("value")
    context.about = f"{tag}={value} of {len(fkeys)} frames"[:500]
    await run_in_threadpool(session.tags.mark, fkeys, {tag: value} if tag else {})
    if is_part(request):
        marks = {"count": len(set(fkeys)), "tag": tag, "value": value}
        return page(request, "_marked.html", marks)
    back = form.get("next")
    return elsewhere(back if back.startswith("/") and back[1:2] not in ("/", "\\") else "/")


def _groups(session: Session, frame: SnapshotFrame) -> list[tuple[str, list[tuple[str, Any]]]]:
    """Tags with values by family, classes left out: the legend has those."""
    families = {tag.tag: tag.family for tag in session.tags.by_creation(at=frame.snapshot)}
    classes = session.tags.class_names()
    valued = [
        (families.get(tag, ""), tag, value)
        for tag, value in frame.tags.items()
        if value is not None and tag not in classes
    ]
    by_family = groupby(sorted(valued, key=lambda each: each[0]), key=lambda each: each[0])
    return [
        (family.removeprefix("tags_") or "frame", [(tag, value) for _, tag, value in members])
        for family, members in by_family
    ]
