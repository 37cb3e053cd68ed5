"""/connmgr/v1/connections: our sources, as Spectrum Discover's clients add and look at them."""

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import select

from api.discover.db2whrest.search import body_schema, read_as
from api.discover.json_text import ALSO_IN_TEXT
from api.discover.replies import discover_router, in_json, in_text, json_of
from api.http.dependencies import CurrentSession, CurrentWorkspace
from api.http.openapi.discover import json_answer, text_answer
from api.http.rules import READ_ALL_ROWS, WRITE_ALL_ROWS
from api.schemas.sources import NewSource
from api.services.session import Session
from api.services.sources.service import check_text, options_of
from api.workspace import Workspace
from catalog.errors import AlreadyExists, InvalidInput
from catalog.lake.connection import LAKE
from catalog.records.sources import recorded_source, recorded_sources
from catalog.records.tables import Scan, Source
from catalog.text.bounded import Text
from catalog.values import OBJECT_PLATFORMS, PLATFORMS
from ingest.scan.scan_lock import scan_lock
from ingest.scan.scan_record import SCAN
from ingest.sources.schemes import scheme_of
from ingest.sources.source_options import SourceOptions

router = discover_router("connmgr")

_CONNECTION = {
    "name": "nfs1",
    "type": "general",
    "cluster": "192.168.1.1",
    "datasource": "A2D2_NFS",
    "site": "munich",
    "platform": "NFS",
    "host": "192.168.1.1",
    "mount_point": "/mnt/a2d2",
    "user": "",
    "online": True,
    "total_records": 82554,
    "additional_info": {"uri": "/mnt/a2d2"},
}


class AdditionalInfo(BaseModel):
    """Further fields of a connection; those not known here are let through."""

    model_config = ConfigDict(extra="ignore")

    profile: Text = Field(default="", description="Of the server's ~/.aws/config, with the keys.")
    region: Text = ""
    anonymous: bool = Field(default=False, description="Send unsigned requests to S3.")
    prefix: Text = Field(default="", description="Only what lies below it in the bucket.")
    verify_certificates: bool = True
    access_key: Text = ""
    secret_key: Text = ""


class ConnectionBody(BaseModel):
    """A connection; of a change only what is sent."""

    name: Text | None = None
    platform: Text | None = Field(default=None, description=f"One of: {', '.join(PLATFORMS)}.")
    type: Text | None = Field(default=None, description="general; nothing depends on it.")
    cluster: Text | None = None
    datasource: Text | None = Field(default=None, description="Bucket, export or file system.")
    site: Text | None = None
    host: Text | None = Field(
        default=None, description="Of object stores, the server to ask; of others only shown."
    )
    mount_point: Text | None = Field(default=None, description="Where this server has it mounted.")
    user: Text | None = Field(default=None, description="Only shown.")
    password: Text | None = Field(default=None, description="Refused.")
    additional_info: Annotated[AdditionalInfo | None, ALSO_IN_TEXT] = None


class _Definition(NewSource):
    """A source, and what else is kept of a connection."""

    host: str = Field(default="", max_length=256)
    user: str = Field(default="", max_length=256)


_NEW = {
    "name": "a2d2",
    "platform": "IBM COS",
    "cluster": "cos.example.com",
    "datasource": "a2d2",
    "site": "munich",
    "host": "https://s3.eu-de.cloud-object-storage.appdomain.cloud",
    "additional_info": {"profile": "a2d2"},
}


@router.get("/connections", rule=READ_ALL_ROWS, answers=json_answer([_CONNECTION]))
@router.get("/connections/", rule=READ_ALL_ROWS, include_in_schema=False)
async def get_connections(workspace: CurrentWorkspace) -> Response:
    """Every connection, by name."""
    return in_json(await run_in_threadpool(_all, workspace))


@router.get("/connections/{connection}", rule=READ_ALL_ROWS, answers=json_answer(_CONNECTION))
async def get_connection(connection: str, workspace: CurrentWorkspace) -> Response:
    """One of them."""
    return in_json(await run_in_threadpool(_one, workspace, connection))


@router.post(
    "/connections",
    rule=WRITE_ALL_ROWS,
    status_code=201,
    openapi_extra=body_schema(ConnectionBody, _NEW),
    answers=text_answer("Connection 'nfs1' added", status=201),
)
@router.post("/connections/", rule=WRITE_ALL_ROWS, status_code=201, include_in_schema=False)
async def post_connection(request: Request, session: CurrentSession) -> Response:
    """Add a connection; a scan then catalogs its files."""
    body = read_as(ConnectionBody, await json_of(request))
    await run_in_threadpool(_add, session, body)
    return in_text(f"Connection '{body.name}' added", 201)


