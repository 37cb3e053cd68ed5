"""/connmgr/v1/connections: our sources, as Spectrum Discover's clients add and look at them."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from api.discover.bodies import body_as, body_schema
from api.discover.json_text import ALSO_IN_TEXT
from api.discover.replies import discover_router, in_json, in_text
from api.http.dependencies import CurrentSession
from api.http.openapi.discover import json_answer, text_answer
from api.http.rules import READ_ALL_ROWS, WRITE_ALL_ROWS
from api.schemas.sources import ConnectionBody, NewConnection, SourceBody
from api.services.session import Session
from catalog.errors import InvalidInput
from catalog.text.bounded import Text
from catalog.values import OBJECT_PLATFORMS, PLATFORMS

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


class ConnectionRequest(BaseModel):
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
def get_connections(session: CurrentSession) -> Response:
    """Every connection, by name."""
    return in_json([_document(one) for one in session.connections.list()])


@router.get("/connections/{connection}", rule=READ_ALL_ROWS, answers=json_answer(_CONNECTION))
def get_connection(connection: str, session: CurrentSession) -> Response:
    """One of them."""
    return in_json(_document(session.connections.get(connection)))


@router.post(
    "/connections",
    rule=WRITE_ALL_ROWS,
    status_code=201,
    openapi_extra=body_schema(ConnectionRequest, _NEW),
    answers=text_answer("Connection 'nfs1' added", status=201),
)
@router.post("/connections/", rule=WRITE_ALL_ROWS, status_code=201, include_in_schema=False)
async def post_connection(request: Request, session: CurrentSession) -> Response:
    """Add a connection; a scan then catalogs its files."""
    body = await body_as(ConnectionRequest, request)
    await run_in_threadpool(_add, session, body)
    return in_text(f"Connection '{body.name}' added", 201)


@router.put(
    "/connections/{connection}",
    rule=WRITE_ALL_ROWS,
    openapi_extra=body_schema(ConnectionRequest, {"site": "munich"}),
    answers=text_answer("Connection 'nfs1' updated"),
)
async def put_connection(connection: str, request: Request, session: CurrentSession) -> Response:
    """Change what is sent of a connection; what its rows are named by only while it has none."""
    body = await body_as(ConnectionRequest, request)
    await run_in_threadpool(_change, session, connection, body)
    return in_text(f"Connection '{connection}' updated")


@router.delete(
    "/connections/{connection}",
    rule=WRITE_ALL_ROWS,
    answers=text_answer("Connection 'nfs1' deleted"),
)
def delete_connection(connection: str, session: CurrentSession) -> Response:
    """Remove a connection and its files' rows; the files stay where they are."""
    session.sources.remove(connection)
    return in_text(f"Connection '{connection}' deleted")


def _document(connection: ConnectionBody) -> dict[str, Any]:
    options = connection.options
    host = "host" if connection.is_local else "endpoint_url"
    return {
        "name": connection.name,
        "type": "general",
        "cluster": connection.cluster,
        "datasource": connection.datasource,
        "site": connection.site,
        "platform": connection.platform,
        "host": options.get(host, ""),
        "mount_point": connection.uri if connection.is_local else "",
        "user": options.get("user", ""),
        "online": connection.online,
        "total_records": connection.files,
        "additional_info": {
            "uri": connection.uri,
            "profile": options.get("profile", ""),
            "keys": options.get("sealed_keys", False),
            "region": options.get("region", ""),
            "anonymous": options.get("anonymous", False),
            "verify_certificates": options.get("verify_tls", True),
        },
    }


def _add(session: Session, body: ConnectionRequest) -> None:
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
    session.connections.add(_definition_of(fields))


def _change(session: Session, name: str, body: ConnectionRequest) -> None:
    _refuse_password(body)
    definition = _definition_of(_changed(session.sources.get(name), body))
    session.connections.replace(name, definition)


def _changed(source: SourceBody, body: ConnectionRequest) -> dict[str, Any]:
    """All of a source, with what is sent of it."""
    options = source.options
    sent = body.model_dump(exclude_unset=True, exclude_none=True)
    info = sent.get("additional_info", {})
    platform = sent.get("platform", source.platform)
    datasource = sent.get("datasource", source.datasource)
    is_moved = {"platform", "datasource", "mount_point"} & sent.keys() or "prefix" in info
    mount = sent.get("mount_point", source.uri)
    host = options.get("endpoint_url" if platform in OBJECT_PLATFORMS else "host", "")
    profile = info.get("profile", options.get("profile", ""))
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
        "user": sent.get("user", options.get("user", "")),
        "anonymous": info.get("anonymous", options.get("anonymous", False)),
        "profile": "" if info.get("access_key") else profile,
        "access_key": info.get("access_key", ""),
        "secret_key": info.get("secret_key", ""),
        "region": info.get("region", options.get("region", "")),
        "ca_bundle": options.get("ca_bundle", ""),
        "exclude": options.get("exclude", []),
        "part_of": "" if source.part_of == source.name else source.part_of,
        "verify_tls": info.get("verify_certificates", options.get("verify_tls", True)),
    }


def _definition_of(fields: Mapping[str, Any]) -> NewConnection:
    for field in ("name", "cluster", "datasource"):
        if not fields[field]:
            raise InvalidInput(f"{field} is missing: a connection needs it")
    try:
        return NewConnection.model_validate(fields)
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


def _refuse_password(body: ConnectionRequest) -> None:
    if body.password:
        raise InvalidInput(
            "password: this server mounts no file systems; mount it, and leave the password out"
        )
