"""Locations of the sources of a dataset, and by which layouts they were read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from catalog.records.tables import Source
from pipeline.manifest import ManifestHeader


@dataclass(frozen=True)
class SourceLocations:
    """Locations of sources, by their names."""

    roots: Mapping[str, str]
    """Folder or URI of each."""
    datasources: Mapping[str, str]
    """"cluster:datasource" of each."""
    within: Mapping[str, str]
    """Folder that it must lie below, as pipeline.manifest.ManifestHeader has it."""
    layouts: Mapping[str, Mapping[str, Any]]
    """Layout of each that has one recorded, as pipeline.manifest.ManifestHeader has it."""

    @classmethod
    def of(cls, sources: Iterable[Source]) -> "SourceLocations":
        """The locations of recorded sources, as they are now."""
        listed = list(sources)
        return cls(
            {source.name: _root(source) for source in listed},
            {source.name: f"{source.cluster}:{source.datasource}" for source in listed},
            {source.name: str(source.options.get("within", "")) for source in listed},
            {
                source.name: _without_classes(source.scanned_layout)
                for source in listed
                if source.scanned_layout
            },
        )

    @classmethod
    def in_header(cls, header: ManifestHeader) -> "SourceLocations":
        """The locations that a manifest names."""
        return cls(header.roots, header.datasources, header.within, header.layouts)

    def and_of(self, later: "SourceLocations") -> "SourceLocations":
        """The locations of both; where both have a source, the later one."""
        return SourceLocations(
            {**self.roots, **later.roots},
            {**self.datasources, **later.datasources},
            {**self.within, **later.within},
            {**self.layouts, **later.layouts},
        )


def _without_classes(layout: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in layout.items() if name != "classes"}


def _root(source: Source) -> str:
    """The source's folder; its URI where it is in no folder."""
    parts = urlsplit(source.uri)
    return unquote(parts.path) if parts.scheme == "file" else source.uri
