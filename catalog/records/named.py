"""Records of a kind that have a name: added, listed, found and removed by it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from catalog.errors import AlreadyExists, NotFound
from catalog.records.kinds import Kind
from catalog.records.reading import Records
from catalog.text.account_name import check_name, is_name

if TYPE_CHECKING:  # reading does without SQLAlchemy
    from sqlalchemy.orm import Session

    from catalog.records.store import RecordStore

_Record = TypeVar("_Record")


@dataclass(frozen=True)
class Named(Generic[_Record]):
    """The records of one kind, by their column ``name``."""

    noun: str
    """"policy", "trigger"..."""
    kind: Kind[_Record]
    """Which they are."""
    if_missing: str
    """Where a user finds the names that there are."""
    if_taken: str = "choose another name or remove it first"
    """What a user does where a name is taken."""

    def add(self, records: "RecordStore", record: _Record) -> _Record:
        """Keep a new record.

        Raises:
            InvalidInput: Its name cannot be used.
            AlreadyExists: Its name is taken.
        """
        name: str = getattr(record, "name")  # noqa: B009  # the type says not that it has one
        check_name(self.noun, name)
        with records.session() as session:
            if self._named(session, name) is not None:
                raise AlreadyExists(self.noun, name, self.if_taken)
            session.add(record)
        return record

    def listed(self, records: Records) -> Sequence[_Record]:
        """Every record, by name."""
        return records.select(self.kind, order="name")

    def recorded(self, records: Records, name: str) -> _Record:
        """The record of that name.

        Raises:
            NotFound: There is none.
        """
        rows = records.select(self.kind, "name = :name", name=name) if is_name(name) else []
        if not rows:
            raise self.missing(name)
        return rows[0]

    def change(self, records: "RecordStore", name: str, **columns: Any) -> _Record:
        """Give a record other values of columns."""
        with records.session() as session:
            record = self.get(session, name)
            for column, value in columns.items():
                setattr(record, column, value)
            return record

    def remove(self, records: "RecordStore", name: str) -> None:
        """Remove a record, and what is recorded of it."""
        with records.session() as session:
            session.delete(self.get(session, name))

    def get(self, session: "Session", name: str) -> _Record:
        """`recorded`, in a transaction that may change it."""
        record = self._named(session, name) if is_name(name) else None
        if record is None:
            raise self.missing(name)
        return record

    def missing(self, name: str) -> NotFound:
        """The error of a record that is not there."""
        return NotFound(self.noun, name[:140], self.if_missing)

    def _named(self, session: "Session", name: str) -> _Record | None:
        from sqlalchemy import select, text

        from catalog.records.store import class_of

        query = select(class_of(self.kind)).where(text("name = :name"))
        return session.scalar(query, {"name": name})
