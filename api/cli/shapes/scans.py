"""Scans: api.services.scans and framesift.scans."""

from collections.abc import Iterable
from typing import Protocol

from api.cli.shapes.record import Record


class Scans(Protocol):
    """See api.services.scans.Scans."""

    def list(self, *, source: str | None = None, state: str | None = None) -> Iterable[Record]: ...
