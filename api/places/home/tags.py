"""Tags of a home."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa

from api.places.tags import Body, Map, NewTag, Table
from api.schemas import bodies
from api.workspace import Workspace
from catalog.lake.views import tag_columns
from catalog.tags import families
from catalog.tags import tags as catalog_tags
from catalog.tags.tag_kinds import kinds
from catalog.tags.tag_rules import DEFAULT
from ingest.imports.map_join import import_map
from ingest.imports.tag_import import import_tags, parse_types


@dataclass(frozen=True)
class HomeTags:
    """A home."""

    workspace: Workspace

    def listed(self, at: int | None) -> Sequence[Body]:
        """Every tag."""
        names = self.workspace.class_names()
        with self.workspace.catalog.reading(at) as cursor:
            found, given = tag_columns(cursor), kinds(cursor)
        listed = [
            {
                "tag": column.tag,
                "family": column.table,
                "type": column.type.lower(),
                "kind": given.get(column.tag, DEFAULT).kind,
                "values": list(given.get(column.tag, DEFAULT).allowed),
                "title": names.get(column.tag, ""),
            }
            for column in found
        ]
        return sorted(listed, key=lambda tag: str(tag["tag"]))

    def add(self, wanted: NewTag) -> Body:
        """Add one."""
        kept = catalog_tags.add_tag(
            self.workspace.catalog,
            wanted.tag,
            wanted.type,
            wanted.kind,
            wanted.values,
            wanted.family,
        )
        return {"tag": wanted.tag, "kind": kept.kind, "values": list(kept.allowed)}

    def set(self, tag: str, kind: str, values: Sequence[str]) -> Body:
        """Give one another kind or other values."""
        kept = catalog_tags.set_kind(self.workspace.catalog, tag, kind, values)
        return {"tag": tag, "kind": kept.kind, "values": list(kept.allowed)}

    def import_table(self, table: Table) -> tuple[Body, pa.Table]:
        """Import values."""
        result = import_tags(
            self.workspace.catalog,
            table.file,
            table.family,
            key=table.key,
            key_column=table.key_column,
            types=parse_types(table.types),
            prefix=table.prefix,
            datasource=table.datasource,
        )
        return bodies.of_tag_import(result), result.problems

    def import_map(self, wanted: Map) -> Body:
        """Tag frames near a map's features."""
        done = import_map(
            self.workspace.catalog,
            wanted.file,
            wanted.family,
            wanted.within_m,
            tag=wanted.tag,
            latitude=wanted.latitude,
            longitude=wanted.longitude,
        )
        return asdict(done)

    def remove(self, tag: str) -> Body:
        """Remove one."""
        return {"tag": tag, "files": catalog_tags.drop_tag(self.workspace.catalog, tag)}

    def families(self) -> Sequence[Body]:
        """Every family."""
        return [asdict(family) for family in families.families(self.workspace.catalog)]

    def drop(self, family: str) -> Body:
        """Remove a family."""
        return {"family": family, "rows": families.drop(self.workspace.catalog, family)}
