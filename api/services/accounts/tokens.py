"""Tokens: what can be done with them."""

from datetime import timedelta
from typing import TYPE_CHECKING

from api.schemas.accounts.tokens import DAYS, NewTokenBody, TokenBody
from api.services.call import Service
from catalog.accounts import tokens
from catalog.accounts.accounts import SCOPES
from catalog.errors import InvalidInput, NotAllowed
from catalog.records.expected_version import ExpectedVersion, to_change

if TYPE_CHECKING:  # imported where it is used: short commands do without
    from catalog.records.user_tables import Token


class Tokens(Service):
    """A caller's own tokens; an admin's are everybody's."""

    def list(self, *, user: str | None = None) -> list[TokenBody]:
        """Tokens with a name, oldest first; those of logins go by themselves after an hour.

        Raises:
            NotAllowed: It is another user's, and the caller is no admin.
        """
        caller = self._session.caller
        whose = user if caller.may("admin") else caller.user
        if user not in (None, whose):
            raise self._not_yours()
        listed = tokens.listed(self._session.readable_records, whose)
        return [TokenBody.of(token, name) for token, name in listed]

    def get(self, number: int) -> TokenBody:
        """A token, without what it is made of."""
        token, user = tokens.recorded(self._session.readable_records, number)
        self._check_own(user)
        return TokenBody.of(token, user)

    def create(
        self, name: str, *, user: str | None = None, scope: str = "read", days: int = DAYS
    ) -> NewTokenBody:
        """Make a token; its text is the body's ``token``.

        Raises:
            InvalidInput: It is nobody's, or the name, scope or days cannot be used.
            NotAllowed: The caller may make no such token.
        """
        caller, whose = self._session.caller, user or self._session.caller.user
        if not whose:
            raise InvalidInput("user: name the token's user; this server does not authenticate you")
        if not caller.may("admin"):
            self._check_own(whose)
            if not caller.logged_in:
                raise NotAllowed("a token makes no tokens: log in with the password to make one")
            if scope in SCOPES and not caller.may(scope):
                raise NotAllowed(f"scope {scope}: user '{caller.user}' may {caller.level} only")
        token, text = tokens.create(self._session.records, whose, name, scope, timedelta(days=days))
        return NewTokenBody(**TokenBody.of(token, whose).model_dump(), token=text)

    def revoke(self, number: int, *, expected: ExpectedVersion | None = None) -> TokenBody:
        """Revoke a token: its requests are refused, and it stays in the list.

        Raises:
            NotAllowed: It is another user's and the caller is no admin, or of a higher scope than
                the caller's.
        """
        caller, records = self._session.caller, self._session.records
        if not caller.may("admin"):
            token, user = to_change(
                "token", str(number), expected, lambda: tokens.recorded(records, number), _version
            )
            self._check_own(user)
            if SCOPES.index(token.scope) > SCOPES.index(caller.scope):
                raise NotAllowed(
                    f"token {number} has scope {token.scope}, and a token of scope {caller.scope} "
                    "revokes none of a higher one: log in with the password to revoke it"
                )
        token, user = tokens.revoke(records, number, expected)
        return TokenBody.of(token, user)

    def _check_own(self, user: str) -> None:
        caller = self._session.caller
        if not caller.may("admin") and user != caller.user:
            raise self._not_yours()

    def _not_yours(self) -> NotAllowed:
        user = self._session.caller.user
        return NotAllowed(f"user '{user}' may see and change their own tokens only")


def _version(recorded: "tuple[Token, str]") -> str:
    return recorded[0].version
