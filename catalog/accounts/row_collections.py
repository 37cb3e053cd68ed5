"""Collections: a rule that says which rows, and the users who see them."""

from typing import TYPE_CHECKING

from catalog.records.expected_version import ExpectedVersion, to_change
from catalog.records.kinds import COLLECTIONS
from catalog.records.named import Named
from catalog.records.reading import Records

if TYPE_CHECKING:  # reading does without SQLAlchemy
    from catalog.records.store import RecordStore
    from catalog.records.user_tables import Collection

_COLLECTIONS = Named("collection", COLLECTIONS, "framesift collection list shows them")
_USERS_OF = "FROM users JOIN collection_users ON users.id = collection_users.user_id"
_OF_USER = f"(SELECT collection_id {_USERS_OF} WHERE users.name = :user)"


def add(records: "RecordStore", name: str, rule: str) -> "Collection":
    """Keep a new collection.

    Args:
        name: Letters, digits and ``._@-``.
        rule: A WHERE body that query.question.collection_rule has checked.

    Raises:
        AlreadyExists: It is taken.
    """
    from catalog.records.user_tables import Collection

    return _COLLECTIONS.add(records, Collection(name=name, rule=rule))


def listed(records: Records) -> "list[tuple[Collection, list[str]]]":
    """Every collection with its users' names, by name."""
    names: dict[int, list[str]] = {}
    for number, name in records.rows(f"SELECT collection_id, name {_USERS_OF} ORDER BY name"):
        names.setdefault(number, []).append(name)
    collections = records.select(COLLECTIONS, order="name")
    return [(collection, names.get(collection.id, [])) for collection in collections]


def named_rules(records: Records, user_name: str | None = None) -> tuple[tuple[str, str], ...]:
    """Name and rule of every collection, or of a user's, in the order in which they were made."""
    of_user = "" if user_name is None else f"WHERE id IN {_OF_USER} "
    values = {} if user_name is None else {"user": user_name}
    named = f"SELECT name, rule FROM collections {of_user}ORDER BY id"
    return tuple((name, rule) for name, rule in records.rows(named, **values))


def rules_of(records: Records, user_name: str) -> tuple[str, ...]:
    """The rules of a user's collections, in an order of their own."""
    rules = records.rows(f"SELECT rule FROM collections WHERE id IN {_OF_USER}", user=user_name)
    return tuple(sorted(rule for (rule,) in rules))


def recorded(records: Records, name: str) -> "tuple[Collection, list[str]]":
    """The collection of that name, and its users' names."""
    collection = _COLLECTIONS.recorded(records, name)
    named = f"SELECT name {_USERS_OF} WHERE collection_id = :collection ORDER BY name"
    names = records.rows(named, collection=collection.id)
    return collection, [name for (name,) in names]


def remove(records: "RecordStore", name: str, expected: ExpectedVersion | None = None) -> None:
    """Remove a collection; its users lose access to its rows."""
    with records.session() as session:
        session.delete(
            to_change("collection", name, expected, lambda: _COLLECTIONS.get(session, name))
        )


def assign(records: "RecordStore", name: str, user_name: str) -> None:
    """Give a user access to a collection's rows."""
    from catalog.accounts import users
    from catalog.records.user_tables import CollectionUser
    from catalog.records.versions import new_version

    with records.session() as session:
        collection = _COLLECTIONS.get(session, name)
        key = collection.id, users.get(session, user_name).id
        if session.get(CollectionUser, key) is None:
            collection.version = new_version()
            session.add(CollectionUser(collection_id=key[0], user_id=key[1]))


def withdraw(records: "RecordStore", name: str, user_name: str) -> None:
    """Revoke a user's access to a collection's rows."""
    from catalog.accounts import users
    from catalog.records.user_tables import CollectionUser
    from catalog.records.versions import new_version

    with records.session() as session:
        collection, user = _COLLECTIONS.get(session, name), users.get(session, user_name)
        assigned = session.get(CollectionUser, (collection.id, user.id))
        if assigned is not None:
            collection.version = new_version()
            session.delete(assigned)
