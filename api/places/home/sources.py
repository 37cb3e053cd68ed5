"""Sources of a home, and what there is in all, for which the records' database is not imported."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from api.places.sources import Body
from api.schemas import bodies
from api.schemas.wanted_source import NewSource, SourceChange
from api.services.catalog_info import info_of
from api.workspace import Workspace
from ingest.sources.source_options import SourceOptions


@dataclass(frozen=True)
class HomeSources:
    """A home, whose user may name any place."""

    workspace: Workspace

    def add(self, wanted: NewSource) -> Body:
        """Add one; a path may be relative."""
        from api.services.new_source import keep_source, options_of  # with the records' database

        source = keep_source(self.workspace, wanted, _absolute(wanted.uri), options_of(wanted))
        _ = self.workspace.catalog  # a home is made whole
        return bodies.of_source(source)

    def listed(self) -> Sequence[Body]:
        """Every one."""
        return [bodies.of_source(source) for source in self.workspace.records.sources()]

    def contents(self, name: str) -> Body:
        """What hangs on one."""
        from api.services.source_contents import contents_of

        return contents_of(self.workspace, name)

    def change(self, name: str, wanted: SourceChange) -> Body:
        """Change one; a path may be relative."""
        from api.services.new_source import keep_change

        place = None
        if wanted.uri is not None:
            kept = SourceOptions.from_json(self.workspace.records.source(name).options)
            place = _absolute(wanted.uri), replace(kept, within="")
        return keep_change(self.workspace, name, wanted, place)

    def remove(self, name: str) -> Body:
        """Remove one."""
        from ingest.scan.change_source import remove_source

        removed = remove_source(self.workspace.catalog, self.workspace.records, name)
        return {"name": name, "files_removed": removed}

    def info(self) -> Body:
        """What there is."""
        return info_of(self.workspace)


def _absolute(uri: str) -> str:
    return uri if "://" in uri else str(Path(uri).expanduser().absolute())
