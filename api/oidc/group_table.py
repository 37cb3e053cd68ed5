"""The file that says what groups may: roles and collections of each.

[[groups]]
group = "perception"
roles = ["dataadmin"]

[[groups]]
group = "munich"
roles = ["collectionadmin"]
collections = ["munich"]
"""

import logging
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalog.accounts.accounts import ROLES
from catalog.errors import InvalidInput
from catalog.storage.file_version import stamp_of
from catalog.text.account_name import is_name

_LOG = logging.getLogger(__name__)

EVERYBODY = "*"
"""Stands for a group in which every user of the provider is."""

_EXAMPLE = 'expected [[groups]] with group = "NAME", roles = ["datauser"], collections = ["NAME"]'


@dataclass(frozen=True)
class GroupRow:
    """Rights of a group."""

    group: str
    """Name of the group, or EVERYBODY."""
    roles: tuple[str, ...]
    collections: tuple[str, ...] = ()
    """Names; their rows are read, beside those of other groups."""


@dataclass(frozen=True)
class GroupTable:
    """Rights of all groups that have some."""

    rows: tuple[GroupRow, ...]

    @property
    def collections(self) -> frozenset[str]:
        """Names of all collections that groups decide about."""
        return frozenset(name for row in self.rows for name in row.collections)

    def rights_of(self, groups: Collection[str]) -> tuple[tuple[str, ...], frozenset[str]]:
        """Roles, in the order of ROLES, and names of collections, of a user in these groups."""
        held = [row for row in self.rows if row.group == EVERYBODY or row.group in groups]
        roles = {role for row in held for role in row.roles}
        names = frozenset(name for row in held for name in row.collections)
        return tuple(role for role in ROLES if role in roles), names


class GroupFile:
    """The table of a file, read again when that changes.

    Attributes:
        table: The newest that could be used.
    """

    def __init__(self, path: Path) -> None:
        """Read it.

        Raises:
            InvalidInput: It cannot be read, or is none.
        """
        self._path = path
        self._seen = self._tried = stamp_of(path)
        self.table = read_group_table(path)

    def look(self) -> None:
        """Read it where it has changed since the last time, and not since the last look.

        Whoever changes it may write for a while. One that cannot be used changes nothing, and the
        log says so.
        """
        stamp = stamp_of(self._path)
        rests, self._seen = stamp == self._seen, stamp
        if not rests or stamp == self._tried:
            return
        self._tried = stamp
        try:
            self.table = read_group_table(self._path)
        except InvalidInput as error:
            _LOG.error("%s; the server goes on with the table before", error)
        else:
            _LOG.info("FRAMESIFT_OIDC_GROUPS=%s: read again", self._path)


def read_group_table(path: Path) -> GroupTable:
    """The table of a file.

    Raises:
        InvalidInput: It cannot be read, or is none.
    """
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise _wrong(path, error.strerror or "cannot be read") from error
    except ValueError as error:  # of TOML, and of UTF-8
        raise _wrong(path, str(error)) from error
    rows = document.pop("groups", None)
    if document or not isinstance(rows, list) or not rows:
        raise _wrong(path, _EXAMPLE)
    return GroupTable(tuple(_row(path, number, row) for number, row in enumerate(rows, 1)))


def _row(path: Path, number: int, row: Any) -> GroupRow:
    where = f"group {number}"
    if not isinstance(row, dict) or not set(row) <= {"group", "roles", "collections"}:
        raise _wrong(path, f"{where}: {_EXAMPLE}")
    group, roles, names = row.get("group"), row.get("roles"), row.get("collections", [])
    if not isinstance(group, str) or not group:
        raise _wrong(path, f"{where}: {_EXAMPLE}")
    if not isinstance(roles, list) or not roles or not all(role in ROLES for role in roles):
        raise _wrong(path, f"{where}, roles {roles}: expected one or more of {', '.join(ROLES)}")
    if not isinstance(names, list) or not all(isinstance(n, str) and is_name(n) for n in names):
        raise _wrong(path, f"{where}, collections {names}: expected a list of names")
    return GroupRow(group, tuple(roles), tuple(names))


def _wrong(path: Path, why: str) -> InvalidInput:
    return InvalidInput(f"FRAMESIFT_OIDC_GROUPS={path}: {why}")
