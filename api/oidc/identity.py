"""Who a user is, by the claims of a token."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from catalog.errors import NotAuthenticated

_MOST_GROUPS = 10_000
_MOST_SUBJECT = 255  # OpenID Connect Core 2


@dataclass(frozen=True)
class Identity:
    """A user as the provider calls them."""

    subject: str
    """Never another user's."""
    name: str
    """"" where no claim has it."""
    groups: frozenset[str] | None
    """None where no claim has them."""

    @property
    def is_whole(self) -> bool:
        """True where nothing is to be asked of the provider any more."""
        return bool(self.name) and self.groups is not None


def identity_of(claims: Mapping[str, Any], name_claim: str, groups_claim: str) -> Identity:
    """The identity that claims state.

    Raises:
        NotAuthenticated: There is no subject, or the groups are no texts.
    """
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= _MOST_SUBJECT:
        raise NotAuthenticated("the provider's token has no subject (sub)")
    return Identity(subject, _name(claims, subject, name_claim), _groups(claims, groups_claim))


def _name(claims: Mapping[str, Any], subject: str, name_claim: str) -> str:
    name = claims.get(name_claim)
    if isinstance(name, str) and name:
        return name
    # A program's own token (RFC 9068): its subject is the client, which has no other name.
    return subject if subject in (claims.get("client_id"), claims.get("azp")) else ""


def _groups(claims: Mapping[str, Any], groups_claim: str) -> frozenset[str] | None:
    groups = claims.get(groups_claim)
    if groups is None:
        return None
    listed = [groups] if isinstance(groups, str) else groups
    is_list = isinstance(listed, list) and all(isinstance(group, str) for group in listed)
    if not is_list or len(listed) > _MOST_GROUPS:
        raise NotAuthenticated(
            f"claim '{groups_claim}' of the provider's token: expected a list of group names"
        )
    return frozenset(listed)
