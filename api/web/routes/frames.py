"""/frames: one frame, its neighbours in the drive; and /marks, which gives frames tags."""

from collections.abc import Sequence
from itertools import groupby
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode

from fastapi import Path, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from api.http.dependencies import CurrentContext, CurrentSession
from api.http.routing import Router
from api.http.rules import READ, WRITE_ALL_ROWS, Api
from api.services.session import Session
from api.web.find.url_question import UrlQuestion
from api.web.find.view import View
from api.web.forms import Form, form_of
from api.web.moments import moment
from api.web.pages import is_part, own_path, page
from api.web.routes.find import MARK
from api.web.run.matrix import cell_path, class_name, label_tags
from catalog.errors import InvalidInput
from query.frames.one_frame import SnapshotFrame

router = Router(api=Api.WEB, include_in_schema=False)

_NEIGHBOURS = 4
_PREDICTIONS = 20
"""Models whose predictions of a frame its page offers, the newest first, beside the chosen one."""

NOTE = "note"
"""The tag that holds what somebody writes about a frame."""


@router.get("/frames/{fkey:path}", rule=READ.but(work="selection"))
def get_frame_page(
    fkey: Annotated[str, Path()], request: Request, session: CurrentSession
) -> Response:
    """A frame: its pictures, its classes, its tags, what came before and after it.

    With ``cell=JOB`` the frames to walk through are those of a cell of that validation's confusion
    matrix: of ``truth`` and ``predicted``.
    """
    pairs = request.query_params.multi_items()
    job = next((value for name, value in pairs if name == "cell"), "")
    search = UrlQuestion.of(pair for pair in pairs if pair[0] != "cell")
    frame = session.frames.get(fkey, at=search.at)
    before, after = session.frames.neighbours(frame, _NEIGHBOURS)
    cell = (search.view.truth, search.view.predicted)
    made_of, named = cell, cell
    if job:
        report = session.jobs.report(job)
        made_of = label_tags(report, cell[0]), label_tags(report, cell[1])
        named = class_name(report, cell[0]), class_name(report, cell[1])
        place = session.jobs.place_in_cell(job, *cell, fkey)
    else:
        which = search.which(session.tags.classes_and_groups())
        place = session.frames.place(fkey, order=search.view.order, **which)
    predictions = _laid_over(session, frame, search.view, job) if frame.image else []
    context = {
        "asked": search,
        "over": _over(session, predictions, search.view, job),
        "query": "?" + urlencode([("cell", job), *search.pairs]) if job else search.url[1:],
        "back": cell_path(job, *cell) if job else search.url,
        "cell": named if job else None,
        "truths": made_of[0].split(","),
        "taken_for": made_of[1],
        "place": place,
        "frame": frame,
        "legend": session.pictures.legend(frame),
        "colours": session.pictures.colours(frame),
        "predictions": predictions,
        "groups": _groups(session, frame),
        "file": {
            name: _shown(value, frame.file_types[name])
            for name, value in frame.file.items()
            if value not in (None, "")
        },
        "before": before,
        "after": after,
        "mark": frame.tags.get(MARK) or "",
        "note": frame.tags.get(NOTE) or "",
    }
    return page(request, "frame.html", context)


def _laid_over(session: Session, frame: SnapshotFrame, view: View, job: str) -> list[Any]:
    """The newest predictions of a frame, and those that lie over pictures.

    Args:
        job: The validation whose confusion matrix led here; empty else.
    """
    made = session.pictures.predictions(frame, job or view.job)
    model = view.over.partition(":")[2]
    return [*made[:_PREDICTIONS], *(one for one in made[_PREDICTIONS:] if one.model == model)]


def _over(session: Session, predictions: Sequence[Any], view: View, job: str) -> str:
    """What lies over the frame's picture: what is asked for, or the same of the validated model.

    A validation's small copy and a full-size prediction by its model stand for each other.
    """
    kind, _, layer = view.over.partition(":")
    if not layer or any(one.layer == layer for one in predictions):
        return view.over
    validation = job or view.job
    models = {layer, session.pictures.model_of(validation) if validation else layer}
    same = next((one.layer for one in predictions if one.model in models), layer)
    return f"{kind}:{same}"


