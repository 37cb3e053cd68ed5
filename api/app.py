"""The server: ``create_app(settings)``."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI

from api.discover import (
    auth,
    buckets,
    db2whrest,
    reports,
    search,
    summary_tables,
    tags,
    task_status,
)
from api.errors import add_handlers
from api.gate import Gate
from api.routes import (
    audit,
    classes,
    collections,
    datasets,
    frames,
    health,
    scans,
    selections,
    sql,
    statistics,
    tokens,
    users,
)
from api.settings import Settings
from api.workspace import Workspace

ROUTERS = (
    health.router,
    auth.router,
    db2whrest.router,
    task_status.router,
    search.router,
    reports.router,
    buckets.router,
    summary_tables.router,
    tags.router,
    classes.router,
    statistics.router,
    selections.router,
    sql.router,
    frames.router,
    datasets.router,
    scans.router,
    users.router,
    tokens.router,
    collections.router,
    audit.router,
)


def create_app(settings: Settings, *, authenticates: bool = True) -> FastAPI:
    """The application over one home; nothing is opened before it starts.

    Args:
        settings: Which home.
        authenticates: Ask who they are; else everybody may do everything.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        workspace = Workspace(settings, serves=True)
        app.state.workspace = workspace
        yield
        workspace.close()

    app = FastAPI(
        title="Framesift",
        version=version("framesift"),
        description="Finds driving frames by what is in them.",
        lifespan=lifespan,
    )
    add_handlers(app)
    app.add_middleware(Gate, authenticates=authenticates)
    for router in ROUTERS:
        app.include_router(router)
    return app
