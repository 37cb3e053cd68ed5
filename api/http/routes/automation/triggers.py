"""/v1/triggers: jobs that begin by themselves, when frames are added or a time has come."""

from typing import Annotated

from fastapi import Path, Response

from api.http.dependencies import CurrentContext, CurrentSession
from api.http.pages import CurrentPage
from api.http.routing import Router
from api.http.rules import READ_ALL_ROWS, WRITE_ALL_ROWS
from api.schemas.automation.new_triggers import NewTrigger, TriggerChange
from api.schemas.automation.triggers import TriggerBody, TriggerRunsAnswer, TriggersAnswer
from api.schemas.base import set_fields

router = Router(prefix="/v1/triggers", tags=["jobs"], examples={"name": "bikes"})

Name = Annotated[str, Path(description="The trigger.", examples=["bikes"])]


@router.get("", rule=READ_ALL_ROWS)
def get_triggers(session: CurrentSession, page: CurrentPage) -> TriggersAnswer:
    """Triggers by name."""
    triggers = session.triggers.list()
    listed, follows = page.page_of_all("triggers", triggers, lambda one: (one.name,), str)
    return TriggersAnswer(triggers=listed, next=follows)


@router.post(
    "",
    rule=WRITE_ALL_ROWS.but(idempotency_key="takes"),
    status_code=201,
    example={
        "name": "bikes",
        "when": "bicycle>0 and camera=front_center",
        "min_frames": 500,
        "split": "train=0.8,validation=0.2",
        "then": [{"kind": "train", "max_steps": 300}, {"kind": "validate"}],
    },
)
def post_trigger(body: NewTrigger, session: CurrentSession, context: CurrentContext) -> TriggerBody:
    """Make a trigger: it begins jobs when so many frames more are there, or at times, or both.

    The jobs are its maker's. It makes a dataset of the frames that its condition finds, which jobs
    without a dataset of their own get; a validation without a model gets the training before it.
    """
    document = body.model_dump(mode="json", exclude_unset=True)
    starts = [*([body.when] if body.when else []), *([f"{body.schedule}"] if body.schedule else [])]
    steps = ", ".join(step.kind for step in body.then)
    context.about = f"trigger {body.name}: {', '.join(starts) or 'never'}; then {steps}"
    return session.triggers.add(**document)


@router.get("/{name}", rule=READ_ALL_ROWS)
def get_trigger(name: Name, session: CurrentSession) -> TriggerBody:
    """A trigger, with its newest run."""
    return session.triggers.get(name)


@router.patch("/{name}", rule=WRITE_ALL_ROWS, example={"enabled": False})
def patch_trigger(
    name: Name, body: TriggerChange, session: CurrentSession, context: CurrentContext
) -> TriggerBody:
    """Enable or disable a trigger; jobs that it has begun go on."""
    context.about = f"trigger {name}: {'enabled' if body.enabled else 'disabled'}"
    return session.triggers.enable(name, **set_fields(body))


@router.delete("/{name}", rule=WRITE_ALL_ROWS, status_code=204)
def delete_trigger(name: Name, session: CurrentSession, context: CurrentContext) -> Response:
    """Forget a trigger and its runs; their jobs stay."""
    context.about = f"trigger {name}: removed"
    session.triggers.remove(name)
    return Response(status_code=204)


@router.get("/{name}/runs", rule=READ_ALL_ROWS)
def get_runs(name: Name, session: CurrentSession, page: CurrentPage) -> TriggerRunsAnswer:
    """The newest thousand runs of a trigger, newest first: each the jobs of one start."""
    runs = session.triggers.runs(name)
    listed, follows = page.page_of_all("runs", runs, lambda run: (-run.number,), int)
    return TriggerRunsAnswer(runs=listed, next=follows)
