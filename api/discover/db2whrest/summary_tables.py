"""/db2whrest/v1/summary_tables: how fresh the answers of grouped searches are.

Spectrum Discover answers them from tables that it fills again every few minutes. Here they are
computed when they are asked for, so nothing runs by the schedule that clients may set: it is kept,
and shown again.
"""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from api.discover.bodies import json_of, read_as
from api.discover.replies import discover_router, in_json
from api.http.dependencies import CurrentSession
from api.http.openapi.discover import json_answer
from api.http.rules import READ_ALL_ROWS, WRITE_ALL_ROWS
from api.services.session import Session
from catalog.errors import NotFound, StorageError
from catalog.storage.atomic_write import atomic_write
from catalog.storage.file_lock import locked

router = discover_router("db2whrest")

_TABLE = {
    "enabled": True,
    "last_duration": None,
    "last_updated_time": "2020-03-27T11:12:10.000Z",
    "schedule": {"minute": "*/5"},
    "update_running": False,
    "update_start_time": None,
}

_TABLES = ("duplicates", "mrcapacity")

_Number = Annotated[int, Field(ge=0, le=59)]
_Name = Literal["minute", "hour", "dayOfMonth", "month", "dayOfWeek", "timezone"]


class Configuration(BaseModel):
    """The settings of a table that a client may change."""

    model_config = ConfigDict(extra="forbid")

    enabled: bool = True
    schedule: dict[_Name, _Number | Annotated[str, Field(max_length=64)]] = Field(
        default={"minute": "*/5"}, max_length=6, fail_fast=True
    )


@router.get(
    "/summary_tables",
    rule=READ_ALL_ROWS,
    answers=json_answer({"duplicates": _TABLE, "mrcapacity": _TABLE}),
)
def get_tables(session: CurrentSession) -> Response:
    """Every table, by its name."""
    return in_json(_tables_body(session))


@router.get("/summary_tables/{table}", rule=READ_ALL_ROWS, answers=json_answer(_TABLE))
def get_table(table: str, session: CurrentSession) -> Response:
    """One of them."""
    return in_json(_tables_body(session)[_known(table)])


@router.put(
    "/summary_tables/{table}", rule=WRITE_ALL_ROWS, answers=json_answer({"status": "success"})
)
async def put_table(table: str, request: Request, session: CurrentSession) -> Response:
    """Keep whether a table is filled by a schedule, and by which."""
    name, fields = _known(table), await json_of(request)
    await run_in_threadpool(_configure, session, name, fields)
    return in_json(_DONE)


@router.put(
    "/summary_tables/{table}/start",
    rule=WRITE_ALL_ROWS,
    answers=json_answer({"status": "success"}),
)
async def start_table(table: str) -> Response:
    """Nothing is left to do: its answers are of the newest snapshot already."""
    _known(table)
    return in_json(_DONE)


_DONE = {"status": "success"}


def _known(table: str) -> str:
    if table not in _TABLES:
        raise NotFound("summary table", table[:40], f"there are {', '.join(_TABLES)}")
    return table


def _tables_body(session: Session) -> dict[str, Any]:
    newest, stored = session.last_commit(), _configurations(_file(session))
    return {
        table: {
            "enabled": stored[table].enabled,
            "last_duration": None,
            "last_updated_time": f"{newest.isoformat(timespec='milliseconds')}Z",
            "schedule": stored[table].schedule,
            "update_running": False,
            "update_start_time": None,
        }
        for table in _TABLES
    }


def _file(session: Session) -> Path:
    return session.workspace.home / "summary_tables.json"


def _configurations(file: Path) -> dict[str, Configuration]:
    stored = {table: Configuration() for table in _TABLES}
    try:
        document = json.loads(file.read_bytes())
        return stored | {table: Configuration.model_validate(document[table]) for table in document}
    except (OSError, ValueError, KeyError, TypeError):
        return stored  # nothing was set yet


def _configure(session: Session, table: str, fields: dict[str, Any]) -> None:
    file = _file(session)
    try:
        # One process at a time: each writes what it read, of all tables.
        with locked(file.with_name(f"{file.name}.lock")):
            stored = _configurations(file)
            stored[table] = read_as(Configuration, {**stored[table].model_dump(), **fields})
            atomic_write(file, json.dumps({name: one.model_dump() for name, one in stored.items()}))
    except OSError as error:
        raise StorageError(f"{file}: cannot be written: {error.strerror}", str(file)) from error
