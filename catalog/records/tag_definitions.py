"""Class tags and the names of their classes."""

from sqlalchemy import select

from catalog.records.store import RecordStore
from catalog.records.tables import TagDefinition


def recorded_class_names(records: RecordStore) -> dict[str, str]:
    """Class name of each class tag, in class order."""
    with records.reading() as session:
        rows = session.execute(
            select(TagDefinition.tag, TagDefinition.title)
            .where(TagDefinition.family == "class_pixels")
            .order_by(TagDefinition.position)
        )
        return {row.tag: row.title for row in rows}


def define_class_tags(records: RecordStore, class_names: dict[str, str]) -> None:
    """Keep the class name of each class tag; known tags keep their place."""
    with records.session() as session:
        known = {row.tag: row for row in session.scalars(select(TagDefinition))}
        position = max((row.position for row in known.values()), default=-1)
        for tag, title in class_names.items():
            if tag in known:
                known[tag].title = title
                continue
            position += 1
            session.add(
                TagDefinition(tag=tag, family="class_pixels", title=title, position=position)
            )
