"""Sources, and what there is in all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from api.cli import chosen
from api.schemas.wanted_source import NewSource, SourceChange

if TYPE_CHECKING:  # it imports httpx, which commands on a home do without
    from framesift import Client

Body = Mapping[str, Any]


class Sources(Protocol):
    """Who has sources, as JSON: see bodies.of_source."""

    def add(self, wanted: NewSource) -> Body:
        """Add one."""

    def listed(self) -> Sequence[Body]:
        """Every one."""

    def contents(self, name: str) -> Body:
        """What hangs on one: see answers.SourceContents."""

    def change(self, name: str, wanted: SourceChange) -> Body:
        """Change one: see api.services.new_source.change_source."""

    def remove(self, name: str) -> Body:
        """Remove one, with its files' rows: ``name`` and ``files_removed``."""

    def info(self) -> Body:
        """Where things are and how much there is."""


def sources(*, makes: bool = False) -> Sources:
    """Of the chosen place; a home is made where there is none if it ``makes`` one."""
    if chosen.server() is not None:
        return ServerSources(chosen.client())
    from api.places.home.sources import HomeSources

    return HomeSources(chosen.home(makes=makes))


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

    def contents(self, name: str) -> Body:
        """What hangs on one."""
        return self.server.sources.get(name).contents()

    def change(self, name: str, wanted: SourceChange) -> Body:
        """Change one; a new place is one that the server sees."""
        body = wanted.model_dump(mode="json", exclude_defaults=True)
        return self.server.call("PATCH", f"/v1/sources/{quote(name, safe='')}", body)

    def remove(self, name: str) -> Body:
        """Remove one."""
        return self.server.call("DELETE", f"/v1/sources/{quote(name, safe='')}")

    def info(self) -> Body:
        """What there is."""
        return self.server.call("GET", "/v1/info")
