"""/v1/collections: which rows there are to be seen, and by whom."""

from urllib.parse import quote

from fastapi import Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from api.http.dependencies import CurrentCaller, CurrentPassage, CurrentWorkspace
from api.http.pages import CurrentPage
from api.http.routing import Router
from api.http.rules import READ, WRITE
from api.schemas.base import PageAnswer
from api.schemas.people import CollectionBody
from api.services.callers import Caller
from api.workspace import Workspace
from catalog.accounts import row_collections
from catalog.errors import NotAllowed, NotFound
from catalog.records.store import RecordStore
from catalog.text.bounded import Name, Sql
from query.question.collection_rule import try_rule

router = Router(prefix="/v1/collections", tags=["users"], examples={"name": "munich"})


class NewCollection(BaseModel):
    """A collection to be made."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(examples=["munich"])
    rule: Sql = Field(
        description="A WHERE body over metaocean's columns.",
        examples=["datasource = 'a2d2' and filename like 'camera%'"],
    )


class CollectionsAnswer(PageAnswer):
    """Collections by name."""

    collections: list[CollectionBody]


@router.get("", rule=READ)
async def get_collections(
    caller: CurrentCaller, workspace: CurrentWorkspace, page: CurrentPage
) -> CollectionsAnswer:
    """Every collection for who sees all rows; else one's own."""
    found = await run_in_threadpool(row_collections.listed, workspace.records)
    seen = [
        CollectionBody.of(collection, users)
        for collection, users in found
        if caller.sees_all or caller.user in users
    ]
    shown, follows = page.page_of_all("collections", seen, lambda body: (body.name,), str)
    return CollectionsAnswer(collections=shown, next=follows)


@router.get("/{name}", rule=READ)
async def get_collection(
    name: str, caller: CurrentCaller, workspace: CurrentWorkspace
) -> CollectionBody:
    """A collection that one sees rows of, or any for who sees all."""
    found = await run_in_threadpool(row_collections.listed, workspace.records)
    for collection, users in found:
        if collection.name == name and (caller.sees_all or caller.user in users):
            return CollectionBody.of(collection, users)
    raise NotFound("collection", name[:80], "GET /v1/collections lists them")


@router.post(
    "",
    rule=WRITE.but(idempotency_key="takes", accounts=True),
    status_code=201,
    example={
        "name": "munich",
        "rule": "datasource = 'a2d2' and filename like 'camera%'",
    },
)
async def post_collection(
    wanted: NewCollection,
    caller: CurrentCaller,
    workspace: CurrentWorkspace,
    passage: CurrentPassage,
    response: Response,
) -> CollectionBody:
    """Add a collection; admins may."""
    passage.about = f"collection {wanted.name}: {wanted.rule}"
    _need_admin(caller)
    made = await run_in_threadpool(_added, workspace, wanted)
    response.headers["Location"] = f"/v1/collections/{quote(made.name, safe='')}"
    return made


def _added(workspace: Workspace, wanted: NewCollection) -> CollectionBody:
    try_rule(wanted.rule, lambda: workspace.catalog, workspace.settings.query_timeout_s)
    made = row_collections.add(workspace.records, wanted.name, wanted.rule)
    return CollectionBody.of(made, ())


@router.delete("/{name}", rule=WRITE.but(accounts=True), status_code=204)
async def delete_collection(
    name: str, caller: CurrentCaller, workspace: CurrentWorkspace
) -> Response:
    """Remove a collection; admins may."""
    _need_admin(caller)
    await run_in_threadpool(row_collections.remove, workspace.records, name)
    return Response(status_code=204)


@router.put("/{name}/users/{user}", rule=WRITE.but(accounts=True))
async def put_user(
    name: str, user: str, caller: CurrentCaller, workspace: CurrentWorkspace
) -> CollectionBody:
    """Let a user see a collection's rows; admins may, and its collection admins."""
    return await run_in_threadpool(_assigned, workspace.records, name, user, caller, True)


@router.delete("/{name}/users/{user}", rule=WRITE.but(accounts=True))
async def delete_user(
    name: str, user: str, caller: CurrentCaller, workspace: CurrentWorkspace
) -> CollectionBody:
    """Let a user see a collection's rows no more; admins may, and its collection admins."""
    return await run_in_threadpool(_assigned, workspace.records, name, user, caller, False)


def _assigned(
    records: RecordStore, name: str, user: str, caller: Caller, sees: bool
) -> CollectionBody:
    if not caller.may("admin"):
        # Not found would say which names there are.
        mine = [c.name for c, members in row_collections.listed(records) if caller.user in members]
        if "collectionadmin" not in caller.roles or name not in mine:
            raise NotAllowed(f"user '{caller.user}' is no collection admin of '{name}'")
    (row_collections.assign if sees else row_collections.withdraw)(records, name, user)
    return CollectionBody.of(*row_collections.found(records, name))


def _need_admin(caller: Caller) -> None:
    if not caller.may("admin"):
        raise NotAllowed(f"user '{caller.user}' is no admin: only admins make collections")
