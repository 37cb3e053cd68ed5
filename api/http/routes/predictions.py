"""/v1/predictions: a model's prediction of a frame, as a picture over its camera image."""

from typing import Annotated

from fastapi import Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from pydantic import Field

from api.frame_images.predictions import PredictionChoice
from api.http.dependencies import CurrentSession
from api.http.made_image_answer import made_answer
from api.http.routes.frames import Fkey, OverlayQuery, picture_route
from api.http.routing import Router

router = Router(prefix="/v1", tags=["frames"])


class PredictionQuery(OverlayQuery):
    """The prediction, and its look; without model and job the newest one of the frame."""

    model: str | None = Field(
        default=None, max_length=200, description="The newest by this model.", examples=["first"]
    )
    job: str | None = Field(
        default=None,
        max_length=200,
        description="The one that this prediction job made, or of another program's predictions "
        "the one that this validation scored; of other validations the small copy that they keep.",
        examples=["predict-first"],
    )
    errors: bool = Field(
        default=False, description="In its place the pixels of another class than the label."
    )
    taken_for: str | None = Field(
        default=None,
        max_length=2_000,
        description="Of errors: only pixels that the model took for these, tags or names of "
        "classes with commas between; `classes` are the label's.",
        examples=["truck"],
    )


@picture_route(router, "/predictions/{fkey:path}")
async def get_prediction(
    request: Request,
    fkey: Fkey,
    query: Annotated[PredictionQuery, Query()],
    session: CurrentSession,
) -> Response:
    """A model's prediction over the camera image, or the pixels in which it differs from the label.

    Of prediction jobs that are done: of each model the newest that has the frame, of 40 jobs at
    most, the newest ones of each model. Predictions of another program are read where the
    validation that scored them did, if `job` names it. A validation of any other model keeps a copy
    of at most 480 pixels a side of what it predicted, which is enlarged if `job` names it.
    """
    look = query.look(request, ("jpeg", "webp", "png"))
    choice = PredictionChoice(
        query.model, query.job, query.errors, query.alpha, query.classes, query.taken_for
    )
    image = await run_in_threadpool(session.pictures.prediction, fkey, choice, look)
    return await made_answer(request, image, session.pictures.cache)
