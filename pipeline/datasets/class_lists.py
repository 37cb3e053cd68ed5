"""The classes of datasets: those of their sources' class lists, in the catalog's order.

The order of a source's own file means nothing, and neither do the classes of other sources: class
ids are positions in the catalog's order, which only ever grows, so that datasets and models of two
sources with the same classes have the same ids.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from catalog.records.sources import recorded_sources
from catalog.records.store import RecordStore
from catalog.records.tables import Source
from catalog.records.tag_definitions import recorded_class_names
from catalog.text.quoting import literal
from ingest.labels.class_list import ClassList
from ingest.labels.dataset_classes import DatasetClasses
from pipeline.manifest import Manifest
from query.question.question import Question


def classes_of(records: RecordStore, sources: Iterable[Source]) -> DatasetClasses:
    """The classes of sources, those of each class list in the catalog's order.

    Class lists that mean the same are one, the first.

    Raises:
        InvalidInput: They have more than 255 classes, or one name for classes with two tags.
    """
    order = {tag: position for position, tag in enumerate(recorded_class_names(records))}
    lists: list[ClassList] = []
    of_source: dict[str, ClassList] = {}
    for source in sources:
        own = ClassList.from_json(source.class_list)
        same = next((each for each in lists if each.meaning == own.meaning), None)
        if same is None:
            same = _in_order(own, order)
            lists.append(same)
        of_source[source.name] = same
    return DatasetClasses.of_sources(of_source)


def _in_order(class_list: ClassList, order: Mapping[str, int]) -> ClassList:
    tags = (class_list.tags[class_id] for class_id in class_list.class_ids)
    keys = sorted(
        zip(class_list.keys, tags, strict=True), key=lambda entry: order.get(entry[1], len(order))
    )
    return replace(class_list, keys=tuple(key for key, _ in keys))


def of_alike_sources(records: RecordStore, classes: DatasetClasses) -> Question:
    """The frames of the sources whose labels mean what one of a dataset's class lists says."""
    meanings = [class_list.meaning for class_list in classes.lists]
    unlike = [
        f"NOT (cluster = {literal(source.cluster)} AND datasource = {literal(source.datasource)})"
        for source in recorded_sources(records)
        if source.class_list and ClassList.from_json(source.class_list).meaning not in meanings
    ]
    return Question(where=" AND ".join(unlike) or None)


def tags_of(manifest: Manifest) -> tuple[str, ...]:
    """Class tag of each entry of a manifest's class_pixels."""
    return manifest.header.dataset_classes.tags
