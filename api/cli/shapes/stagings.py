"""Stagings: api.services.stagings and framesift.stagings."""

from collections.abc import Iterable
from typing import Protocol

from api.cli.shapes.record import Record


class Stagings(Protocol):
    """See api.services.stagings.Stagings."""

    def list(self, *, dataset: str | None = None) -> Iterable[Record]: ...

    def plan(self, dataset: str, *, workers: int = 4) -> Record: ...

    def running(self) -> Iterable[Record]: ...

    def cancel(self, name: str) -> Record: ...
