"""Users: their names, passwords and roles."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from catalog.accounts.accounts import ROLES, SCOPES, level_of
from catalog.errors import AlreadyExists, InvalidInput, NotAllowed, NotFound, UnknownName
from catalog.records.expected_version import ExpectedVersion, to_change
from catalog.records.kinds import USERS
from catalog.records.reading import Records
from catalog.text.account_name import check_name, is_name
from catalog.values import Owner

if TYPE_CHECKING:  # reading does without SQLAlchemy
    from argon2 import PasswordHasher
    from sqlalchemy import Select
    from sqlalchemy.orm import Session

    from catalog.records.store import RecordStore
    from catalog.records.user_tables import Collection, User


LEAST_PASSWORD = 12
"""Characters of the shortest password."""

MOST_QUOTA = 1_000_000
"""Jobs, or ranks, that a user may be allowed."""

_MOST_PASSWORD = 1024

COSTS = (3, 64 << 10, 4)
"""Passes, memory [KiB] and lanes of argon2id: RFC 9106's for little memory.

No setting or variable changes them, so no server can be weakened by one. Tests lower them.
"""


def add(records: "RecordStore", name: str, roles: Sequence[str], password: str | None) -> "User":
    """Keep a new user.

    Args:
        name: Letters, digits and ``._@-``.
        roles: Of ROLES, at least one.
        password: None where only tokens shall open the account.

    Raises:
        AlreadyExists: The name is taken.
    """
    from sqlalchemy import select

    from catalog.records.user_tables import User

    check_name("user", name)
    user = User(name=name, roles=_checked(roles), password="")
    if password is not None:
        _check_password(password)
        user.password = _hash(password)
    with records.session() as session:
        if session.scalar(select(User).where(User.name == name)):
            raise AlreadyExists("user", name, "choose another name or remove it first")
        session.add(user)
    return user


def recorded(records: Records, name: str) -> "User":
    """The user of that name."""
    user = _named(records, name)
    if user is None:
        raise _missing(name)
    return user


def listed(records: Records) -> "list[User]":
    """Every user, by name."""
    return records.select(USERS, order="name")


def get(session: "Session", name: str) -> "User":
    """The user of that name, inside a transaction.

    Raises:
        NotFound: There is none.
    """
    user = _of_name(session, name)
    if user is None:
        raise _missing(name)
    return user


def quota(records: Records, name: str) -> tuple[int, int]:
    """Jobs, and ranks of these, that a user may have at once; 0 for what the settings say."""
    user = _named(records, name)
    return (0, 0) if user is None else (user.most_jobs, user.most_ranks)


def change(
    records: "RecordStore",
    name: str,
    *,
    roles: Sequence[str] | None = None,
    disabled: bool | None = None,
    password: str | None = None,
    most_jobs: int | None = None,
    most_ranks: int | None = None,
    expected: ExpectedVersion | None = None,
) -> "User":
    """Change a user, all of it or nothing; what is None stays.

    Args:
        roles: These, and no others.
        password: What was logged in with the one before ends.
        most_jobs: Jobs that may wait or run at once; 0 for what the settings say.
        most_ranks: Processes of these jobs; 0 for what the settings say.

    Raises:
        InvalidInput: The password cannot be used, or a provider knows the user, there is no role,
            no admin would be left, or none with a password, or a number is negative.
    """
    from sqlalchemy import delete

    from catalog.records.user_tables import Token

    checked = None if roles is None else _checked(roles)
    hashed = None
    if password is not None:
        _check_password(password)
        hashed = _hash(password)
    for what, number in (("jobs", most_jobs), ("ranks", most_ranks)):
        if number is not None and not 0 <= number <= MOST_QUOTA:
            raise InvalidInput(f"{what} {number:,}: expected 0 to {MOST_QUOTA:,}")
    with records.session() as session:
        user = to_change("user", name, expected, lambda: get(session, name))
        with _an_admin_left(session, user):
            if checked is not None:
                user.roles = checked
            if disabled is not None:
                user.disabled = disabled
        if most_jobs is not None:
            user.most_jobs = most_jobs
        if most_ranks is not None:
            user.most_ranks = most_ranks
        if hashed is not None:
            if user.subject is not None:
                raise InvalidInput(
                    f"user '{name}' logs in by the OpenID provider and has no password here; "
                    "framesift token create makes a token for a program"
                )
            user.password = hashed
            session.execute(delete(Token).where(Token.user_id == user.id, Token.name.is_(None)))
    return user


def remove(records: "RecordStore", name: str, expected: ExpectedVersion | None = None) -> "User":
    """Remove a user and their tokens; the user. What the audit log says of them stays.

    What they made belongs to nobody from here on: a later user of the name is no heir.
    """
    from sqlalchemy import delete, update

    from catalog.records.automation.tables import Trigger, Webhook
    from catalog.records.policy_tables import Policy
    from catalog.records.question_tables import QuestionLook, SavedQuestion
    from catalog.records.tables import Dataset
    from catalog.records.versions import new_version

    with records.session() as session:
        user = to_change("user", name, expected, lambda: get(session, name))
        for collection in session.scalars(_collections_of(user)):
            collection.version = new_version()
        with _an_admin_left(session, user):
            session.delete(user)
            for kind in (Dataset, Policy, SavedQuestion, Trigger, Webhook):
                theirs = kind.account == user.account
                session.execute(update(kind).where(theirs).values(owner=""))
            session.execute(delete(QuestionLook).where(QuestionLook.account == user.account))
    return user


def active(records: Records, owner: Owner, of: str, remedy: str, scope: str = SCOPES[-1]) -> "User":
    """The user of an account, for whom work is to go on.

    Args:
        of: What the user owns, for the error: "job train-1".
        scope: Of the token by which the work was ordered.

    Raises:
        NotAllowed: The user was removed, is disabled, or may not write any more.
    """
    user = _named(records, owner.name)
    if user is None or user.account != owner.account:
        why = "was removed"
    elif user.disabled:
        why = "is disabled"
    elif level_of(user.roles, scope) == SCOPES[0]:
        why = "may not write any more"
    else:
        return user
    raise NotAllowed(f"{of}: its {f'owner {owner.name}'.rstrip()} {why}; {remedy}")


def with_password(records: Records, name: str, password: str) -> "User | None":
    """The user whose name and password these are; None where there is none, or it is disabled.

    It takes as long for a name that does not exist: by the clock nobody finds names.
    """
    from argon2.exceptions import InvalidHashError, VerificationError

    user = _named(records, name)
    stored = user.password if user is not None else ""
    try:
        _hasher().verify(stored or _no_ones(), password[:_MOST_PASSWORD])
    except (VerificationError, InvalidHashError):
        return None
    if user is None or user.disabled or not stored:
        return None
    return user


def _collections_of(user: "User") -> "Select[Collection]":
    from sqlalchemy import select

    from catalog.records.user_tables import Collection, CollectionUser

    theirs = select(CollectionUser.collection_id).where(CollectionUser.user_id == user.id)
    return select(Collection).where(Collection.id.in_(theirs))


def _missing(name: str) -> NotFound:
    return NotFound("user", name, "framesift user list shows them")


def _named(records: Records, name: str) -> "User | None":
    # What can be no name is not asked for: no database takes every text.
    rows = records.select(USERS, "name = :name", name=name) if is_name(name) else []
    return rows[0] if rows else None


def _of_name(session: "Session", name: str) -> "User | None":
    """Do as `_named`, in a transaction that may change it."""
    from sqlalchemy import select

    from catalog.records.user_tables import User

    if not is_name(name):
        return None
    return session.scalar(select(User).where(User.name == name))


def _checked(roles: Sequence[str]) -> list[str]:
    for role in roles:
        if role not in ROLES:
            raise UnknownName("role", role, ROLES)
    if not roles:
        raise InvalidInput(f"no role given: expected one or more of {', '.join(ROLES)}")
    return [role for role in ROLES if role in roles]


def _check_password(password: str) -> None:
    if not LEAST_PASSWORD <= len(password) <= _MOST_PASSWORD:
        raise InvalidInput(
            f"a password of {len(password)} characters: expected {LEAST_PASSWORD} to "
            f"{_MOST_PASSWORD}; a sentence is a good one"
        )
    try:
        password.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput("the password is not valid Unicode text") from error


@contextmanager
def _an_admin_left(session: "Session", user: "User") -> Iterator[None]:
    """Undo a change of a user that leaves no admin, or nobody who manages without a provider."""
    from sqlalchemy import select

    from catalog.records.user_tables import User

    was_admin, had_password = _is_admin(user), _is_admin_with_password(user)
    yield
    session.flush()
    others = session.scalars(select(User)).all()
    if was_admin and not any(map(_is_admin, others)):
        raise InvalidInput(
            f"user '{user.name}' is the last admin; make another one first: "
            "framesift user roles NAME admin"
        )
    has_provider = any(other.subject is not None for other in others)
    if had_password and has_provider and not any(map(_is_admin_with_password, others)):
        raise InvalidInput(
            f"user '{user.name}' is the last admin with a password; give another admin one first: "
            "framesift user passwd NAME"
        )


def _is_admin(user: "User") -> bool:
    return "admin" in user.roles and not user.disabled


def _is_admin_with_password(user: "User") -> bool:
    return _is_admin(user) and bool(user.password)


@cache
def _hasher() -> "PasswordHasher":
    from argon2 import PasswordHasher  # logging in needs it, and nothing else

    return PasswordHasher(*COSTS)


def _hash(password: str) -> str:
    return _hasher().hash(password)


@cache
def _no_ones() -> str:
    """A hash of the same costs that no password of anybody has."""
    return _hash("nobody has this password")