@router.put(
    "/connections/{connection}",
    rule=WRITE_ALL_ROWS,
    openapi_extra=body_schema(ConnectionBody, {"site": "munich"}),
    answers=text_answer("Connection 'nfs1' updated"),
)
async def put_connection(connection: str, request: Request, session: CurrentSession) -> Response:
    """Change what is sent of a connection; what its rows are named by only while it has none."""
    body = read_as(ConnectionBody, await json_of(request))
    await run_in_threadpool(_change, session, connection, body)
    return in_text(f"Connection '{connection}' updated")


@router.delete(
    "/connections/{connection}",
    rule=WRITE_ALL_ROWS,
    answers=text_answer("Connection 'nfs1' deleted"),
)
async def delete_connection(connection: str, session: CurrentSession) -> Response:
    """Remove a connection and its files' rows; the files stay where they are."""
    await run_in_threadpool(session.sources.remove, connection)
    return in_text(f"Connection '{connection}' deleted")


def _all(workspace: Workspace) -> list[dict[str, Any]]:
    counts = _counts(workspace)
    return [_document(workspace, source, counts) for source in recorded_sources(workspace.records)]


def _one(workspace: Workspace, name: str) -> dict[str, Any]:
    return _document(workspace, recorded_source(workspace.records, name), _counts(workspace))


def _counts(workspace: Workspace) -> dict[tuple[str, str], int]:
    """Catalogued files of each cluster and datasource."""
    with workspace.catalog.reading() as cursor:
        rows = cursor.execute(
            f"SELECT cluster, datasource, count(*) FROM {LAKE}.main.files GROUP BY ALL"
        ).fetchall()
    return {(cluster, datasource): count for cluster, datasource, count in rows}


def _document(
    workspace: Workspace, source: Source, counts: dict[tuple[str, str], int]
) -> dict[str, Any]:
    options = SourceOptions.from_json(source.options)
    is_object = not scheme_of(source.uri).is_local
    return {
        "name": source.name,
        "type": "general",
        "cluster": source.cluster,
        "datasource": source.datasource,
        "site": source.site,
        "platform": source.platform,
        "host": options.endpoint_url if is_object else options.host,
        "mount_point": "" if is_object else source.uri,
        "user": options.user,
        "online": _reachable(workspace, source),
        "total_records": counts.get((source.cluster, source.datasource), 0),
        "additional_info": {
            "uri": source.uri,
            "profile": options.profile,
            "keys": bool(options.sealed_keys),
            "region": options.region,
            "anonymous": options.anonymous,
            "verify_certificates": options.verify_tls,
        },
    }


def _reachable(workspace: Workspace, source: Source) -> bool:
    """Return whether the last scan found it: asking now might wait for a mount that is gone."""
    query = select(Scan.state).where(Scan.source_id == source.id, Scan.kind == SCAN)
    with workspace.records.reading() as session:
        return session.scalar(query.order_by(Scan.id.desc()).limit(1)) != "failed"


def _add(session: Session, body: ConnectionBody) -> None:
    _refuse_password(body)
    info = body.additional_info or AdditionalInfo()
    platform = body.platform or ""
    fields = {
        "name": body.name,
        "uri": _uri(platform, body.datasource, body.mount_point, info.prefix),
        "platform": platform,
        "cluster": body.cluster,
        "datasource": body.datasource,
        "site": body.site or "",
        **_server(platform, body.host or ""),
        "user": body.user or "",
        "anonymous": info.anonymous,
        "profile": info.profile,
        "access_key": info.access_key,
        "secret_key": info.secret_key,
        "region": info.region,
        "verify_tls": info.verify_certificates,
    }
    definition = _definition_of(fields)
    session.sources.keep(definition, *_reached(session, definition))


