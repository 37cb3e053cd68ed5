"""/: Find, the catalog's frames by what is in them; and /gallery, the frames page by page."""

from collections.abc import Collection
from contextlib import suppress
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import JSONResponse, Response

from api.http.dependencies import CurrentSession
from api.http.routes import frames
from api.http.routing import Router
from api.http.rules import READ, Api
from api.services.session import Session
from api.web.find.facets import Shown, groups_of, moved_of, rare_values, steps_of, values_of
from api.web.find.first_steps import first_steps
from api.web.find.position_map import map_of
from api.web.find.shown import chips_of, condition_of, copies_of
from api.web.find.url_question import UrlQuestion
from api.web.find.value_counts import value_counts
from api.web.find.view import SIZES
from api.web.pages import HEADERS, is_part, page
from api.web.run.choices import Choices, overlay_choices
from catalog.errors import FramesiftError, InvalidInput, UnknownName
from ingest.imports.options import LATITUDE, LONGITUDE
from query.statistics.facet_report import FacetReport

router = Router(api=Api.WEB, include_in_schema=False)

_FRAMES = 48
"""Frames of a page of the gallery."""

_LONGEST_QUESTION = 400
"""Characters of a question whose first frames stand in its page, each with the question in its
link; those of a longer one are asked for behind it.
"""

_CELLS = 40
"""Cells along each side of the map."""

MARK = "quality"
"""The tag that one key sets."""

_SAVED = 12
"""Saved questions that the page without a question names."""

_COLUMNS = ("scene", "camera", "frame_number", "filename")


@router.get("/", rule=READ.but(work="facets"))
def get_find(request: Request, session: CurrentSession) -> Response:
    """The page, with the question that the URL holds."""
    search = UrlQuestion.of(request.query_params.multi_items())
    server = str(request.base_url).rstrip("/")
    context = _answered(session, search)
    context |= _told(session, search, context["report"], server)
    tags = session.tags.by_creation(at=search.at)
    families = {tag.tag: tag.family.removeprefix("tags_") for tag in tags}
    of_families: dict[str, list[Shown]] = {}
    for facet in context["groups"].tags:
        of_families.setdefault(families.get(facet.tag, "frame"), []).append(facet)
    context |= {"overlays": _overlays(session, search), "sizes": SIZES}
    is_empty = context["report"].frames == 0 and not search.pairs
    context["saved"] = session.saved_questions.list()[:_SAVED] if not search.pairs else []
    context["steps"] = first_steps(session) if is_empty else None
    if len(search.url) <= _LONGEST_QUESTION:
        with suppress(FramesiftError):  # the gallery is asked for, and says what is wrong
            context |= _gallery(session, search, None)
    return page(request, "find.html", context | {"of_families": of_families})


@router.get("/overlays", rule=READ)
def get_overlays(request: Request, session: CurrentSession) -> Response:
    """The models whose predictions may lie over pictures, of a text: options of the page."""
    search = UrlQuestion.of(request.query_params.multi_items())
    return page(request, "_choices.html", {"choices": _overlays(session, search)})


def _overlays(session: Session, search: UrlQuestion) -> Choices:
    return overlay_choices(session, holding=search.holding("over"), chosen=search.view.over)


@router.get("/facets", rule=READ.but(work="facets"))
def get_facets(request: Request, session: CurrentSession) -> Response:
    """The fragment of the page that changes with the question."""
    search = UrlQuestion.of(request.query_params.multi_items())
    server = str(request.base_url).rstrip("/")
    content = _answered(session, search)
    content |= _told(session, search, content["report"], server) | {"oob": True}
    return page(request, "_facets.html", content, headers={"HX-Push-Url": search.url})


@router.get("/drag", rule=READ.but(work="facets"))
def get_drag(request: Request, session: CurrentSession) -> Response:
    """The values that change while a field is typed in: see `moved_of`."""
    search = UrlQuestion.of(request.query_params.multi_items())
    classes = session.tags.classes_and_groups()
    moved = moved_of(_report(session, search, classes), search, classes)
    return JSONResponse(moved, headers=HEADERS)


@router.get("/values", rule=READ.but(work="facets"))
def get_values(
    request: Request,
    session: CurrentSession,
    tag: Annotated[str, Query(max_length=256, description="A text's tag.")],
    number: Annotated[int, Query(ge=0, lt=1 << 16, description="Its facet's number.")],
) -> Response:
    """The values of a tag that ``holding.TAG`` finds, with their frames: a part of the page."""
    pairs = request.query_params.multi_items()
    search = UrlQuestion.of(pair for pair in pairs if pair[0] not in ("tag", "number"))
    classes = session.tags.classes_and_groups()
    report = session.statistics.facets(tag, **search.which(classes))
    counted = _counted(session, search, report, classes)
    facet = next((one for one in report.facets if one.scale == "categories"), None)
    if facet is None:
        raise InvalidInput(f"tag={tag[:80]}: expected the tag of a text, whose values are listed")
    shown = values_of(number, facet, search, counted.get(facet.tag))
    return page(request, "_values.html", {"facet": shown, "part": True})


