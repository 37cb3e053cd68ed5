"""Figures of this process that are looked at every second, as another may answer the scrape."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI

from api.server.metrics import SNAPSHOT_BYTES, STATEMENTS, TASKS

_EVERY_S = 1.0


@asynccontextmanager
async def figures_kept(app: FastAPI) -> AsyncIterator[None]:
    """Keep them within the block."""
    keeping = asyncio.create_task(_keep(app))
    try:
        yield
    finally:
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping


async def _keep(app: FastAPI) -> None:
    while True:
        # Not opened for this: a store is opened when it is first used.
        catalog = app.state.workspace.opened_catalog
        SNAPSHOT_BYTES.set(catalog.memory.loaded_bytes if catalog is not None else 0)
        STATEMENTS.labels("running").set(app.state.statements.running)
        STATEMENTS.labels("waiting").set(app.state.statements.waiting)
        if hasattr(app.state, "tasks"):
            TASKS.set(app.state.tasks.unfinished)
        await asyncio.sleep(_EVERY_S)
