"""Tags read from the files of frames, as JSON."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from api.places import chosen
from api.places.long_work import extracted
from api.workspace import Workspace
from catalog.errors import InvalidInput
from catalog.extractions import problems
from ingest.extractors.registry import extractor_in_file, extractor_named, known_extractors
from ingest.extractors.run import ExtractCounts, extraction_of, run_extractor
from ingest.sources import open_recorded

if TYPE_CHECKING:  # it imports httpx, which commands on a home do without
    from framesift import Client

Body = Mapping[str, Any]

Show = Callable[[str, ExtractCounts | None], None]
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
    if chosen.server() is None:
        return HomeExtractions(chosen.home())
    return ServerExtractions(chosen.client())


@dataclass(frozen=True)
class HomeExtractions:
    """A home."""

    workspace: Workspace

    def run(self, wanted: Wanted, show: Show) -> Iterator[Body]:
        """Read here."""
        workspace = self.workspace
        source = workspace.records.source(wanted.source)
        found = [extractor_named(name) for name in wanted.names]
        found += [extractor_in_file(place) for place in wanted.own]
        _some(found)
        for extractor in found:
            body = {"source": wanted.source, "family": extractor.family}
            if not wanted.errors:
                counts = run_extractor(
                    workspace.catalog,
                    source,
                    extractor,
                    files=open_recorded(source, workspace.indexes),
                    full=wanted.full,
                    workers=wanted.workers,
                    progress=partial(show, extractor.family),
                )
                body |= asdict(counts)
            bad = problems(workspace.catalog, extraction_of(source, extractor))
            yield {**body, "problems": [asdict(problem) for problem in bad]}


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
        _some(wanted.names)
        body = {
            "source": wanted.source,
            "extractors": list(wanted.names),
            "full": wanted.full,
            "workers": wanted.workers,
            "errors": wanted.errors,
        }
        yield from extracted(self.server, body, lambda job: show(str(job["state"]), None))


def _some(extractors: Sequence[object]) -> None:
    if not extractors:
        known = ", ".join(sorted(known_extractors()))
        raise InvalidInput(f"no extractor given: known are {known}; or --extractor FILE.py:CLASS")
