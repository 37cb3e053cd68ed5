"""The server: ``create_app(settings)``."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI

from api.discover import db2whrest
from api.errors import add_handlers
from api.routes import classes, datasets, health, scans, selections
from api.settings import Settings
from api.workspace import Workspace

ROUTERS = (
    health.router,
    db2whrest.router,
    classes.router,
    selections.router,
    datasets.router,
    scans.router,
)


def create_app(settings: Settings) -> FastAPI:
    """The application over one home; nothing is opened before it starts."""

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
    for router in ROUTERS:
        app.include_router(router)
    return app