@router.get("/steps", rule=READ.but(work="facets"))
def get_steps(request: Request, session: CurrentSession) -> Response:
    """The same values for every position of a slider: see `steps_of`.

    ``field`` names the slider's field, and ``values`` what that says at each position from the open
    one on, which is left out; commas are between them.
    """
    pairs = request.query_params.multi_items()
    own = {name: value for name, value in pairs if name in ("field", "values")}
    field, values = own.get("field", ""), [*filter(None, own.get("values", "").split(","))]
    end, _, tag = field.partition(".")
    if end not in ("min", "max"):
        raise InvalidInput(f"field={field[:80]}: expected min.TAG or max.TAG, which sliders have")
    search = UrlQuestion.of(pair for pair in pairs if pair[0] not in (*own, field))
    classes = session.tags.classes_and_groups()
    narrower = [UrlQuestion.of([(field, value)]).question(classes) for value in values]
    steps = session.statistics.facets_by_step(tag, narrower, **search.which(classes))
    return JSONResponse(steps_of(steps, search, field, values, classes), headers=HEADERS)


@router.get("/map", rule=READ.but(work="statistics"))
def get_map(request: Request, session: CurrentSession) -> Response:
    """Where the frames of a question were taken: a part of the page."""
    search = UrlQuestion.of(request.query_params.multi_items())
    which = search.which(session.tags.classes_and_groups())
    histogram = session.statistics.histogram(LONGITUDE, LATITUDE, bins=_CELLS, **which)
    return page(request, "_map.html", {"map": map_of(histogram, search)})


@router.get("/gallery", rule=READ.but(work="selection"))
def get_gallery(request: Request, session: CurrentSession) -> Response:
    """The next frames of a question: a part of the page, or a page where no script asks."""
    pairs = request.query_params.multi_items()
    cursor = next((value for name, value in pairs if name == "cursor"), None)
    search = UrlQuestion.of((name, value) for name, value in pairs if name != "cursor")
    context = _gallery(session, search, cursor)
    if is_part(request):
        return page(request, "_gallery.html", context)
    question = search.question(session.tags.classes_and_groups())
    described = session.selections.describe(question, at=search.at)
    return page(request, "gallery.html", context | {"described": described, "section": "/"})


def _gallery(session: Session, search: UrlQuestion, cursor: str | None) -> dict[str, Any]:
    """The frames of a question from a cursor on, as templates take them.

    An order or caption that there is not is left out, and told.
    """
    classes, unknown = session.tags.classes_and_groups(), []
    while True:
        try:
            frame_page, follows = session.frames.page(
                search.query, columns=_columns(session, search), limit=_FRAMES, cursor=cursor,
                order=search.view.order, **search.which(classes),
            )  # fmt: skip
            break
        except UnknownName as error:
            known = search.without_column(error.name) if error.kind == "column" else search
            if known == search:  # it is a condition's
                raise
            search = known
            unknown.append(str(error))
    return {
        "asked": search, "frames": frame_page.frames, "follows": follows, "first": not cursor,
        "unknown": unknown,
    }  # fmt: skip


def _answered(session: Session, search: UrlQuestion) -> dict[str, Any]:
    """The answer to a question, as templates take it: numbers and plots."""
    classes = session.tags.classes_and_groups()
    report = _report(session, search, classes)
    counted = _counted(session, search, report, classes)
    groups = groups_of(report, search, classes, counted)
    return {"asked": search, "report": report, "groups": groups}


def _counted(
    session: Session, search: UrlQuestion, report: FacetReport, classes: Collection[str]
) -> dict[str, dict[str, int]]:
    """Frames by value of the texts that are searched in, or have a rare value that is chosen."""
    rare = rare_values(report, search)
    texts = [facet.tag for facet in report.facets if facet.type == "VARCHAR"]
    return {
        tag: value_counts(session, search, classes, tag, rare.get(tag, ()))
        for tag in texts
        if tag in rare or search.holding(tag)
    }


def _report(session: Session, search: UrlQuestion, classes: Collection[str]) -> FacetReport:
    return session.statistics.facets(**search.which(classes))


def _columns(session: Session, search: UrlQuestion) -> tuple[str, ...]:
    """The columns of a page of the gallery, with the mark where the snapshot has that tag."""
    is_marked = any(tag.tag == MARK for tag in session.tags.by_creation(at=search.at))
    return (*_COLUMNS, *((MARK,) if is_marked else ()), *search.view.columns)


def _told(
    session: Session, search: UrlQuestion, report: FacetReport, server: str
) -> dict[str, Any]:
    """The question in words, in SQL and for programs."""
    question = search.question(session.tags.classes_and_groups())
    described = session.selections.describe(question, at=report.snapshot)
    return {
        "has_positions": {LATITUDE, LONGITUDE} <= {facet.tag for facet in report.facets},
        "described": described,
        "chips": chips_of(search),
        "copies": copies_of(search, described, server, frames.router.url_path_for("get_frames")),
        "condition": condition_of(described.sql),
    }
