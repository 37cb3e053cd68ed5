"""Tags, as JSON: see TagBody and ImportBody in api.schemas.answers, families and maps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from api.places import chosen
from catalog.errors import InvalidInput, StorageError
from ingest.imports.options import LATITUDE, LONGITUDE, Key

if TYPE_CHECKING:
    import pyarrow as pa

    from framesift import Client

Body = Mapping[str, Any]

_COLUMNS = ("line", "key", "kind", "reason")


@dataclass(frozen=True)
class NewTag:
    """A tag to be added."""

    tag: str
    type: str
    kind: str
    values: Sequence[str]
    family: str


@dataclass(frozen=True)
class Table:
    """A table of values to be imported, as ingest.imports.tag_import.import_tags takes it."""

    file: Path
    family: str
    key: Key | None
    key_column: str | None
    types: Sequence[str]
    prefix: str
    datasource: str | None


@dataclass(frozen=True)
class Map:
    """A map to be joined, as ingest.imports.map_join.import_map takes it."""

    file: Path
    family: str
    within_m: float
    tag: str | None = None
    latitude: str = LATITUDE
    longitude: str = LONGITUDE


class Tags(Protocol):
    """Who has tags."""

    def listed(self, at: int | None) -> Sequence[Body]:
        """Every tag, of a snapshot or the newest."""

    def add(self, wanted: NewTag) -> Body:
        """Add one: ``tag``, ``kind`` and ``values``."""

    def set(self, tag: str, kind: str, values: Sequence[str]) -> Body:
        """Give one another kind or other values: ``tag``, ``kind`` and ``values``."""

    def import_table(self, table: Table) -> "tuple[Body, pa.Table]":
        """Import values: what became of the rows, and those that were not imported."""

    def import_map(self, wanted: Map) -> Body:
        """Tag frames near a map's features: ``features``, ``frames``, ``near``, ``columns``."""

    def remove(self, tag: str) -> Body:
        """Remove one: ``tag`` and ``files``."""

    def families(self) -> Sequence[Body]:
        """Every family: ``name``, ``columns``, ``rows``."""

    def drop(self, family: str) -> Body:
        """Remove a family: ``family`` and ``rows``."""


def tags() -> Tags:
    """Of the chosen place."""
    if chosen.server() is not None:
        return ServerTags(chosen.client())
    from api.places.home.tags import HomeTags

    return HomeTags(chosen.home())


@dataclass(frozen=True)
class ServerTags:
    """A server."""

    server: "Client"

    def listed(self, at: int | None) -> Sequence[Body]:
        """Every tag."""
        return list(self.server.tags.list(at=at))

    def add(self, wanted: NewTag) -> Body:
        """Add one."""
        found = self.server.tags.add(
            wanted.tag,
            wanted.type,
            kind=wanted.kind,
            values=wanted.values,
            family=wanted.family,
        )
        return {name: found[name] for name in ("tag", "kind", "values")}

    def set(self, tag: str, kind: str, values: Sequence[str]) -> Body:
        """Give one another kind or other values."""
        found = self.server.tags.set(tag, kind, values=values)
        return {name: found[name] for name in ("tag", "kind", "values")}

    def import_table(self, table: Table) -> "tuple[Body, pa.Table]":
        """Import values; of the rows that were not imported the first thousand are told."""
        import pyarrow as pa

        given = {
            "key": table.key,
            "key_column": table.key_column,
            "type": list(table.types) or None,
            "prefix": table.prefix,
            "datasource": table.datasource,
        }
        options = {name: value for name, value in given.items() if value is not None}
        try:
            body = self.server.tags.import_values(table.file, table.family, **options)
        except OSError as error:
            reason = error.strerror or error
            file = str(table.file)
            raise StorageError(f"{file}: cannot be read: {reason}", file) from error
        except ValueError as error:
            raise InvalidInput(str(error)) from error
        problems = body["problems"]
        names = list(problems[0]) if problems else list(_COLUMNS)
        columns = {name: [row[name] for row in problems] for name in names}
        return body, pa.table(columns)

    def import_map(self, wanted: Map) -> Body:
        """Tag frames near a map's features; the file is read here."""
        from ingest.imports.map_file import read_features

        features = read_features(wanted.file)
        return self.server.tags.import_map(
            features.tolist(),
            wanted.family,
            wanted.within_m,
            tag=wanted.tag,
            latitude=wanted.latitude,
            longitude=wanted.longitude,
        )

    def remove(self, tag: str) -> Body:
        """Remove one."""
        return self.server.tags.remove(tag)

    def families(self) -> Sequence[Body]:
        """Every family."""
        return list(self.server.tags.families())

    def drop(self, family: str) -> Body:
        """Remove a family."""
        return self.server.tags.drop(family)
