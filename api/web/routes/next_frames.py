"""/jobs/NAME/next-frames: what to train on next, as a proposal that nothing saves but its forms."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from api.http.dependencies import CurrentContext, CurrentSession
from api.http.routing import Router
from api.http.rules import WRITE_ALL_ROWS, Api
from api.schemas.improvements import ImprovementBody
from api.schemas.jobs import JobBody
from api.services.jobs.improvable import (
    can_predict,
    improvable_model,
    needs_command,
    weakest_classes,
)
from api.services.session import Session
from api.web.forms import Form, form_of
from api.web.pages import HEADERS, elsewhere, gone_on, page
from api.web.run.prediction import prediction_of, prediction_to_come, question_of, unpredicted
from api.web.run.proposal import AskedProposal, dropped_of, parts_of
from catalog.errors import InvalidInput, NotAllowed, NotFound

router = Router(api=Api.WEB, prefix="/jobs/{name}/next-frames", include_in_schema=False)

_PROPOSE = WRITE_ALL_ROWS.but(changes=False, work="statistics")
"""Nothing is saved; only who may save it is shown it."""

_REFUSALS = (InvalidInput, NotFound, NotAllowed)


@router.get("", rule=_PROPOSE)
def get_next_frames(name: str, request: Request, session: CurrentSession) -> Response:
    """The form, and the proposal that its fields ask for."""
    asked = AskedProposal.of(request.query_params.multi_items())
    return _page(request, session, name, asked, {})


@router.post("/kept", rule=_PROPOSE)
async def post_kept(name: str, request: Request, session: CurrentSession) -> Response:
    """The same page with the form's ticks, for browsers without scripts: its totals follow."""
    form = await form_of(request)
    kept = {field: form.all(field) for field in ("add", "list")}
    return await run_in_threadpool(_page, request, session, name, _asked(form), kept)


@router.post("/list", rule=_PROPOSE)
async def post_list(name: str, request: Request, session: CurrentSession) -> Response:
    """The frames to label that are kept, as a file: fkeys, or CSV with their reasons."""
    form = await form_of(request)

    def answer() -> Response:
        body = _proposed(session, name, _asked(form), frames=0)
        dropped = {*dropped_of(body, "list", form.all("list"))}
        return _file(body, [fkey for fkey in body.to_label if fkey not in dropped], form)

    return await run_in_threadpool(answer)


@router.post("/predict", rule=WRITE_ALL_ROWS)
async def post_prediction(name: str, request: Request, session: CurrentSession) -> Response:
    """Have the model predict the frames to label that are kept and lack it; go on to that job."""
    form = await form_of(request)

    def begin() -> JobBody:
        body = _proposed(session, name, _asked(form), frames=0)
        dropped = {*dropped_of(body, "list", form.all("list"))}
        fkeys = [fkey for fkey in unpredicted(body) if fkey not in dropped]
        if not fkeys:
            raise InvalidInput("list: expected a frame without a prediction to be kept")
        question = question_of(fkeys, body.snapshot)
        return session.jobs.submit(prediction_of(session.jobs.get(name), question).order())

    return elsewhere(f"/jobs/{quote((await run_in_threadpool(begin)).name, safe='')}")


@router.post("", rule=WRITE_ALL_ROWS)
async def post_next_frames(
    name: str, request: Request, session: CurrentSession, context: CurrentContext
) -> Response:
    """Save the frames to add that are kept as a new version, and go on to it, or to train on it."""
    form = await form_of(request)

    def save() -> ImprovementBody:
        asked = _asked(form)
        proposed = _proposed(session, name, asked, label=0)
        settings = asked.settings(label=0, drop=dropped_of(proposed, "add", form.all("add")))
        return session.models.improve(proposed.model, **settings | {"at": proposed.snapshot})

    saved = await run_in_threadpool(save)
    dataset = saved.dataset
    if dataset is None:
        raise InvalidInput(saved.nothing_added or "frames: expected 1 or more to save")
    title = f"{dataset.name}@{dataset.version}"
    context.about = f"dataset {title}: next frames of {saved.model}"[:500]
    if form.get("then") == "train":
        return gone_on(request, "/new-job?" + urlencode({"dataset": title, "again": saved.model}))
    return gone_on(request, f"/datasets/{quote(title, safe='@~')}")


def _asked(form: Form) -> AskedProposal:
    fields = ("frames", "label", "classes", "per_scene", "min_gap_s", "seed", "at")
    return AskedProposal.of((name, form.get(name)) for name in fields)


def _proposed(session: Session, name: str, asked: AskedProposal, **others: Any) -> ImprovementBody:
    """The proposal that is asked for; nothing is saved."""
    model = _model_of(session.jobs.get(name))
    return session.models.improve(model, **asked.settings(**others, dry_run=True))


def _model_of(job: JobBody) -> str:
    """The model that a validation's frames are proposed for.

    Raises:
        InvalidInput: The job is none that says where a model is weak.
    """
    model = improvable_model(job.settings) if job.kind == "validate" else None
    if model is None:
        raise InvalidInput(
            f"job {job.name}: expected the validation of a model whose training dataset is known; "
            "of scored predictions, the setting trained on says it"
        )
    return model


def _page(
    request: Request,
    session: Session,
    name: str,
    asked: AskedProposal,
    kept: Mapping[str, Sequence[str]],
) -> Response:
    """The page; `kept` has what a form keeps of each part, and all is kept where it has nothing."""
    job = session.jobs.get(name)
    context: dict[str, Any] = {
        "job": job, "model": _model_of(job), "asked": asked, "proposal": None, "why": "",
        "classes": asked.get("classes") if asked.fields else ",".join(weakest_classes(job.metrics)),
        "predicts": can_predict(job.settings), "by_command": needs_command(job.settings),
        "section": "/jobs",
    }  # fmt: skip
    status = 200
    if asked.fields:
        try:
            body = _proposed(session, name, asked)
            dropped = {fkey for part, of in kept.items() for fkey in dropped_of(body, part, of)}
            context["parts"] = parts_of(session, body, dropped)
            context["unpredicted"] = len(unpredicted(body)) if context["predicts"] else 0
            context["prediction"] = prediction_to_come(session, job)
            context["proposal"] = body
            context["asked"] = AskedProposal({**asked.fields, "at": str(body.snapshot)})
        except _REFUSALS as error:
            context["why"], status = str(error), 422
    return page(request, "next_frames.html", context, status=status)


def _file(body: ImprovementBody, fkeys: Sequence[str], form: Form) -> Response:
    """The download of a list of frames."""
    reasons = {one.fkey: one for one in body.reasons}
    kind = "csv" if form.get("as") == "csv" else "txt"
    text = io.StringIO()
    if kind == "csv":
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(["fkey", "reason", "uncertainty"])
        rows.writerows([one, reasons[one].reason, reasons[one].uncertainty] for one in fkeys)
    else:
        text.writelines(f"{one}\n" for one in fkeys)
    file = quote(f"{body.model}-to-label.{kind}", safe="")
    media = "text/csv" if kind == "csv" else "text/plain"
    disposition = {"Content-Disposition": f"attachment; filename*=UTF-8''{file}"}
    return Response(text.getvalue(), media_type=media, headers={**HEADERS, **disposition})
