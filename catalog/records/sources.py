"""Sources, as they are recorded."""

from typing import TYPE_CHECKING

from catalog.errors import AlreadyExists, InvalidInput, NotFound, known_names
from catalog.records.expected_version import ExpectedVersion, to_change
from catalog.records.kinds import SOURCES
from catalog.records.reading import Records
from catalog.values import PLATFORMS

if TYPE_CHECKING:  # reading does without SQLAlchemy
    from sqlalchemy.orm import Session

    from catalog.records.store import RecordStore
    from catalog.records.tables import Source


def add_source(records: "RecordStore", source: "Source") -> "Source":
    """Keep a new source.

    Raises:
        InvalidInput: Unknown platform.
        AlreadyExists: The name, or its cluster and datasource, are taken.
    """
    from sqlalchemy import select

    from catalog.records.tables import Source

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


def recorded_source(records: Records, name: str) -> "Source":
    """The source of that name.

    Raises:
        NotFound: There is none.
    """
    rows = records.select(SOURCES, "name = :name", name=name)
    if not rows:
        known = [source.name for source in recorded_sources(records)]
        way = "framesift source list and GET /v1/sources"
        raise NotFound(
            "source", name, known_names(known, way) if known else "add one: framesift source add"
        )
    return rows[0]


def source_to_change(
    session: "Session", source: "Source", expected: ExpectedVersion | None
) -> "Source":
    """A source's record as it is now, inside the transaction that changes it.

    Raises:
        NotFound: It was removed meanwhile.
    """
    from catalog.records.tables import Source

    def find() -> Source:
        record = session.get(Source, source.id)
        if record is None:
            raise NotFound("source", source.name, "it was removed meanwhile")
        return record

    return to_change("source", source.name, expected, find)


def recorded_sources(records: Records) -> "list[Source]":
    """Every source, by name."""
    return records.select(SOURCES, order="name")
