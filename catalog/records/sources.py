"""Sources, as they are recorded."""

from sqlalchemy import select

from catalog.errors import AlreadyExists, InvalidInput, NotFound
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


def recorded_sources(records: RecordStore) -> list[Source]:
    """Every source, by name."""
    with records.reading() as session:
        return list(session.scalars(select(Source).order_by(Source.name)))
