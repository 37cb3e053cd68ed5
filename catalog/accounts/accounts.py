"""Rules for users, tokens and collections: roles, scopes, days."""

from collections.abc import Iterable

ROLES = ("admin", "dataadmin", "datauser", "collectionadmin")
"""Roles, with Spectrum Discover's names; api.services.accounts.callers says what each may do."""

SCOPES = ("read", "write", "admin")
"""Scopes of a token; each contains those before it."""

_HIGHEST = {"admin": "admin", "dataadmin": "write", "collectionadmin": "write", "datauser": "read"}
"""Highest of SCOPES that each role allows."""

MOST_DAYS = 3650
"""Longest life of a token [days]."""


def level_of(roles: Iterable[str], scope: str) -> str:
    """The highest of SCOPES that both roles and the scope of a token allow."""
    of_roles = max((SCOPES.index(_HIGHEST[role]) for role in roles), default=0)
    return SCOPES[min(of_roles, SCOPES.index(scope))]
