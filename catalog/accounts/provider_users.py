"""Users whom an OpenID provider knows: made at first login, with the rights of their groups."""

from collections.abc import Collection as Names
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Select, delete, select
from sqlalchemy.orm import Session

from catalog.errors import NotAllowed
from catalog.records.store import RecordStore
from catalog.records.user_tables import Collection, CollectionUser, Token, User
from catalog.records.versions import new_version
from catalog.text.account_name import check_name

LEAST_ROLE = "datauser"
"""Role of a user whose groups have no rights any more."""


@dataclass(frozen=True)
class ProviderUser:
    """A user as the provider calls them."""

    issuer: str
    """URL of the provider."""
    subject: str
    """Never another user's: names are."""
    name: str
    """For a new user; "" where the provider did not say it."""


@dataclass(frozen=True)
class Rights:
    """Rights of a user by their groups."""

    roles: tuple[str, ...]
    """Of catalog.accounts.accounts.ROLES; none where no group has rights."""
    collections: frozenset[str]
    """Names of the collections whose rows the user reads."""
    managed: frozenset[str]
    """Names of all collections that groups decide about; others stay as they are assigned."""


def let_in(records: RecordStore, known: ProviderUser, rights: Rights | None) -> tuple[User, str]:
    """The user of the home, made where there is none, with these rights.

    Args:
        known: As the provider calls the user.
        rights: None to leave those of a known user as they are.

    Returns:
        The user, and what was made or changed, for the audit log; "" for nothing.

    Raises:
        NotAllowed: The user is disabled, has no group with rights, or the name is another user's.
        InvalidInput: The name of a new user cannot be used.
    """
    user = _of_subject(records, known)
    if user is not None and user.disabled:
        raise NotAllowed(f"user '{user.name}' is disabled: ask an admin")
    if user is not None and (rights is None or _has(records, user, rights)):
        return user, ""
    if rights is None or not (user or rights.roles):
        raise _without_rights(known.name or known.subject)
    with records.session() as session:
        user = session.scalar(_query(known))  # another process may have made it meanwhile
        note = "changed" if user is not None else "made"
        user = user or _made(session, known, rights.roles)
        roles = list(rights.roles) or [LEAST_ROLE]
        has_roles = user.roles == roles
        if not has_roles:
            user.roles = roles
        has_collections = not _assign(session, user, rights)
        if note == "changed" and has_roles and has_collections and rights.roles:
            return user, ""
        if not rights.roles:
            ours = (Token.user_id == user.id, Token.name.is_(None))
            session.execute(delete(Token).where(*ours))
    if not rights.roles:
        raise _without_rights(user.name)
    given = ", ".join(sorted(rights.collections)) or "no collections"
    return user, f"user {user.name} {note}: roles {', '.join(roles)}; {given}"


def _without_rights(name: str) -> NotAllowed:
    return NotAllowed(
        f"user '{name[:140]}': none of your groups has rights here; ask an admin for a group of "
        "the file of FRAMESIFT_OIDC_GROUPS"
    )


def _query(known: ProviderUser) -> Select[User]:
    return select(User).where(User.issuer == known.issuer, User.subject == known.subject)


def _of_subject(records: RecordStore, known: ProviderUser) -> User | None:
    with records.reading() as session:
        user: User | None = session.scalar(_query(known))
        return user


def _has(records: RecordStore, user: User, rights: Rights) -> bool:
    """Return whether a user has just these rights, and so nothing is to be written."""
    if user.roles != list(rights.roles):
        return False
    with records.reading() as session:
        names = select(Collection.name, CollectionUser.user_id).outerjoin(
            CollectionUser,
            (CollectionUser.collection_id == Collection.id) & (CollectionUser.user_id == user.id),
        )
        return all(
            (number is not None) == (name in rights.collections)
            for name, number in session.execute(names)
            if name in rights.managed
        )


def _made(session: Session, known: ProviderUser, roles: Sequence[str]) -> User:
    if not known.name:
        raise NotAllowed(
            "this user has not logged in yet, and the token does not say their name: log in on the "
            "page first, or have the provider put the claim of FRAMESIFT_OIDC_NAME_CLAIM into it"
        )
    check_name("user", known.name)
    if session.scalar(select(User).where(User.name == known.name)) is not None:
        raise NotAllowed(
            f"user '{known.name}' of this home is not the provider's: ask an admin to remove it or "
            "to choose another FRAMESIFT_OIDC_NAME_CLAIM; until then log in with its password"
        )
    user = User(
        name=known.name, roles=list(roles), password="", issuer=known.issuer, subject=known.subject
    )
    session.add(user)
    session.flush()
    return user


def _assign(session: Session, user: User, rights: Rights) -> bool:
    """Give and withdraw collections; whether some were."""
    is_changed = False
    for collection in session.scalars(_collections(rights.managed)):
        assigned = session.get(CollectionUser, (collection.id, user.id))
        if (assigned is not None) == (collection.name in rights.collections):
            continue
        collection.version, is_changed = new_version(), True
        if assigned is not None:
            session.delete(assigned)
        else:
            session.add(CollectionUser(collection_id=collection.id, user_id=user.id))
    return is_changed


def _collections(names: Names[str]) -> Select[Collection]:
    return select(Collection).where(Collection.name.in_(sorted(names)))
