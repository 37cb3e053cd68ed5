"""A source as it is recorded: its files, and the data set that it is a part of."""

from pathlib import Path
from typing import TYPE_CHECKING

from catalog.records.sources import recorded_sources
from ingest.sources.schemes import open_source
from ingest.sources.source_files import SourceFiles
from ingest.sources.source_options import SourceOptions

if TYPE_CHECKING:  # imported where it is used: short commands do without
    from catalog.records.store import RecordStore
    from catalog.records.tables import Source


def open_recorded(source: "Source", index_folder: Path | None = None) -> SourceFiles:
    """The files of a recorded source; see open_source for what it raises."""
    return open_source(source.uri, SourceOptions.from_json(source.options), index_folder)


def data_set_of(source: "Source") -> str:
    """Name of the data set that a source is a part of: its own, unless another was given."""
    return SourceOptions.from_json(source.options).part_of or source.name


def other_sources_of_data_set(records: "RecordStore", source: "Source") -> "list[Source]":
    """The other sources of a source's data set, by name."""
    name = data_set_of(source)
    return [
        other
        for other in recorded_sources(records)
        if other.id != source.id and data_set_of(other) == name
    ]
