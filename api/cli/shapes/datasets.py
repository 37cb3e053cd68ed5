"""Datasets: api.services.datasets.service and framesift.datasets."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from api.cli.shapes.record import Record

if TYPE_CHECKING:
    from pipeline.datasets.export_formats import ExportFormat


class Datasets(Protocol):
    """See api.services.datasets.service.Datasets."""

    def create(self, name: str, *, at: int | None = None, **how: Any) -> Record: ...

    def divide(self, name: str, split: str, **how: Any) -> Record: ...

    def extend(self, name: str, *demands: Any, at: int | None = None, **how: Any) -> Record: ...

    def reduce(self, name: str, frames: int, **how: Any) -> Record: ...

    def rebuild(self, name: str) -> Record: ...

    def change(
        self, name: str, *, rename: str | None = None, description: str | None = None
    ) -> Record: ...

    def remove(self, name: str) -> Record: ...

    def diff(self, name: str, other: str, *, limit: int | None = None) -> Mapping[str, Any]: ...

    def list(self) -> Iterable[Record]: ...

    def get(self, name: str) -> Record: ...

    def exported(
        self,
        name: str,
        format: "ExportFormat" = "csv",  # noqa: A002
        *,
        split: str | None = None,
        with_labels: bool = False,
    ) -> Iterator[bytes]: ...

    def export(
        self,
        name: str,
        path: Path,
        format: "ExportFormat" = "csv",  # noqa: A002
        *,
        split: str | None = None,
        with_labels: bool = False,
    ) -> Path: ...
