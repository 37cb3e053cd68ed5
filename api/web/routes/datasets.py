"""/datasets: datasets, their versions, gaps and differences; /new-dataset saves a question."""

from collections.abc import Callable
from typing import Annotated
from urllib.parse import parse_qsl, quote

from fastapi import Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from api.http.dependencies import CurrentSession
from api.http.routing import Router
from api.http.rules import READ, WRITE, Api
from api.schemas.datasets import DatasetBody
from api.schemas.unmet import MOST_UNMET
from api.services.session import Session
from api.web.build.achieved import groups_of, leakage_of, splits_of, strata_of, unmet_of
from api.web.build.dataset_forms import division, extension, new_dataset
from api.web.build.gaps import lacks_of, rows_of
from api.web.build.improved import improved_by
from api.web.build.in_words import Words
from api.web.find.url_question import UrlQuestion
from api.web.forms import Form, form_of
from api.web.narrowed import Holding
from api.web.pages import gone_on, is_part, page
from api.web.run.choices import dataset_choices, dataset_names, score_choices
from catalog.errors import InvalidInput
from query.question.question import Question

router = Router(api=Api.WEB, include_in_schema=False)

_HERE = {"section": "/datasets"}
"""Entry of the navigation that is current on every page of datasets."""

_READ = 1_000
"""Versions that the list of datasets is made of."""

_LISTED = 100
"""Datasets, and versions of one, that a page lists; a part of a name finds others."""

Typed = Annotated[str, Query(max_length=2_000, description="What stands in a field by now.")]

_CHANGED_FRAMES = 20
_MOST_SPLITS = 8
"""Most splits whose gaps a page shows."""


@router.get("/datasets", rule=READ)
def get_datasets_page(
    request: Request,
    session: CurrentSession,
    holding: Holding = "",
) -> Response:
    """The newest version of each dataset, the newest first; or those of a name."""
    newest: dict[str, DatasetBody] = {}
    versions = session.datasets.newest(limit=_READ, holding=holding)
    for version in versions:
        newest.setdefault(version.name, version)
    shown = list(newest.values())[:_LISTED]
    are_all = len(shown) == len(newest) and len(versions) < _READ
    context = {"datasets": shown, "holding": holding, "are_all": are_all}
    return page(request, "datasets.html", context)


@router.get("/new-dataset", rule=READ.but(work="statistics"))
def get_new_dataset(request: Request, session: CurrentSession) -> Response:
    """The form that saves the question of Find's URL."""
    search = UrlQuestion.of(request.query_params.multi_items())
    question = search.question(session.tags.classes_and_groups())
    _refuse_dataset(search)
    report = session.statistics.facets("camera", question=question, at=search.at)
    described = session.selections.describe(question, at=report.snapshot)
    context = {
        "asked": search, "report": report, "described": described,
        "datasets": dataset_choices(session), "scores": score_choices(session, ""), **_HERE,
    }  # fmt: skip
    return page(request, "dataset_new.html", context)


@router.get("/new-dataset/datasets", rule=READ)
def get_dataset_names(
    request: Request,
    session: CurrentSession,
    like: Typed = "",
    disjoint_from: Typed = "",
) -> Response:
    """The newest datasets whose name has what is typed in a field: options of the form."""
    choices = dataset_names(session, like or disjoint_from)
    return page(request, "_choices.html", {"choices": choices})


@router.get("/new-dataset/scores", rule=READ)
def get_scores(request: Request, session: CurrentSession, tag: Typed = "") -> Response:
    """Tags of numbers whose name has what is typed, likewise."""
    return page(request, "_choices.html", {"choices": score_choices(session, tag)})


@router.post("/new-dataset", rule=WRITE)
async def post_new_dataset(request: Request, session: CurrentSession) -> Response:
    """Save a question as a dataset, and go on to its page."""
    form = await form_of(request)

    def answer() -> Response:
        search = UrlQuestion.of(parse_qsl(form.get("asked"), keep_blank_values=True))
        _refuse_dataset(search)
        question = search.question(session.tags.classes_and_groups())
        dataset = session.datasets.create(
            form.get("name"), at=search.at, question=question, **new_dataset(form)
        )
        return _go_to(request, dataset)

    return await run_in_threadpool(answer)


@router.get("/datasets/{name}", rule=READ)
def get_dataset_page(name: str, request: Request, session: CurrentSession) -> Response:
    """A dataset: its splits, what was wanted and achieved, its versions, and what can be done."""
    dataset = session.datasets.get(name)
    versions = session.datasets.list(dataset.name)[::-1]
    words = Words(session.tags.classes_and_groups())
    context = {
        "dataset": dataset,
        "title": _title(dataset),
        "sentence": _sentence(session, dataset),
        "splits": splits_of(dataset),
        "groups": groups_of(dataset, words),
        "unmet": unmet_of(dataset.report, words),
        "most_unmet": MOST_UNMET,
        "leakage": leakage_of(dataset.report),
        "strata": strata_of(dataset, words),
        "classes": _classes(session, dataset),
        "versions": versions[:_LISTED],
        "older": len(versions[_LISTED:]),
        "others": dataset_choices(session),
        "improved": improved_by(session, _title(dataset)) if _may_improve(session) else {},
        **_HERE,
    }
    return page(request, "dataset.html", context)


