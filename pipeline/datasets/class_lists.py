"""The classes of datasets: those of their sources' class lists, in the catalog's order.

The order of a source's own file means nothing, and neither do the classes of other sources: class
ids are positions in the catalog's order, which only ever grows, so that datasets and models of two
sources with the same classes have the same ids.
"""

from collections.abc import Iterable
from dataclasses import replace

from catalog.errors import InvalidInput
from catalog.records.sources import recorded_sources
from catalog.records.store import RecordStore
from catalog.records.tables import Source
from catalog.records.tag_definitions import recorded_class_names
from catalog.text.quoting import literal
from ingest.labels.class_list import ClassList
from pipeline.manifest import Manifest
from query.question.question import Question


def class_list_of(records: RecordStore, sources: Iterable[Source]) -> ClassList:
    """The class list that sources share, its classes in the catalog's order.

    Raises:
        InvalidInput: Two of them have different ones.
    """
    first, *remaining = sources
    class_list = ClassList.from_json(first.class_list)
    for other in remaining:
        if class_list.meaning != ClassList.from_json(other.class_list).meaning:
            raise InvalidInput(
                f"sources {first.name} and {other.name} have different class lists; make one "
                f"dataset of each, such as --where \"datasource = '{first.datasource}'\""
            )
    order = {tag: position for position, tag in enumerate(recorded_class_names(records))}
    tags = (class_list.tags[class_id] for class_id in class_list.class_ids)
    keys = sorted(
        zip(class_list.keys, tags, strict=True), key=lambda entry: order.get(entry[1], len(order))
    )
    return replace(class_list, keys=tuple(key for key, _ in keys))


def of_alike_sources(records: RecordStore, class_list: ClassList) -> Question:
    """The frames of the sources whose labels mean what a dataset's class list says."""
    unlike = [
        f"NOT (cluster = {literal(source.cluster)} AND datasource = {literal(source.datasource)})"
        for source in recorded_sources(records)
        if source.class_list
        and ClassList.from_json(source.class_list).meaning != class_list.meaning
    ]
    return Question(where=" AND ".join(unlike) or None)


def tags_of(manifest: Manifest) -> tuple[str, ...]:
    """Class tag of each entry of a manifest's class_pixels."""
    return manifest.header.class_list.tags
