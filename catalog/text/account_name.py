"""Names that go into URLs, basic authentication and logs: of users, collections, policies."""

import re

from catalog.errors import InvalidInput

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")


def is_name(text: str) -> bool:
    """Return whether a user, collection, policy or the like may have this name."""
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
