"""/policyengine/v1/applications: what works on files, by the names that policies give as agent.

The product's applications are programs of their own that register here and then hear of their work
from Kafka. Here they are extractors, which are installed where the server and its jobs run, and
there is no Kafka: what would register is told so, before it waits for work that never comes.
"""

from typing import Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from api.discover.bodies import body_as, body_schema
from api.discover.replies import discover_router, failure, in_json
from api.http.dependencies import CurrentSession
from api.http.openapi.discover import json_answer
from api.http.rules import READ_ALL_ROWS, WRITE_ALL_ROWS
from api.services.session import Session
from catalog.errors import AlreadyExists, InvalidInput, NotFound, UnknownName
from catalog.text.bounded import Name
from pipeline.policies.actions import ACTION_IDS, ImportTags

router = discover_router("policyengine")

_APPLICATION = {"agent": "image", "action_id": "DEEPINSPECT", "action_params": ["extract_tags"]}

_INSPECT, _IMPORT = "DEEPINSPECT", "IMPORT_TAGS"
_IMPORTER = "ImportTags"
_NO_KAFKA = (
    "this server hands out no work over Kafka: its applications are extractors that are installed "
    "on it, by the entry point framesift.extractors (docs/extractors.md); GET "
    "/policyengine/v1/applications lists them"
)


class Registration(BaseModel):
    """The fields that an application registers with."""

    model_config = ConfigDict(extra="ignore")

    action_agent: str = Field(pattern=r"^[A-Za-z0-9._-]{1,64}$", description="Its name.")
    action_id: Name = Field(description="DEEPINSPECT.")
    action_params: list[Name] = Field(default=[], max_length=64, fail_fast=True)


_NEW = {
    "action_agent": "extractapplication",
    "action_id": _INSPECT,
    "action_params": ["extract_tags"],
}


@router.get(
    "/action_ids",
    rule=READ_ALL_ROWS,
    answers=json_answer(["AUTOTAG", "DEEPINSPECT", "IMPORT_TAGS"]),
)
async def get_action_ids() -> Response:
    """The actions of policies."""
    return in_json(list(ACTION_IDS))


@router.get("/applications", rule=READ_ALL_ROWS, answers=json_answer([_APPLICATION]))
def get_applications(session: CurrentSession) -> Response:
    """Every application: the extractors that are installed, and what imports tags from files."""
    names = session.extractions.known()
    extractors = [_document(name, _INSPECT, ["extract_tags"]) for name in names]
    fields = [field for field in ImportTags.model_fields if field != "agent"]
    return in_json([*extractors, _document(_IMPORTER, _IMPORT, fields)])


@router.get(
    "/applications/{application}/schema",
    rule=READ_ALL_ROWS,
    answers=json_answer({"type": "object", "properties": {"extract_tags": {"type": "array"}}}),
)
def get_schema(application: str, session: CurrentSession, action_id: Name = "") -> Response:
    """The parameters of a policy of an application, as JSON Schema."""
    of = _IMPORT if application == _IMPORTER else _INSPECT
    if action_id and action_id.upper() != of:
        raise UnknownName(f"action_id of {application[:80]}", action_id[:80], [of])
    if application == _IMPORTER:
        return in_json(ImportTags.model_json_schema())
    _check_known(session, application)
    columns = session.extractions.tags_of(application)
    return in_json(_inspect_schema(columns))


@router.post(
    "/applications",
    rule=WRITE_ALL_ROWS,
    openapi_extra=body_schema(Registration, _NEW),
    refuses=True,
)
async def post_application(request: Request, session: CurrentSession) -> Response:
    """Refused: an application is there already, or cannot be handed any work."""
    body = await body_as(Registration, request)
    if body.action_id.upper() != _INSPECT:
        raise UnknownName("action_id", body.action_id[:80], [_INSPECT])
    if body.action_agent in await run_in_threadpool(session.extractions.known):
        raise AlreadyExists("application", body.action_agent, "it is installed on this server")
    raise InvalidInput(_NO_KAFKA)


@router.patch("/applications/{application}", rule=WRITE_ALL_ROWS, refuses=True)
@router.delete("/applications/{application}", rule=WRITE_ALL_ROWS, refuses=True)
def change_application(application: str, session: CurrentSession) -> Response:
    """Refused: what is installed cannot be changed over REST."""
    _check_known(session, application)
    raise InvalidInput(_NO_KAFKA)


@router.get("/tlscert", rule=READ_ALL_ROWS, refuses=True)
async def get_certificates() -> Response:
    """Refused: there is no Kafka to be reached by these."""
    return Response(failure(_NO_KAFKA), 404, media_type="application/json")


def _check_known(session: Session, application: str) -> None:
    known = session.extractions.known()
    if application not in known:
        names = ", ".join((*known, _IMPORTER))
        raise NotFound("application", application[:80], f"there are {names}")


def _document(name: str, action_id: Name, parameters: list[str]) -> dict[str, Any]:
    return {"agent": name, "action_id": action_id, "action_params": parameters}


def _inspect_schema(columns: list[str]) -> dict[str, Any]:
    """The JSON Schema of an extractor's parameters."""
    tags = {
        "description": "Tags that are to be read; all of these where none are named.",
        "type": "array",
        "items": {"type": "string", "enum": columns},
    }
    return {"type": "object", "properties": {"extract_tags": tags}}
