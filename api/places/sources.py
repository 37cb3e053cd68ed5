"""Sources, and what there is in all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from api import bodies
from api.catalog_info import info_of
from api.new_source import NewSource, keep_source, options_of
from api.places import chosen
from api.workspace import Workspace
from ingest.sources import remove_source

if TYPE_CHECKING:  # it imports httpx, which commands on a home do without
    from framesift import Client

Body = Mapping[str, Any]


class Sources(Protocol):
    """Who has sources, as JSON: see bodies.of_source."""

    def add(self, wanted: NewSource) -> Body:
        """Add one."""

    def listed(self) -> Sequence[Body]:
        """Every one."""

    def remove(self, name: str) -> Body:
        """Remove one, with its files' rows: ``name`` and ``files_removed``."""

    def info(self) -> Body:
        """Where things are and how much there is."""


def sources() -> Sources:
    """Of the chosen place."""
    if chosen.server() is None:
        return HomeSources(chosen.home())
    return ServerSources(chosen.client())


@dataclass(frozen=True)
class HomeSources:
    """A home, whose user may name any place."""

    workspace: Workspace

    def add(self, wanted: NewSource) -> Body:
        """Add one; a path may be relative."""
        uri = wanted.uri
        if "://" not in uri:
            uri = str(Path(uri).expanduser().absolute())
        source = keep_source(self.workspace, wanted, uri, options_of(wanted))
        return bodies.of_source(source)

    def listed(self) -> Sequence[Body]:
        """Every one."""
        return [bodies.of_source(source) for source in self.workspace.records.sources()]

    def remove(self, name: str) -> Body:
        """Remove one."""
        removed = remove_source(self.workspace.catalog, self.workspace.records, name)
        return {"name": name, "files_removed": removed}

    def info(self) -> Body:
        """What there is."""
        return info_of(self.workspace)


@dataclass(frozen=True)
class ServerSources:
    """A server."""

    server: "Client"

    def add(self, wanted: NewSource) -> Body:
        """Add one, at a place that the server sees."""
        body = wanted.model_dump(mode="json", exclude_defaults=True)
        if "secret_key" in body:  # masked, as everywhere but here
            body["secret_key"] = wanted.secret_key.get_secret_value()
        return self.server.call("POST", "/v1/sources", body, creates=True)

    def listed(self) -> Sequence[Body]:
        """Every one."""
        return [source.document for source in self.server.sources.list()]

    def remove(self, name: str) -> Body:
        """Remove one."""
        return self.server.call("DELETE", f"/v1/sources/{quote(name, safe='')}")

    def info(self) -> Body:
        """What there is."""
        return self.server.call("GET", "/v1/info")
