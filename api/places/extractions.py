"""Tags read from the files of frames, as JSON."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from api.cli import chosen
from api.places.long_work import extracted
from catalog.errors import InvalidInput

if TYPE_CHECKING:
    from framesift import Client
    from ingest.extractors.run import ExtractCounts

Body = Mapping[str, Any]

Show = Callable[[str, "ExtractCounts | None"], None]
"""Told the family that is read and its counts; or how a server's job stands, and None."""


@dataclass(frozen=True)
class Wanted:
    """Tags to be read.

    Attributes:
        source: The source.
        names: Extractors by name.
        own: Extractors as FILE.py:CLASS.
        full: Read frames done before, too.
        workers: Frames read at once.
        errors: List the files that were bad, and read nothing.
    """

    source: str
    names: Sequence[str]
    own: Sequence[str]
    full: bool
    workers: int
    errors: bool


class Extractions(Protocol):
    """Who reads files."""

    def run(self, wanted: Wanted, show: Show) -> Iterator[Body]:
        """Of each extractor: ``source``, ``family``, counts, and ``problems`` in full."""


def extractions() -> Extractions:
    """Of the chosen place."""
    if chosen.server() is not None:
        return ServerExtractions(chosen.client())
    from api.places.home.extractions import HomeExtractions

    return HomeExtractions(chosen.home())


@dataclass(frozen=True)
class ServerExtractions:
    """A server, with the extractors that are installed there."""

    server: "Client"

    def run(self, wanted: Wanted, show: Show) -> Iterator[Body]:
        """Have them read there; of the files that were bad the first thousand are told."""
        if wanted.own:
            raise InvalidInput(
                f"--extractor {wanted.own[0]}: a server runs no code of its clients: install it "
                "there, by the entry point framesift.extractors, and give its name"
            )
        need_some(wanted.names)
        body = {
            "source": wanted.source,
            "extractors": list(wanted.names),
            "full": wanted.full,
            "workers": wanted.workers,
            "errors": wanted.errors,
        }
        yield from extracted(self.server, body, lambda job: show(str(job["state"]), None))


def need_some(extractors: Sequence[object]) -> None:
    """Refuse to read nothing.

    Raises:
        InvalidInput: No extractor is given.
    """
    if not extractors:
        from ingest.extractors.registry import known_extractors

        known = ", ".join(sorted(known_extractors()))
        raise InvalidInput(f"no extractor given: known are {known}; or --extractor FILE.py:CLASS")
