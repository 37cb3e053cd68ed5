"""Users, tokens, collections, the audit log: api.services and framesift."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from api.cli.shapes.record import Record


class Users(Protocol):
    """See api.services.accounts.users.Users."""

    def list(self) -> Iterable[Record]: ...

    def get(self, name: str) -> Record: ...

    def add(self, name: str, roles: Sequence[str], *, password: str | None = None) -> Record: ...

    def set(
        self,
        name: str,
        *,
        roles: Sequence[str] | None = None,
        disabled: bool | None = None,
        password: str | None = None,
        jobs: int | None = None,
        ranks: int | None = None,
    ) -> Record: ...

    def remove(self, name: str) -> None: ...


class Tokens(Protocol):
    """See api.services.accounts.tokens.Tokens."""

    def list(self, *, user: str | None = None) -> Iterable[Record]: ...

    def create(
        self, name: str, *, user: str | None = None, scope: str = "read", days: int = 365
    ) -> Record: ...

    def revoke(self, number: int) -> Record: ...


class Collections(Protocol):
    """See api.services.accounts.collections.Collections."""

    def list(self) -> Iterable[Record]: ...

    def add(self, name: str, rule: str) -> Record: ...

    def remove(self, name: str) -> None: ...

    def assign(self, name: str, user: str) -> Record: ...

    def withdraw(self, name: str, user: str) -> Record: ...


class Audit(Protocol):
    """See api.services.accounts.audit.Audit."""

    def list(
        self,
        *,
        who: str | None = None,
        outcome: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Iterable[Record]: ...
