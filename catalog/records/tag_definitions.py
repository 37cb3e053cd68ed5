"""Class tags and the names of their classes."""

from typing import TYPE_CHECKING

from catalog.records.reading import Records

if TYPE_CHECKING:  # reading does without SQLAlchemy
    from catalog.records.store import RecordStore


def recorded_class_names(records: Records) -> dict[str, str]:
    """Class name of each class tag, in class order."""
    return dict(
        records.rows(
            "SELECT tag, title FROM tag_definitions WHERE family = 'class_pixels' ORDER BY position"
        )
    )


def define_class_tags(records: "RecordStore", class_names: dict[str, str]) -> None:
    """Keep the class name of each class tag; known tags keep their place."""
    from sqlalchemy import select

    from catalog.records.tables import TagDefinition

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
