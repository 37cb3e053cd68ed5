"""Callers, and what they may do: what their roles and their token allow."""

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.accounts.accounts import SCOPES, level_of
from catalog.errors import NotAllowed
from catalog.values import Owner

if TYPE_CHECKING:  # commands on one of the two stores do without the other's database
    from catalog.records.user_tables import User

_SEE_ALL = frozenset({"admin", "dataadmin"})
"""Roles that see every row; others see those of their collections."""


@dataclass(frozen=True)
class Permission:
    """A permission that a caller must have."""

    level: str
    """Of catalog.accounts.accounts.SCOPES."""
    all_rows: bool
    """Whether the answer, or what the request changes, may be of any row."""


@dataclass(frozen=True)
class Caller:
    """The user of a request."""

    user: str
    """The user's name; "" where the server does not authenticate."""
    roles: frozenset[str]
    """The user's."""
    scope: str
    """What the token may do at most, of catalog.accounts.accounts.SCOPES."""
    logged_in: bool
    """Whether it came by a password, and not by a token that was made to be kept."""
    rules: tuple[str, ...] = ()
    """Of the user's collections, where the roles do not see every row."""
    account: str = ""
    """Tells users apart who had the same name one after the other: `User.account`."""

    @classmethod
    def of(cls, user: "User", scope: str, *, logged_in: bool) -> "Caller":
        """A user, by a token of that scope; whose rules are not looked up."""
        return cls(user.name, frozenset(user.roles), scope, logged_in, account=user.account)

    @property
    def owner(self) -> Owner:
        """The caller as the owner of what the request makes."""
        return Owner(self.user, self.account)

    @property
    def view(self) -> str:
        """A text for the rows that the caller sees: an answer to one view is not for another."""
        rows = "\0".join(self.rules).encode()
        visible = "all" if self.sees_all else hashlib.sha256(rows).hexdigest()
        return f"{self.user} {self.account} {visible}"

    @property
    def level(self) -> str:
        """The most that this caller may do: what both roles and token allow."""
        return level_of(self.roles, self.scope)

    @property
    def sees_all(self) -> bool:
        """True where every row of the catalog may be seen."""
        return bool(self.roles & _SEE_ALL)

    def may(self, level: str) -> bool:
        """Return whether roles and token allow something of that level."""
        return SCOPES.index(level) <= SCOPES.index(self.level)

    def need(self, needed: Permission) -> None:
        """Go on only where a request may be made.

        Raises:
            NotAllowed: It may not.
        """
        if not self.may(needed.level):
            raise NotAllowed(
                f"user '{self.user}' may {self.level} with this token, and this needs "
                f"'{needed.level}': ask an admin for a role or a token that has it"
            )
        if needed.all_rows and not self.sees_all:
            raise NotAllowed(
                f"user '{self.user}' sees only rows of collections, and this does not tell them "
                "apart: ask an admin for the role dataadmin"
            )


NOBODY_ASKED = Caller("", frozenset({"admin"}), "admin", logged_in=True)
"""The caller of a server that does not authenticate."""