@router.get("/datasets/{name}/gaps", rule=READ.but(work="statistics"))
def get_gaps_part(
    name: str,
    request: Request,
    session: CurrentSession,
    at_least: Annotated[int, Query(ge=1, lt=2**31)] = 1,
) -> Response:
    """The gaps of the dataset and of each split: a part of the page, or a page."""
    dataset = session.datasets.get(name)
    splits = list(dataset.splits)[:_MOST_SPLITS] if len(dataset.splits) > 1 else []
    reports = {
        split: session.statistics.gaps(_title(dataset), split=split or None, at_least=at_least)
        for split in ("", *splits)
    }
    rows = rows_of(reports)
    context = {
        "dataset": dataset, "title": _title(dataset), "splits": splits,
        "at_least": at_least, "rows": rows, "lacks": lacks_of(rows, splits), **_HERE,
    }  # fmt: skip
    return page(request, "_gaps.html" if is_part(request) else "gaps.html", context)


@router.get("/datasets/{name}/diff", rule=READ)
def get_diff_page(
    name: str,
    request: Request,
    session: CurrentSession,
    other: str,
    named: Annotated[str, Query(alias="named.other", description="In the other's place.")] = "",
) -> Response:
    """Changes from this dataset to the other."""
    diff = session.datasets.diff(name, named.strip() or other, limit=_CHANGED_FRAMES)
    return page(request, "dataset_diff.html", {"diff": diff, **_HERE})


@router.post("/datasets/{name}/splits", rule=WRITE)
async def post_splits_page(name: str, request: Request, session: CurrentSession) -> Response:
    """Divide a dataset again, and go on to its new version."""
    form = await form_of(request)
    return await _made(request, lambda: _divided(session, name, form))


@router.post("/datasets/{name}/extensions", rule=WRITE)
async def post_extension_page(name: str, request: Request, session: CurrentSession) -> Response:
    """Close gaps of a dataset, and go on to its new version."""
    demands, how = extension(await form_of(request))
    return await _made(request, lambda: session.datasets.extend(name, *demands, **how))


@router.post("/datasets/{name}/change", rule=WRITE)
async def post_change_page(name: str, request: Request, session: CurrentSession) -> Response:
    """Rename a dataset with all its versions, or describe a version."""
    form = await form_of(request)
    change = {field: form.get(field) for field in ("rename", "description") if field in form}
    return await _made(request, lambda: session.datasets.change(name, **change))


@router.post("/datasets/{name}/remove", rule=WRITE)
def post_remove_page(name: str, request: Request, session: CurrentSession) -> Response:
    """Remove a version, or with NAME alone all of them, and go on to the list."""
    session.datasets.remove(name)
    return gone_on(request, "/datasets")


async def _made(request: Request, make: Callable[[], DatasetBody]) -> Response:
    return _go_to(request, await run_in_threadpool(make))


def _divided(session: Session, name: str, form: Form) -> DatasetBody:
    how = division(form)
    return session.datasets.divide(name, how.pop("split", ""), **how)


def _refuse_dataset(search: UrlQuestion) -> None:
    if named := search.get("dataset"):
        raise InvalidInput(
            f"dataset {named}: a new dataset holds the catalog's frames, not another dataset's; "
            "remove that condition, or divide or extend that dataset"
        )


def _may_improve(session: Session) -> bool:
    """Return whether the caller may save what an improvement proposes."""
    return session.caller.may("write") and session.caller.sees_all


def _title(dataset: DatasetBody) -> str:
    return f"{dataset.name}@{dataset.version}"


def _go_to(request: Request, dataset: DatasetBody) -> Response:
    return gone_on(request, f"/datasets/{quote(_title(dataset), safe='@~')}")


def _sentence(session: Session, dataset: DatasetBody) -> str:
    """The question of it as a sentence; empty where it is not told."""
    if not dataset.question:
        return ""
    try:
        question = Question.of_dataset(dataset.question)
        return session.selections.describe(question).sentence
    except InvalidInput:  # of a tag that is gone
        return ""


def _classes(session: Session, dataset: DatasetBody) -> list[tuple[str, int, float]]:
    """Name, frames, and share of all pixels of each class that has some; the largest first."""
    names = session.tags.class_names()
    all_pixels = sum(dataset.class_pixels.values()) or 1
    rows: list[tuple[str, int, float]] = [
        (names.get(tag, tag), dataset.class_frames.get(tag, 0), pixels / all_pixels)
        for tag, pixels in dataset.class_pixels.items()
        if pixels
    ]
    return sorted(rows, key=lambda row: -row[2])
