"""Datasets, as JSON: see bodies.of_dataset."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from pydantic import BaseModel

from api.cli import chosen
from api.schemas.datasets import NewDataset, NewExtension, NewSplit
from catalog.errors import StorageError
from pipeline.datasets.export_formats import ExportFormat

if TYPE_CHECKING:  # it imports httpx, which commands on a home do without
    from framesift import Client

Body = Mapping[str, Any]

_MOST_FRAMES = 1_000_000
"""Frames of each kind that a server lists of a difference."""


@dataclass(frozen=True)
class Export:
    """What of a dataset is written, and how; see pipeline.datasets.export."""

    name: str
    format: ExportFormat
    split: str | None
    with_labels: bool


class Datasets(Protocol):
    """Who has datasets."""

    def create(self, wanted: NewDataset, at: int | None) -> Body:
        """Choose frames, of a snapshot or the newest, and save them."""

    def divide(self, name: str, wanted: NewSplit) -> Body:
        """Divide one's frames anew, as a new version."""

    def extend(self, name: str, wanted: NewExtension, at: int | None) -> Body:
        """Add frames to one, as a new version."""

    def rebuild(self, name: str) -> Body:
        """Make one's manifest again, proven equal by its id."""

    def difference(self, before: str, after: str) -> Body:
        """What changed between two: pipeline.datasets.diff.diff_to_json."""

    def listed(self) -> Sequence[Body]:
        """Every version of every dataset."""

    def found(self, name: str) -> Body:
        """One, by NAME or NAME@VERSION."""

    def text(self, wanted: Export) -> Iterator[str]:
        """One as text, for other programs."""

    def write(self, wanted: Export, out: Path) -> None:
        """One as a file or folder, for other programs."""


def datasets() -> Datasets:
    """Of the chosen place."""
    if chosen.server() is not None:
        return ServerDatasets(chosen.client())
    from api.places.home.datasets import HomeDatasets

    return HomeDatasets(chosen.home())


@dataclass(frozen=True)
class ServerDatasets:
    """A server."""

    server: "Client"

    def create(self, wanted: NewDataset, at: int | None) -> Body:
        """Choose frames and save them."""
        body = _plain(wanted)
        if wanted.method is not None:  # which one it is, is a default of its class
            body["method"]["method"] = wanted.method.method
        return self._made("/v1/datasets", body, at)

    def divide(self, name: str, wanted: NewSplit) -> Body:
        """Divide one anew."""
        return self._made(f"{_path(name)}/splits", _plain(wanted))

    def extend(self, name: str, wanted: NewExtension, at: int | None) -> Body:
        """Add frames to one."""
        return self._made(f"{_path(name)}/extensions", _plain(wanted), at)

    def rebuild(self, name: str) -> Body:
        """Make one's manifest again."""
        return self.server.call("POST", f"{_path(name)}/rebuild")

    def difference(self, before: str, after: str) -> Body:
        """What changed."""
        asked = {"other": after, "limit": _MOST_FRAMES}
        return self.server.call("GET", f"{_path(before)}/diff", asked=asked)

    def listed(self) -> Sequence[Body]:
        """Every version."""
        return [found.document for found in self.server.datasets.list()]

    def found(self, name: str) -> Body:
        """One."""
        return self.server.call("GET", _path(name))

    def text(self, wanted: Export) -> Iterator[str]:
        """One as text."""
        found = self.server.datasets.get(wanted.name)
        rest = b""
        for chunk in found.exported(
            wanted.format, split=wanted.split, with_labels=wanted.with_labels
        ):
            whole, newline, rest = (rest + chunk).rpartition(b"\n")
            yield (whole + newline).decode("utf-8")
        yield rest.decode("utf-8")

    def write(self, wanted: Export, out: Path) -> None:
        """One as a file or folder."""
        found = self.server.datasets.get(wanted.name)
        try:
            found.export(out, wanted.format, split=wanted.split, with_labels=wanted.with_labels)
        except OSError as error:
            reason = error.strerror or error
            raise StorageError(f"{out}: cannot be written: {reason}", str(out)) from error

    def _made(self, path: str, body: dict[str, Any], at: int | None = None) -> Body:
        return self.server.call("POST", path, body, asked={"at": at}, creates=True)


def _plain(wanted: BaseModel) -> dict[str, Any]:
    """What differs from the defaults: a server may be older than what has one now."""
    return wanted.model_dump(mode="json", exclude_defaults=True)


def _path(name: str) -> str:
    return f"/v1/datasets/{quote(name, safe='@')}"
