"""The server: ``create_app(settings)``."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from importlib.metadata import version

from anyio import to_thread
from fastapi import FastAPI

from api.discover import auth
from api.discover.connmgr import application_keys, connections
from api.discover.connmgr import scans as connection_scans
from api.discover.db2whrest import (
    buckets,
    reports,
    search,
    summary_tables,
    task_status,
)
from api.discover.db2whrest import sql as warehouse
from api.discover.db2whrest.tasks import tasks_kept
from api.discover.policyengine import applications, regexes
from api.discover.policyengine import policies as engine_policies
from api.discover.policyengine import tags as engine_tags
from api.http.errors import add_handlers
from api.http.fair_queue import FairQueue
from api.http.job_events import Listeners
from api.http.middleware.admission import Admission, make_threads
from api.http.middleware.authentication import Authentication
from api.http.middleware.body_limit import BodyLimit
from api.http.middleware.compression import Compression
from api.http.middleware.etags import ETags
from api.http.middleware.host_check import HostCheck
from api.http.middleware.idempotency import Idempotency
from api.http.middleware.json_shape import JsonShape
from api.http.middleware.methods import Methods
from api.http.middleware.request_log import RequestLog
from api.http.middleware.resolver import Resolver
from api.http.middleware.version_header import VersionHeader
from api.http.openapi.assistants import PATH
from api.http.openapi.document import describe
from api.http.routes import (
    cache,
    classes,
    datasets,
    extractions,
    families,
    frames,
    info,
    jobs,
    label_checks,
    map_tags,
    models,
    policies,
    predictions,
    questions,
    scans,
    selections,
    sources,
    sql,
    stagings,
    statistics,
    tags,
)
from api.http.routes.accounts import audit, collections, me, tokens, users
from api.http.routes.automation import triggers, webhooks
from api.http.routes.server import documentation, health, metrics, usage
from api.http.routing import AsgiRoute, add_routers
from api.http.rules import READ, Api
from api.mcp.endpoint import Endpoint, answers_assistants
from api.server.compacting import compacting
from api.server.process_figures import figures_kept
from api.server.shared import Changes
from api.server.stopping import Stopping
from api.server.ticker import jobs_driven
from api.services.accounts.configured_logins import configured_logins, groups_reread
from api.settings import Settings
from api.web.routes import datasets as dataset_pages
from api.web.routes import find, login, next_frames, pictures, provider_login, static_files
from api.web.routes import frames as frame_pages
from api.web.routes import jobs as job_pages
from api.web.routes import questions as question_pages
from api.web.routes.operate import accounts as account_pages
from api.web.routes.operate import catalog as catalog_pages
from api.web.routes.operate import sources as source_pages
from api.web.same_origin import SameOrigin
from api.workspace import Workspace
from catalog.traces.spans import begin_traces, end_traces

ROUTERS = (
    documentation.router,
    health.router,
    info.router,
    metrics.router,
    auth.router,
    warehouse.router,
    task_status.router,
    search.router,
    reports.router,
    buckets.router,
    summary_tables.router,
    engine_tags.router,
    engine_policies.router,
    regexes.router,
    applications.router,
    application_keys.connections,
    application_keys.ciphers,
    connections.router,
    connection_scans.router,
    classes.router,
    statistics.router,
    selections.router,
    questions.router,
    sql.router,
    frames.router,
    predictions.router,
    datasets.router,
    sources.router,
    scans.router,
    tags.router,
    map_tags.router,
    families.router,
    extractions.router,
    label_checks.router,
    policies.router,
    stagings.router,
    cache.router,
    jobs.router,
    triggers.router,
    webhooks.router,
    usage.router,
    models.router,
    me.router,
    users.router,
    tokens.router,
    collections.router,
    audit.router,
    static_files.router,
    login.router,
    provider_login.router,
    find.router,
    frame_pages.router,
    question_pages.router,
    pictures.router,
    dataset_pages.router,
    job_pages.router,
    next_frames.router,
    source_pages.router,
    catalog_pages.router,
    account_pages.router,
)


def create_app(
    settings: Settings,
    *,
    authenticates: bool = True,
    hosts: Collection[str] | None = None,
    processes: int = 1,
    changes: Changes | None = None,
) -> FastAPI:
    """The application over one home; nothing is opened before it starts.

    Args:
        settings: Which home.
        authenticates: Ask who they are; else everybody may do everything.
        hosts: Names that the server answers to, beside loopback's; any name when None.
        processes: How many processes the server is.
        changes: Of who may do what, seen in all of those.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        workspace = Workspace(settings, serves=True, processes=processes)
        app.state.workspace = workspace
        app.state.statements = FairQueue(
            settings.statements_at_once, settings.statements_waiting, retry_s=10.0
        )
        make_threads()
        begin_traces()
        async with (
            figures_kept(app),
            tasks_kept(app),
            assistants.running(),
            jobs_driven(app),
            groups_reread(app.state.provider_logins),
        ):
            with compacting(workspace):
                yield
        workspace.close()
        await to_thread.run_sync(end_traces)

    app = FastAPI(
        title="Framesift",
        version=version("framesift"),
        description="Finds driving frames by what is in them.",
        lifespan=lifespan,
        # The redirection would lead to whatever the client says that the server is called.
        redirect_slashes=False,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    assistants = Endpoint()
    app.state.stopping = Stopping()
    app.state.certificate = None  # a server with TLS has one
    app.state.listeners = Listeners(settings.streams_each)
    add_handlers(app)
    # The last one is the outermost.
    app.add_middleware(Idempotency)
    app.add_middleware(ETags)
    app.add_middleware(Compression)
    app.add_middleware(Methods)
    app.add_middleware(JsonShape)
    app.add_middleware(Admission)
    app.add_middleware(
        BodyLimit,
        most_bytes=settings.max_body_mb << 20,
        map_bytes=settings.max_map_mb << 20,
        file_bytes=settings.max_file_mb << 20,
    )
    app.add_middleware(SameOrigin)
    app.state.provider_logins = configured_logins(settings, authenticates=authenticates)
    app.add_middleware(Authentication, authenticates=authenticates, changes=changes or Changes())
    app.add_middleware(Resolver)
    if hosts is not None:
        app.add_middleware(HostCheck, names=hosts)
    app.add_middleware(RequestLog)
    app.add_middleware(VersionHeader, version=app.version)
    add_routers(app, ROUTERS)
    if answers_assistants(settings.mcp):
        rule = READ.but(work="assistant", api=Api.OTHER)  # its tools change nothing
        app.router.routes.append(AsgiRoute(PATH, assistants, methods=["POST"], rule=rule))
    describe(app)
    return app
