"""Users, tokens, collections and the audit log of a home."""

import getpass
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from api.places.people import Body, Entries, NewToken
from api.schemas.people import (
    AuditBody,
    CollectionBody,
    NewTokenBody,
    TokenBody,
    UserBody,
)
from api.workspace import Workspace
from catalog.accounts import (
    audit_log,
    login_throttle,
    row_collections,
    tokens,
    users,
)
from catalog.errors import InvalidInput
from catalog.records.store import RecordStore


@dataclass(frozen=True)
class HomePeople:
    """A home, whose user may do everything; every change is in the audit log."""

    home: Workspace

    @property
    def records(self) -> RecordStore:
        """The home's."""
        return self.home.records

    def add_user(self, name: str, roles: Sequence[str], password: str | None) -> Body:
        """Add a user."""
        made = users.add(self.records, name, roles, password)
        self._note("user add", f"{name}: {', '.join(made.roles)}")
        return UserBody.of(made).model_dump()

    def users(self) -> Sequence[Body]:
        """Every user."""
        return [UserBody.of(user).model_dump() for user in users.listed(self.records)]

    def user(self, name: str) -> Body:
        """One."""
        return UserBody.of(users.found(self.records, name)).model_dump()

    def set_password(self, name: str, password: str) -> Body:
        """Give a user another password."""
        user = users.set_password(self.records, name, password)
        login_throttle.forget(self.records, name)
        self._note("user passwd", name)
        return UserBody.of(user).model_dump()

    def me(self) -> Body:
        """Nobody in particular."""
        raise InvalidInput(
            "a home asks nobody who they are: name the user, or give --server for yourself"
        )

    def set_own_password(self, _current: str, _password: str, /) -> None:
        """Not without being somebody."""
        self.me()

    def set_disabled(self, name: str, disabled: bool) -> Body:
        """Refuse a user, or let them in again."""
        user = users.set_disabled(self.records, name, disabled)
        self._note("user disable", f"{name}: {'refused' if disabled else 'let in again'}")
        return UserBody.of(user).model_dump()

    def set_roles(self, name: str, roles: Sequence[str]) -> Body:
        """Give a user these roles."""
        user = users.set_roles(self.records, name, roles)
        self._note("user roles", f"{name}: {', '.join(user.roles)}")
        return UserBody.of(user).model_dump()

    def remove_user(self, name: str) -> None:
        """Remove a user."""
        users.remove(self.records, name)
        self._note("user remove", name)

    def create_token(self, wanted: NewToken) -> Body:
        """Make a token."""
        token, text = tokens.create(
            self.records, wanted.user, wanted.name, wanted.scope, timedelta(days=wanted.days)
        )
        what = f"{wanted.user}/{wanted.name}: {wanted.scope}, {wanted.days} days"
        self._note("token create", what)
        body = TokenBody.of(token, wanted.user).model_dump()
        return NewTokenBody(**body, token=text).model_dump()

    def tokens(self, user: str | None) -> Sequence[Body]:
        """Every token, or a user's."""
        found = tokens.listed(self.records, user)
        return [TokenBody.of(token, name).model_dump() for token, name in found]

    def revoke_token(self, number: int) -> Body:
        """Let a token count no more."""
        token, user = tokens.revoke(self.records, number)
        self._note("token revoke", f"{user}/{token.name}")
        return TokenBody.of(token, user).model_dump()

    def add_collection(self, name: str, rule: str) -> Body:
        """Add a collection."""
        # It imports the catalog's database, which users and tokens do without.
        from query.question.collection_rule import try_rule

        try_rule(rule, lambda: self.home.catalog, self.home.settings.query_timeout_s)
        body = CollectionBody.of(row_collections.add(self.records, name, rule), ())
        self._note("collection add", f"{name}: {rule}")
        return body.model_dump()

    def collections(self) -> Sequence[Body]:
        """Every collection."""
        found = row_collections.listed(self.records)
        return [CollectionBody.of(one, members).model_dump() for one, members in found]

    def assign(self, name: str, user: str, sees: bool) -> Body:
        """Let a user see a collection's rows, or no more."""
        (row_collections.assign if sees else row_collections.withdraw)(self.records, name, user)
        self._note("collection assign", f"{name}: {'' if sees else 'not '}{user}")
        return CollectionBody.of(*row_collections.found(self.records, name)).model_dump()

    def remove_collection(self, name: str) -> None:
        """Remove a collection."""
        row_collections.remove(self.records, name)
        self._note("collection remove", name)

    def audit(self, wanted: Entries) -> Sequence[Body]:
        """Entries of the audit log."""
        found = audit_log.entries(self.records, **vars(wanted))
        return [AuditBody.of(entry).model_dump() for entry in found]

    def _note(self, what: str, target: str) -> None:
        """Write a change into the audit log; by commands, the machine's user did it."""
        try:
            name = getpass.getuser()
        except (KeyError, OSError):
            name = str(os.getuid())
        audit_log.add(self.records, f"command line ({name})", what, target, audit_log.DONE)
