"""Drives the home's jobs for as long as a server runs: one of its processes, in a thread."""

import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio.to_thread
from fastapi import FastAPI

from api.workspace import Workspace
from catalog.errors import FramesiftError

_EVERY_S = 1.0
_IDLE_S = 3.0
_END_S = 5.0
_RETRY_S = 5.0
"""After which a process that does not drive looks whether the one that does has ended."""

_log = logging.getLogger(__name__)


@asynccontextmanager
async def jobs_driven(app: FastAPI) -> AsyncIterator[None]:
    """Drive them within the block; at its end a look that has begun is waited for."""
    ends = threading.Event()
    thread = threading.Thread(
        target=_drive, args=(app.state.workspace, ends), name="jobs", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        ends.set()
        await anyio.to_thread.run_sync(thread.join, _END_S)


def _drive(workspace: Workspace, ends: threading.Event) -> None:
    wait_s = _EVERY_S
    while not ends.wait(wait_s):
        wait_s = _RETRY_S
        try:
            if not _there(workspace):
                continue
            # With SQLAlchemy, which a server that is asked nothing of the records does without.
            from api.services.jobs.driving import drive_home

            drive_home(
                workspace,
                lambda unfinished: not ends.wait(_EVERY_S if unfinished else _IDLE_S),
                every_s=0.0,
            )
        except FramesiftError as error:
            _log.warning("jobs are not driven: %s", error)


def _there(workspace: Workspace) -> bool:
    """Return whether the home has records: a server makes none for this."""
    records_place = workspace.records_place
    if isinstance(records_place, Path):
        return records_place.exists()
    from catalog.records.store import is_made  # of PostgreSQL, with SQLAlchemy

    return is_made(records_place)
