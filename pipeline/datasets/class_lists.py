"""The classes of datasets: those of their sources' class lists, in the catalog's order.

The order of a source's own file means nothing, and neither do the classes of other sources: class
ids are positions in the catalog's order, which only ever grows, so that datasets and models of two
sources with the same classes have the same ids.
"""

from collections.abc import Iterable, Mapping

from catalog.errors import InvalidInput
from catalog.records.sources import recorded_sources
from catalog.records.store import RecordStore
from catalog.records.tables import Source
from catalog.records.tag_definitions import recorded_class_names
from catalog.text.quoting import literal
from ingest.labels.palette import Palette, tag_name
from pipeline.manifest import Manifest
from query.question.question import Question


def class_list_of(records: RecordStore, sources: Iterable[Source]) -> dict[str, str]:
    """The class list that sources share, its classes in the catalog's order.

    Raises:
        InvalidInput: Two of them have different ones.
    """
    first, *remaining = sources
    class_list = first.class_list
    for other in remaining:
        if not are_alike(class_list, other.class_list):
            raise InvalidInput(
                f"sources {first.name} and {other.name} have different class lists; make one "
                f"dataset of each, such as --where \"datasource = '{first.datasource}'\""
            )
    palette = Palette.from_class_list(class_list)
    order = {tag: position for position, tag in enumerate(recorded_class_names(records))}
    tags = (palette.tags[class_id] for class_id in palette.class_ids)
    return {
        colour: name
        for (colour, name), _ in sorted(
            zip(class_list.items(), tags, strict=True),
            key=lambda entry: order.get(entry[1], len(order)),
        )
    }


def of_alike_sources(records: RecordStore, class_list: Mapping[str, str]) -> Question:
    """The frames of the sources whose labels mean what a dataset's class list says."""
    unlike = [
        f"NOT (cluster = {literal(source.cluster)} AND datasource = {literal(source.datasource)})"
        for source in recorded_sources(records)
        if source.class_list and not are_alike(class_list, source.class_list)
    ]
    return Question(where=" AND ".join(unlike) or None)


def tags_of(manifest: Manifest) -> tuple[str, ...]:
    """Class tag of each entry of a manifest's class_pixels."""
    return tuple(map(tag_name, manifest.header.classes))


def are_alike(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Return whether labels count the same with both class lists, whatever their order."""
    return one == other or (
        Palette.from_class_list(one).tag_of_colour == Palette.from_class_list(other).tag_of_colour
    )
