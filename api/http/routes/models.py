"""/v1/models: what trainings and programs made."""

from api.http.dependencies import At, CurrentSession
from api.http.pages import CurrentPage
from api.http.routing import Router
from api.http.rules import READ, WRITE_ALL_ROWS
from api.schemas.improvements import ImprovementBody, NewImprovement
from api.schemas.jobs import ModelBody, ModelsAnswer

router = Router(prefix="/v1/models", tags=["jobs"], examples={"name": "train-bikes-7"})


@router.get("", rule=READ)
def get_models(session: CurrentSession, page: CurrentPage) -> ModelsAnswer:
    """Models, newest first: trainings that are done, and programs that wrote ONNX files."""
    before, limit = page.number_after("models"), page.limit + 1
    models = session.models.list(before=before, limit=limit)
    listed, follows = page.page("models", models, lambda model: (model.number,))
    return ModelsAnswer(models=listed, next=follows)


@router.post(
    "/{name}/improvements",
    rule=WRITE_ALL_ROWS.but(idempotency_key="takes"),
    status_code=201,
    example={"frames": 500, "label": 100},
)
def post_improvement(
    name: str, body: NewImprovement, session: CurrentSession, at: At = None
) -> ImprovementBody:
    """Add the labelled frames that a model lacks to what it was trained on, as a new version.

    They cover the classes in which its newest validation finds it weak, or `classes`; weak slices
    and frames of which it is unsure, where scores were imported, count more; never is one of a
    scene, a drive or a moment that it is validated with. `label` lists unlabelled frames that are
    worth a label, by what its imported predictions let expect; `reasons` says why each was chosen.
    """
    return session.models.improve(name, at=at, **dict(body))


@router.get("/{name}", rule=READ)
def get_model(name: str, session: CurrentSession) -> ModelBody:
    """A model, by the name of its job."""
    return session.models.get(name)
