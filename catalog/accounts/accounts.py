"""Rules for users, tokens and collections: names, roles, scopes, days."""

import re

from catalog.errors import InvalidInput

ROLES = ("admin", "dataadmin", "datauser", "collectionadmin")
"""Roles, with Spectrum Discover's names; api.services.accounts.callers says what each may do."""

SCOPES = ("read", "write", "admin")
"""Scopes of a token; each contains those before it."""

MOST_DAYS = 3650
"""Longest life of a token [days]."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")


def is_name(text: str) -> bool:
    """Return whether a user, token or collection may have this name."""
    return _NAME.fullmatch(text) is not None


def check_name(kind: str, name: str) -> None:
    """A name can be used in a URL, in basic authentication and in a log.

    Raises:
        InvalidInput: It cannot.
    """
    if not is_name(name):
        raise InvalidInput(
            f"{kind} name '{name[:140]}': expected up to 128 letters, digits and ._@- "
            "that begin with a letter or digit"
        )
