"""Sources, as they are recorded."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.errors import AlreadyExists, InvalidInput, NotFound
from catalog.records.expected_version import ExpectedVersion, to_change
from catalog.records.store import RecordStore
from catalog.records.tables import Source
from catalog.values import PLATFORMS


def add_source(records: RecordStore, source: Source) -> Source:
    """Keep a new source.

    Raises:
        InvalidInput: Unknown platform.
        AlreadyExists: The name, or its cluster and datasource, are taken.
    """
    if source.platform not in PLATFORMS:
        raise InvalidInput(
            f"unknown platform '{source.platform}': expected one of {', '.join(PLATFORMS)}"
        )
    with records.session() as session:
        if session.scalar(select(Source).where(Source.name == source.name)):
            raise AlreadyExists("source", source.name, "choose another name or remove it first")
        twin = session.scalar(
            select(Source).where(
                Source.cluster == source.cluster, Source.datasource == source.datasource
            )
        )
        if twin is not None:
            raise AlreadyExists(
                "datasource",
                source.datasource,
                f"source {twin.name} has it on cluster {source.cluster}; "
                "give --cluster or --datasource another name",
            )
        session.add(source)
    return source


def recorded_source(records: RecordStore, name: str) -> Source:
    """The source of that name.

    Raises:
        NotFound: There is none.
    """
    with records.reading() as session:
        source = session.scalar(select(Source).where(Source.name == name))
        if source is None:
            known = ", ".join(session.scalars(select(Source.name).order_by(Source.name)))
            raise NotFound(
                "source", name, f"known: {known}" if known else "add one: framesift source add"
            )
        return source


def source_to_change(session: Session, source: Source, expected: ExpectedVersion | None) -> Source:
    """A source's record as it is now, inside the transaction that changes it.

    Raises:
        NotFound: It was removed meanwhile.
    """

    def find() -> Source:
        record = session.get(Source, source.id)
        if record is None:
            raise NotFound("source", source.name, "it was removed meanwhile")
        return record

    return to_change("source", source.name, expected, find)


def recorded_sources(records: RecordStore) -> list[Source]:
    """Every source, by name."""
    with records.reading() as session:
        return list(session.scalars(select(Source).order_by(Source.name)))
