"""Collections: a rule that says which rows, and the users who see them."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.accounts import users
from catalog.records.expected_version import ExpectedVersion, to_change
from catalog.records.named import Named
from catalog.records.store import RecordStore
from catalog.records.user_tables import Collection, CollectionUser, User
from catalog.records.versions import new_version

_COLLECTIONS = Named(
    "collection", Collection, Collection.name, "framesift collection list shows them"
)


def add(records: RecordStore, name: str, rule: str) -> Collection:
    """Keep a new collection.

    Args:
        name: Letters, digits and ``._@-``.
        rule: A WHERE body that query.question.collection_rule has checked.

    Raises:
        AlreadyExists: It is taken.
    """
    return _COLLECTIONS.add(records, Collection(name=name, rule=rule))


def listed(records: RecordStore) -> list[tuple[Collection, list[str]]]:
    """Every collection with its users' names, by name."""
    with records.reading() as session:
        collections = session.scalars(select(Collection).order_by(Collection.name)).all()
        return [(collection, _user_names(session, collection)) for collection in collections]


def named_rules(records: RecordStore, user_name: str | None = None) -> tuple[tuple[str, str], ...]:
    """Name and rule of every collection, or of a user's, in the order in which they were made."""
    query = select(Collection.name, Collection.rule).order_by(Collection.id)
    if user_name is not None:
        query = (
            query.join(CollectionUser, CollectionUser.collection_id == Collection.id)
            .join(User, CollectionUser.user_id == User.id)
            .where(User.name == user_name)
        )
    with records.reading() as session:
        return tuple((name, rule) for name, rule in session.execute(query))


def rules_of(records: RecordStore, user_name: str) -> tuple[str, ...]:
    """The rules of a user's collections, in an order of their own."""
    query = (
        select(Collection.rule)
        .join(CollectionUser, CollectionUser.collection_id == Collection.id)
        .join(User, CollectionUser.user_id == User.id)
        .where(User.name == user_name)
    )
    with records.reading() as session:
        return tuple(sorted(session.scalars(query)))


def recorded(records: RecordStore, name: str) -> tuple[Collection, list[str]]:
    """The collection of that name, and its users' names."""
    with records.reading() as session:
        collection = _COLLECTIONS.get(session, name)
        return collection, _user_names(session, collection)


def remove(records: RecordStore, name: str, expected: ExpectedVersion | None = None) -> None:
    """Remove a collection; its users lose access to its rows."""
    with records.session() as session:
        session.delete(
            to_change("collection", name, expected, lambda: _COLLECTIONS.get(session, name))
        )


def assign(records: RecordStore, name: str, user_name: str) -> None:
    """Give a user access to a collection's rows."""
    with records.session() as session:
        collection = _COLLECTIONS.get(session, name)
        key = collection.id, users.get(session, user_name).id
        if session.get(CollectionUser, key) is None:
            collection.version = new_version()
            session.add(CollectionUser(collection_id=key[0], user_id=key[1]))


def withdraw(records: RecordStore, name: str, user_name: str) -> None:
    """Let a user see a collection's rows no more."""
    with records.session() as session:
        collection, user = _COLLECTIONS.get(session, name), users.get(session, user_name)
        assigned = session.get(CollectionUser, (collection.id, user.id))
        if assigned is not None:
            collection.version = new_version()
            session.delete(assigned)


def _user_names(session: Session, collection: Collection) -> list[str]:
    query = (
        select(User.name)
        .join(CollectionUser, CollectionUser.user_id == User.id)
        .where(CollectionUser.collection_id == collection.id)
        .order_by(User.name)
    )
    return list(session.scalars(query))
