"""Records of a kind that have a name: added, listed, found and removed by it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import InstrumentedAttribute, Session

from catalog.errors import AlreadyExists, NotFound
from catalog.records.store import RecordStore
from catalog.records.tables import Base
from catalog.text.account_name import check_name, is_name

_Record = TypeVar("_Record", bound=Base)


@dataclass(frozen=True)
class Named(Generic[_Record]):
    """The records of one kind, by name.

    Attributes:
        noun: "policy", "trigger"...
        kind: Their class.
        name: Its column.
        if_missing: Where a user finds the names that there are.
        if_taken: What a user does where a name is taken.
    """

    noun: str
    kind: type[_Record]
    name: InstrumentedAttribute[str]
    if_missing: str
    if_taken: str = "choose another name or remove it first"

    def add(self, records: RecordStore, record: _Record) -> _Record:
        """Keep a new record.

        Raises:
            InvalidInput: Its name cannot be used.
            AlreadyExists: Its name is taken.
        """
        name: str = getattr(record, self.name.key)
        check_name(self.noun, name)
        with records.session() as session:
            if self._named(session, name) is not None:
                raise AlreadyExists(self.noun, name, self.if_taken)
            session.add(record)
        return record

    def listed(self, records: RecordStore) -> Sequence[_Record]:
        """Every record, by name."""
        with records.reading() as session:
            return session.scalars(select(self.kind).order_by(self.name)).all()

    def recorded(self, records: RecordStore, name: str) -> _Record:
        """The record of that name.

        Raises:
            NotFound: There is none.
        """
        with records.reading() as session:
            return self.get(session, name)

    def change(self, records: RecordStore, name: str, **columns: Any) -> _Record:
        """Give a record other values of columns."""
        with records.session() as session:
            record = self.get(session, name)
            for column, value in columns.items():
                setattr(record, column, value)
            return record

    def remove(self, records: RecordStore, name: str) -> None:
        """Remove a record, and what is recorded of it."""
        with records.session() as session:
            session.delete(self.get(session, name))

    def get(self, session: Session, name: str) -> _Record:
        """`recorded`, in a transaction."""
        record = self._named(session, name) if is_name(name) else None
        if record is None:
            raise self.missing(name)
        return record

    def missing(self, name: str) -> NotFound:
        """The error of a record that is not there."""
        return NotFound(self.noun, name[:140], self.if_missing)

    def _named(self, session: Session, name: str) -> _Record | None:
        return session.scalar(select(self.kind).where(self.name == name))