@router.post("/marks", rule=WRITE_ALL_ROWS)
async def post_marks(
    request: Request, session: CurrentSession, context: CurrentContext
) -> Response:
    """Give the frames of a form values of tags; as ``framesift tags set FKEY... TAG=VALUE``."""
    form = await form_of(request)
    values, snapshot = _marks_of(form), await run_in_threadpool(lambda: session.frames.snapshot)
    fkeys = await run_in_threadpool(_marked, session, form, "fkey")
    named = ", ".join(f"{tag}={value}" for tag, value in values.items())
    context.about = f"{named} of {len(fkeys)} frames"[:500]
    await run_in_threadpool(session.tags.mark, fkeys, values)
    until = await run_in_threadpool(lambda: session.frames.snapshot)
    marks: dict[str, Any] = {
        "count": len(set(fkeys)), "values": values, "snapshot": snapshot, "until": until,
        "fkeys": [] if form.get("everything") else fkeys,
        "asked": _asked_at(form, snapshot) if form.get("everything") else "",
    }  # fmt: skip
    if is_part(request):
        return page(request, "_marked.html", marks)
    more = {"back": own_path(form.get("next") or "/"), "undone": False}
    return page(request, "marked.html", marks | more)


@router.post("/marks/undo", rule=WRITE_ALL_ROWS)
async def post_undo(request: Request, session: CurrentSession, context: CurrentContext) -> Response:
    """Give the frames of a mark the values back that they had in the snapshot before it.

    Frames that have been given another value since keep it.
    """
    form = await form_of(request)
    tags = form.all("marked_tag")
    at, until = (_snapshot_of(form, name) for name in ("marked_at", "marked_until"))
    fkeys = await run_in_threadpool(_marked, session, form, "marked")
    context.about = f"undo {', '.join(tags)} of {len(fkeys)} frames"[:500]
    count, changed = await run_in_threadpool(
        lambda: session.tags.restore(fkeys, tags, at=at, unless_changed_since=until)
    )
    told: dict[str, Any] = {"count": count, "changed": changed, "tags": tags}
    if is_part(request):
        return page(request, "_undone.html", told)
    more = {"back": own_path(form.get("next") or "/"), "undone": True}
    return page(request, "marked.html", told | more)


def _snapshot_of(form: Form, name: str) -> int:
    """The number of a snapshot that a form's field holds.

    Raises:
        InvalidInput: It holds none.
    """
    text = form.get(name)
    if not (text.isdecimal() and int(text) < 2**63):
        raise InvalidInput(f"{name}={text[:40]}: expected the number of a snapshot")
    return int(text)


def _marks_of(form: Form) -> dict[str, str]:
    """Tags and values of a form, with the note where it is another.

    Where nothing but the note is another, the note alone; a script adds further tags to the form.
    """
    pairs = zip(form.all("tag"), form.all("value"), strict=False)
    values = {tag.strip().lower(): value.strip() for tag, value in pairs if tag.strip()}
    if form.get("note") != form.get("note_was"):
        if values == {form.get("tag_was"): form.get("value_was")}:
            values = {}
        values[NOTE] = form.get("note")
    return values


def _marked(session: Session, form: Form, name: str) -> list[str]:
    """The frames that a form means: all of its question or cell, or those that it names."""
    if name == "fkey" and form.get("everything"):
        return _every_frame(session, form.get("asked"))
    if name == "marked" and form.get("marked_asked"):
        return _every_frame(session, form.get("marked_asked"))
    return form.all(name)


def _every_frame(session: Session, asked: str) -> list[str]:
    """The frames of a question, or of a cell: its validation's ``cell=JOB``, and its classes."""
    fields = dict(parse_qsl(asked))
    if job := fields.get("cell"):
        truth, predicted = (fields.get(name, "") for name in ("truth", "predicted"))
        return session.jobs.cell_fkeys(job, truth, predicted)
    search = UrlQuestion.of(parse_qsl(asked))
    return session.frames.fkeys(**search.which(session.tags.classes_and_groups()))


def _asked_at(form: Form, snapshot: int) -> str:
    """The question of a form, of the snapshot that it was asked of; a cell is always the same."""
    asked = form.get("asked")
    if "cell" in dict(parse_qsl(asked)):
        return asked
    search = UrlQuestion.of(parse_qsl(asked))
    return (search if search.at is not None else search.shown(at=str(snapshot))).query


def _groups(session: Session, frame: SnapshotFrame) -> list[tuple[str, list[tuple[str, Any]]]]:
    """Tags with values by family, classes left out: the legend has those."""
    tags = {tag.tag: tag for tag in session.tags.by_creation(at=frame.snapshot)}
    classes = session.tags.class_names()
    valued = [
        (tags[tag].family, tag, _shown(value, tags[tag].type)) if tag in tags else ("", tag, value)
        for tag, value in frame.tags.items()
        if value is not None and tag not in classes
    ]
    by_family = groupby(sorted(valued, key=lambda each: each[0]), key=lambda each: each[0])
    return [
        (family.removeprefix("tags_") or "frame", [(tag, value) for _, tag, value in members])
        for family, members in by_family
    ]


def _shown(value: Any, column_type: str) -> Any:
    """A value as the page has it: a time, which is of UTC, as an element."""
    is_time = column_type.upper() == "TIMESTAMP" and isinstance(value, str)
    return moment(f"{value.replace(' ', 'T')}Z") if is_time else value