def _change(session: Session, name: str, body: ConnectionBody) -> None:
    _refuse_password(body)
    workspace = session.workspace
    source = recorded_source(workspace.records, name)
    definition = _definition_of(_changed(source, body))
    sealed = SourceOptions.from_json(source.options).sealed_keys
    uri, options = _reached(session, definition, sealed)
    session.sources.check_opens(uri, options)
    columns = {
        "name": definition.name,
        "uri": uri,
        "platform": definition.platform,
        "cluster": definition.cluster,
        "datasource": definition.datasource,
        "site": definition.site,
        "options": options.to_json(),
    }
    with scan_lock(workspace.whole_catalog, source):
        named = ("platform", "cluster", "datasource")
        rows = _counts(workspace).get((source.cluster, source.datasource), 0)
        if rows and any(columns[column] != getattr(source, column) for column in named):
            raise InvalidInput(
                f"connection '{name}' has {rows:,} catalogued files, which are named by its "
                f"{', '.join(named)}: delete it and add it anew"
            )
        _keep(workspace, source, columns)


def _reached(
    session: Session, definition: _Definition, sealed: str = ""
) -> tuple[str, SourceOptions]:
    """Where a connection's files are, which may be named, and how they are reached."""
    check_text(definition)
    options = dataclasses.replace(
        options_of(definition, sealed), host=definition.host, user=definition.user
    )
    return session.sources.reach(definition.uri, options)


def _keep(workspace: Workspace, source: Source, columns: Mapping[str, object]) -> None:
    with workspace.records.session() as session:
        others = list(session.scalars(select(Source).where(Source.id != source.id)))
        for other in others:
            if other.name == columns["name"]:
                raise AlreadyExists("connection", other.name, "choose another name")
            if (other.cluster, other.datasource) == (columns["cluster"], columns["datasource"]):
                raise AlreadyExists("datasource", other.datasource, f"{other.name} has it")
        record = session.get_one(Source, source.id)
        for column, value in columns.items():
            setattr(record, column, value)


def _changed(source: Source, body: ConnectionBody) -> dict[str, Any]:
    """All of a source, with what is sent of it."""
    options = SourceOptions.from_json(source.options)
    sent = body.model_dump(exclude_unset=True, exclude_none=True)
    info = sent.get("additional_info", {})
    platform = sent.get("platform", source.platform)
    datasource = sent.get("datasource", source.datasource)
    is_moved = {"platform", "datasource", "mount_point"} & sent.keys() or "prefix" in info
    mount = sent.get("mount_point", source.uri)
    host = options.endpoint_url if platform in OBJECT_PLATFORMS else options.host
    return {
        "name": sent.get("name", source.name),
        "uri": _uri(platform, datasource, mount, info.get("prefix", ""))
        if is_moved
        else source.uri,
        "platform": platform,
        "cluster": sent.get("cluster", source.cluster),
        "datasource": datasource,
        "site": sent.get("site", source.site),
        **_server(platform, sent.get("host", host)),
        "user": sent.get("user", options.user),
        "anonymous": info.get("anonymous", options.anonymous),
        "profile": "" if info.get("access_key") else info.get("profile", options.profile),
        "access_key": info.get("access_key", ""),
        "secret_key": info.get("secret_key", ""),
        "region": info.get("region", options.region),
        "ca_bundle": options.ca_bundle,
        "exclude": list(options.exclude),
        "part_of": options.part_of,
        "verify_tls": info.get("verify_certificates", options.verify_tls),
    }


def _definition_of(fields: Mapping[str, Any]) -> _Definition:
    for field in ("name", "cluster", "datasource"):
        if not fields[field]:
            raise InvalidInput(f"{field} is missing: a connection needs it")
    try:
        return _Definition.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(key) for key in first["loc"])
        raise InvalidInput(f"{path}: {first['msg']}") from error


def _uri(platform: str, datasource: str | None, mount_point: str | None, prefix: str) -> str:
    """Where a connection's files are: objects in their bucket, files where they are mounted."""
    if platform not in PLATFORMS:
        raise InvalidInput(f"platform '{platform[:40]}': expected one of {', '.join(PLATFORMS)}")
    if platform in OBJECT_PLATFORMS:
        return f"s3://{datasource or ''}/{prefix.strip('/')}".rstrip("/")
    if not mount_point:
        raise InvalidInput(
            f"mount_point is missing: expected the folder where this server has the {platform} "
            "file system mounted"
        )
    return mount_point


def _server(platform: str, host: str) -> dict[str, str]:
    """A host as an object store's endpoint, AWS's where it is none; of other platforms as sent."""
    if platform not in OBJECT_PLATFORMS:
        return {"host": host}
    return {"endpoint_url": host if not host or "://" in host else f"https://{host}"}


def _refuse_password(body: ConnectionBody) -> None:
    if body.password:
        raise InvalidInput(
            "password: this server mounts no file systems; mount it, and leave the password out"
        )
