"""Users, tokens, collections and the audit log of a server."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any
from urllib.parse import quote

from framesift.http.pages import paged
from framesift.http.transport import Transport

Body = Mapping[str, Any]


class Users:
    """The server's users; admins may ask."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        """The server; nothing is asked."""
        return f"<Users of {self._transport.url}>"

    def __iter__(self) -> Iterator[Body]:
        """Every user."""
        return self.list()

    def list(self) -> Iterator[Body]:
        """Every user by name.

        Each has ``name``, ``roles``, ``disabled``, ``has_password``, ``jobs`` and ``ranks`` (0: as
        the server's settings say), ``created``.

        Raises:
            NotAllowed: You are no admin.
        """
        return paged(self._transport, "/v1/users", "users")

    def get(self, name: str) -> Body:
        """A user.

        Raises:
            NotFound: There is none of that name.
        """
        return self._transport.json("GET", f"/v1/users/{_text(name)}")

    def add(self, name: str, roles: Sequence[str], *, password: str | None = None) -> Body:
        """Add a user.

        Args:
            name: Letters, digits and "._@-".
            roles: "datauser", "collectionadmin", "dataadmin", "admin".
            password: Without one only tokens open the account.

        Raises:
            AlreadyExists: There is one of that name.
            InvalidQuestion: Name, role or password cannot be used.
        """
        body = {"name": name, "roles": [*roles]}
        if password is not None:
            body["password"] = password
        return self._transport.json("POST", "/v1/users", body, creates=True)

    def set(
        self,
        name: str,
        *,
        roles: Sequence[str] | None = None,
        disabled: bool | None = None,
        password: str | None = None,
        jobs: int | None = None,
        ranks: int | None = None,
    ) -> Body:
        """Change a user; what is None stays.

        Args:
            roles: These, and no others.
            disabled: Whether the user and their tokens are refused.
            password: Ends logins with the one before.
            jobs: That may wait or run at once; 0 for what the server's settings say.
            ranks: Processes of these jobs; 0 for what the server's settings say.

        Raises:
            NotFound: There is none of that name.
        """
        changes = {
            "roles": None if roles is None else [*roles],
            "disabled": disabled,
            "password": password,
            "jobs": jobs,
            "ranks": ranks,
        }
        body = {key: value for key, value in changes.items() if value is not None}
        return self._transport.json("PATCH", f"/v1/users/{_text(name)}", body)

    def remove(self, name: str) -> None:
        """Remove a user and their tokens.

        Raises:
            NotFound: There is none of that name.
        """
        self._transport.json("DELETE", f"/v1/users/{_text(name)}")


class Tokens:
    """Your tokens on the server; an admin's are everybody's."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        """The server; nothing is asked."""
        return f"<Tokens of {self._transport.url}>"

    def __iter__(self) -> Iterator[Body]:
        """Every token."""
        return self.list()

    def list(self, *, user: str | None = None) -> Iterator[Body]:
        """Tokens, oldest first: ``id``, ``user``, ``name``, ``scope``, ``state``, ``expires``...

        Args:
            user: Only this user's.

        Raises:
            NotAllowed: They are another user's.
        """
        return paged(self._transport, "/v1/tokens", "tokens", user=user)

    def get(self, number: int) -> Body:
        """A token, without what it is made of.

        Raises:
            NotFound: There is none of that number.
        """
        return self._transport.json("GET", f"/v1/tokens/{number}")

    def create(
        self, name: str, *, user: str | None = None, scope: str = "read", days: int = 365
    ) -> Body:
        """Make a token; its text, which nothing shows again, is ``token``.

        Args:
            name: Tells a user's tokens apart.
            user: Whose; yours when None.
            scope: "read", "write" or "admin"; each has those before it.
            days: Until it expires.

        Raises:
            NotAllowed: You may make no such token.
        """
        body = {"name": name, "user": user, "scope": scope, "days": days}
        return self._transport.json("POST", "/v1/tokens", body)

    def revoke(self, number: int) -> Body:
        """Revoke a token: its requests are refused, and it stays in the list.

        Raises:
            NotFound: There is none of that number.
            NotAllowed: It is another user's, or of a higher scope than yours.
        """
        return self._transport.json("DELETE", f"/v1/tokens/{number}")


class Collections:
    """Collections: rows that users see whose role does not see all."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        """The server; nothing is asked."""
        return f"<Collections of {self._transport.url}>"

    def __iter__(self) -> Iterator[Body]:
        """Every collection that you may know of."""
        return self.list()

    def list(self) -> Iterator[Body]:
        """Collections by name: ``name``, ``rule``, ``users``.

        Raises:
            FramesiftServerError: The server does not answer.
        """
        return paged(self._transport, "/v1/collections", "collections")

    def get(self, name: str) -> Body:
        """A collection.

        Raises:
            NotFound: You may know of none of that name.
        """
        return self._transport.json("GET", f"/v1/collections/{_text(name)}")

    def add(self, name: str, rule: str) -> Body:
        """Add a collection; admins may.

        Args:
            name: Letters, digits and "._@-".
            rule: A WHERE body over metaocean's columns.

        Raises:
            SqlError: The rule is none.
        """
        body = {"name": name, "rule": rule}
        return self._transport.json("POST", "/v1/collections", body, creates=True)

    def remove(self, name: str) -> None:
        """Remove a collection; its users lose access to its rows.

        Raises:
            NotFound: There is none of that name.
        """
        self._transport.json("DELETE", f"/v1/collections/{_text(name)}")

    def assign(self, name: str, user: str) -> Body:
        """Let a user see a collection's rows; the collection.

        Raises:
            NotAllowed: You are neither an admin nor one of its collection admins.
        """
        return self._transport.json("PUT", self._member(name, user))

    def withdraw(self, name: str, user: str) -> Body:
        """Let a user see a collection's rows no more; the collection.

        Raises:
            NotAllowed: You are neither an admin nor one of its collection admins.
        """
        return self._transport.json("DELETE", self._member(name, user))

    def _member(self, name: str, user: str) -> str:
        return f"/v1/collections/{_text(name)}/users/{_text(user)}"


class Audit:
    """The server's audit log; admins may read it."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        """The server; nothing is asked."""
        return f"<Audit of {self._transport.url}>"

    def list(
        self,
        *,
        who: str | None = None,
        outcome: str | None = None,
        before: int | None = None,
        limit: int | None = None,
    ) -> Iterator[Body]:
        """Entries, newest first: ``id``, ``time``, ``who``, ``what``, ``target``, ``outcome``...

        Args:
            outcome: Only with this outcome: a status such as "403"; "done", "failed" or
                "interrupted" of commands.
            before: Only entries before this number.
            limit: At most so many; all when None.

        Raises:
            NotAllowed: You are no admin.
        """
        entries = paged(
            self._transport, "/v1/audit", "entries", who=who, outcome=outcome, before=before
        )
        return islice(entries, limit)


def _text(name: str) -> str:
    return quote(name, safe="")
