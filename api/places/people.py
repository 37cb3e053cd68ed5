"""Users, tokens, collections and the audit log, as JSON: see api.schemas.people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from api.cli import chosen
from catalog.errors import InvalidInput

if TYPE_CHECKING:  # it imports httpx, which commands on a home do without
    from framesift import Client

Body = Mapping[str, Any]


@dataclass(frozen=True)
class NewToken:
    """A token to be made.

    Attributes:
        name: Tells the user's tokens apart.
        user: Whose.
        scope: Of catalog.accounts.tokens.SCOPES.
        days: Until it expires.
    """

    name: str
    user: str
    scope: str
    days: int


@dataclass(frozen=True)
class Entries:
    """Which entries of the audit log; see catalog.accounts.audit_log.entries."""

    who: str | None
    outcome: str | None
    before: int | None
    limit: int


class People(Protocol):
    """Who knows who may do what."""

    def add_user(self, name: str, roles: Sequence[str], password: str | None) -> Body:
        """Add a user; without a password only tokens open the account."""

    def users(self) -> Sequence[Body]:
        """Every user."""

    def user(self, name: str) -> Body:
        """One."""

    def set_password(self, name: str, password: str) -> Body:
        """Give a user another password; logins with the old one end, failures are forgotten."""

    def me(self) -> Body:
        """Who asks: name, roles, level.

        Raises:
            InvalidInput: Nobody in particular.
        """

    def set_own_password(self, current: str, password: str, /) -> None:
        """Give who asks another password, by the one until now."""

    def set_disabled(self, name: str, disabled: bool) -> Body:
        """Refuse a user and their tokens, or let them in again."""

    def set_roles(self, name: str, roles: Sequence[str]) -> Body:
        """Give a user these roles, and no others."""

    def remove_user(self, name: str) -> None:
        """Remove a user and their tokens."""

    def create_token(self, wanted: NewToken) -> Body:
        """Make a token; its text is the body's ``token``."""

    def tokens(self, user: str | None) -> Sequence[Body]:
        """Every token, or a user's."""

    def revoke_token(self, number: int) -> Body:
        """Let a token count no more."""

    def add_collection(self, name: str, rule: str) -> Body:
        """Add a collection."""

    def collections(self) -> Sequence[Body]:
        """Every collection, with its users."""

    def assign(self, name: str, user: str, sees: bool) -> Body:
        """Let a user see a collection's rows, or no more."""

    def remove_collection(self, name: str) -> None:
        """Remove a collection."""

    def audit(self, wanted: Entries) -> Sequence[Body]:
        """Entries of the audit log, newest first."""


def people() -> People:
    """Of the chosen place."""
    if chosen.server() is not None:
        return ServerPeople(chosen.client())
    from api.places.home.people import HomePeople

    return HomePeople(chosen.home())


@dataclass(frozen=True)
class ServerPeople:
    """A server, which writes its audit log itself."""

    server: "Client"

    def add_user(self, name: str, roles: Sequence[str], password: str | None) -> Body:
        """Add a user."""
        wanted = {"name": name, "roles": list(roles), "password": password}
        body = {key: value for key, value in wanted.items() if value is not None}
        return self.server.call("POST", "/v1/users", body, creates=True)

    def users(self) -> Sequence[Body]:
        """Every user."""
        return list(self.server.entries("/v1/users", "users"))

    def user(self, name: str) -> Body:
        """One."""
        return self.server.call("GET", _path("users", name))

    def set_password(self, name: str, password: str) -> Body:
        """Give a user another password."""
        return self._change(name, password=password)

    def me(self) -> Body:
        """Who asks."""
        me = self.server.call("GET", "/v1/me")
        if not me["name"]:
            raise InvalidInput("this server asks nobody who they are: name the user")
        return me

    def set_own_password(self, current: str, password: str, /) -> None:
        """Give who asks another password."""
        self.server.call("PUT", "/v1/me/password", {"current": current, "password": password})

    def set_disabled(self, name: str, disabled: bool) -> Body:
        """Refuse a user, or let them in again."""
        return self._change(name, disabled=disabled)

    def set_roles(self, name: str, roles: Sequence[str]) -> Body:
        """Give a user these roles."""
        return self._change(name, roles=list(roles))

    def remove_user(self, name: str) -> None:
        """Remove a user."""
        self.server.call("DELETE", _path("users", name))

    def create_token(self, wanted: NewToken) -> Body:
        """Make a token."""
        return self.server.call("POST", "/v1/tokens", vars(wanted))

    def tokens(self, user: str | None) -> Sequence[Body]:
        """Every token that may be seen, or a user's."""
        return list(self.server.entries("/v1/tokens", "tokens", user=user))

    def revoke_token(self, number: int) -> Body:
        """Let a token count no more."""
        return self.server.call("DELETE", f"/v1/tokens/{number}")

    def add_collection(self, name: str, rule: str) -> Body:
        """Add a collection."""
        wanted = {"name": name, "rule": rule}
        return self.server.call("POST", "/v1/collections", wanted, creates=True)

    def collections(self) -> Sequence[Body]:
        """Every collection that may be seen."""
        return list(self.server.entries("/v1/collections", "collections"))

    def assign(self, name: str, user: str, sees: bool) -> Body:
        """Let a user see a collection's rows, or no more."""
        path = f"{_path('collections', name)}/users/{quote(user, safe='')}"
        return self.server.call("PUT" if sees else "DELETE", path)

    def remove_collection(self, name: str) -> None:
        """Remove a collection."""
        self.server.call("DELETE", _path("collections", name))

    def audit(self, wanted: Entries) -> Sequence[Body]:
        """Entries of the audit log."""
        asked = {"who": wanted.who, "outcome": wanted.outcome, "before": wanted.before}
        found = self.server.entries("/v1/audit", "entries", **asked)
        return list(islice(found, wanted.limit))

    def _change(self, name: str, **changes: object) -> Body:
        return self.server.call("PATCH", _path("users", name), changes)


def _path(kind: str, name: str) -> str:
    return f"/v1/{kind}/{quote(name, safe='')}"
