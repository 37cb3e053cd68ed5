"""Changes of one version only: what another client changed meanwhile stays as that one left it."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar

from catalog.errors import NotFound, PreconditionFailed

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class ExpectedVersion:
    """Versions that a change may be made of."""

    versions: frozenset[str] | None = None
    """One of these; None for any, as long as there is one."""

    def allows(self, version: str) -> bool:
        """Return whether a version is one of these."""
        return self.versions is None or version in self.versions


def to_change(
    kind: str,
    name: str,
    expected: ExpectedVersion | None,
    find: Callable[[], _Found],
    version: Callable[[_Found], str] = attrgetter("version"),
) -> _Found:
    """The record to change, where it is of the expected version.

    Args:
        kind: "user", "source"...
        expected: The version; None where any will do.
        find: Reads it in the transaction that changes it; raises NotFound.

    Raises:
        PreconditionFailed: It is another version, or there is none.
    """
    if expected is None:
        return find()
    try:
        record = find()
    except NotFound as error:
        raise PreconditionFailed(kind, name) from error
    if not expected.allows(version(record)):
        raise PreconditionFailed(kind, name)
    return record


def version_of(state: Any) -> str:
    """The version of what the catalog keeps no version of: a digest of its state, as JSON."""
    return hashlib.sha256(json.dumps(state).encode()).hexdigest()[:32]
