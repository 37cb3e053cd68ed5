"""/v1/collections: which rows there are to be seen, and by whom."""

from urllib.parse import quote

from fastapi import Response

from api.http.conditions import Expected, tagged
from api.http.dependencies import CurrentContext, CurrentSession
from api.http.pages import CurrentPage
from api.http.routing import Router
from api.http.rules import READ, WRITE
from api.schemas.accounts.collections import CollectionBody, CollectionsAnswer, NewCollection

router = Router(prefix="/v1/collections", tags=["users"], examples={"name": "munich"})


@router.get("", rule=READ)
def get_collections(session: CurrentSession, page: CurrentPage) -> CollectionsAnswer:
    """Every collection, for users who see all rows; else one's own."""
    collections = session.collections.list()
    listed, follows = page.page_of_all("collections", collections, lambda body: (body.name,), str)
    return CollectionsAnswer(collections=listed, next=follows)


@router.get("/{name}", rule=READ)
def get_collection(name: str, session: CurrentSession, response: Response) -> CollectionBody:
    """A collection that one sees rows of; any, for users who see all rows."""
    return tagged(response, session.collections.get(name))


@router.post(
    "",
    rule=WRITE.but(idempotency_key="takes", accounts=True),
    status_code=201,
    example={
        "name": "munich",
        "rule": "datasource = 'a2d2' and filename like 'camera%'",
    },
)
def post_collection(
    body: NewCollection, session: CurrentSession, context: CurrentContext, response: Response
) -> CollectionBody:
    """Add a collection; admins may."""
    context.about = f"collection {body.name}: {body.rule}"
    collection = session.collections.add(body.name, body.rule)
    response.headers["Location"] = f"/v1/collections/{quote(collection.name, safe='')}"
    return collection


@router.delete("/{name}", rule=WRITE.but(accounts=True), status_code=204)
def delete_collection(name: str, session: CurrentSession, expected: Expected) -> Response:
    """Remove a collection; admins may."""
    session.collections.remove(name, expected=expected)
    return Response(status_code=204)


@router.put("/{name}/users/{user}", rule=WRITE.but(accounts=True))
def put_user(name: str, user: str, session: CurrentSession) -> CollectionBody:
    """Let a user see a collection's rows; admins may, and its collection admins."""
    return session.collections.assign(name, user)


@router.delete("/{name}/users/{user}", rule=WRITE.but(accounts=True))
def delete_user(name: str, user: str, session: CurrentSession) -> CollectionBody:
    """Let a user see a collection's rows no more; admins may, and its collection admins."""
    return session.collections.withdraw(name, user)
