"""Datasets brought near the jobs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from api.cli import chosen
from api.places.long_work import staged
from catalog.errors import InvalidInput

Show = Callable[[float, float | None, str], None]
"""Told how many files are done, of how many, and a note."""

if TYPE_CHECKING:  # it imports httpx, which commands on a home do without
    from framesift import Client


class Stagings(Protocol):
    """Who stages datasets."""

    def stage(
        self, dataset: str, cache: Path | None, workers: int, show: Show
    ) -> Mapping[str, Any]:
        """Copy one's files into a cache: dataset, version, cache, manifest, files and bytes."""


def stagings() -> Stagings:
    """Of the chosen place."""
    if chosen.server() is not None:
        return ServerStagings(chosen.client())
    from api.places.home.stagings import HomeStagings

    return HomeStagings(chosen.home())


@dataclass(frozen=True)
class ServerStagings:
    """A server."""

    server: "Client"

    def stage(
        self, dataset: str, cache: Path | None, workers: int, show: Show
    ) -> Mapping[str, Any]:
        """Have it copied there; where to, the server knows."""
        if cache is not None:
            raise InvalidInput(
                f"--cache {cache}: a server stages into its own (FRAMESIFT_CACHE there); leave it "
                "out"
            )
        return staged(self.server, dataset, workers, lambda job: show(0, None, str(job["state"])))
