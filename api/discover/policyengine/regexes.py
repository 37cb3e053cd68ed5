"""/policyengine/v1/regex: regular expressions by name, for rules of policies."""

from typing import Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from api.discover.bodies import body_as, body_schema
from api.discover.replies import discover_router, in_json, in_text
from api.http.dependencies import CurrentSession
from api.http.openapi.discover import json_answer, text_answer
from api.http.rules import READ_ALL_ROWS, WRITE_ALL_ROWS
from api.schemas.policies import RegexBody
from catalog.errors import InvalidInput
from catalog.text.bounded import Name, Text

router = discover_router("policyengine")

_REGEX = {"regex_id": "digits", "pattern": "[0-9]+", "description": "A number."}


class NewRegex(BaseModel):
    """A new regular expression."""

    regex_id: Name = Field(description="Its name.")
    pattern: Text = Field(description="In RE2's syntax.")
    description: str = Field(default="", max_length=4_096)


class RegexChange(BaseModel):
    """Fields of a regular expression that may change; those left out stay."""

    regex_id: Name | None = None
    pattern: Text | None = None
    description: str | None = Field(default=None, max_length=4_096)


_NEW = {
    "regex_id": "US-SSN-blank-delimited",
    "pattern": r"\b\d{3}\s\d{2}\s\d{4}\b",
    "description": "US SSN delimited by white space, not dashes.",
}


@router.get("/regex", rule=READ_ALL_ROWS, answers=json_answer([_REGEX]))
def get_regexes(session: CurrentSession) -> Response:
    """Every one, by name."""
    records = session.regexes.list()
    return in_json([_document(regex) for regex in records])


@router.get("/regex/{regex}", rule=READ_ALL_ROWS, answers=json_answer(_REGEX))
def get_regex(regex: str, session: CurrentSession) -> Response:
    """One of them."""
    record = session.regexes.get(regex)
    return in_json(_document(record))


@router.post(
    "/regex",
    rule=WRITE_ALL_ROWS,
    status_code=201,
    openapi_extra=body_schema(NewRegex, _NEW),
    answers=text_answer("Created", status=201),
)
async def post_regex(request: Request, session: CurrentSession) -> Response:
    """Register one; refused where it is none that RE2 can run in linear time."""
    body = await body_as(NewRegex, request)
    fields = body.regex_id, body.pattern, body.description
    await run_in_threadpool(session.regexes.add, *fields)
    return in_text("Created", 201)


@router.put(
    "/regex",
    rule=WRITE_ALL_ROWS,
    openapi_extra=body_schema(NewRegex, _NEW),
    answers=text_answer("Accepted"),
)
async def put_regexes(request: Request, session: CurrentSession) -> Response:
    """Change the one that the body names."""
    body = await body_as(RegexChange, request)
    if not body.regex_id:
        raise InvalidInput("regex_id is missing: expected the name of the one to change")
    return await _change(session, body.regex_id, body)


@router.put(
    "/regex/{regex}",
    rule=WRITE_ALL_ROWS,
    openapi_extra=body_schema(RegexChange, {"pattern": "[^/]+"}),
    answers=text_answer("Accepted"),
)
async def put_regex(regex: str, request: Request, session: CurrentSession) -> Response:
    """Change the one of the address."""
    body = await body_as(RegexChange, request)
    if body.regex_id not in (None, regex):
        raise InvalidInput(f"regex_id '{body.regex_id}' is not that of the address, '{regex}'")
    return await _change(session, regex, body)


@router.delete("/regex/{regex}", rule=WRITE_ALL_ROWS, answers=text_answer("Accepted"))
def delete_regex(regex: str, session: CurrentSession) -> Response:
    """Forget one; a rule that names it fails from then on."""
    session.regexes.remove(regex)
    return in_text("Accepted")


async def _change(session: CurrentSession, name: str, body: RegexChange) -> Response:
    fields = name, body.pattern, body.description
    await run_in_threadpool(session.regexes.change, *fields)
    return in_text("Accepted")


def _document(regex: RegexBody) -> dict[str, Any]:
    return {
        "regex_id": regex.name,
        "pattern": regex.pattern,
        "description": regex.description,
    }
