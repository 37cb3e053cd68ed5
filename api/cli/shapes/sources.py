"""Sources: api.services.sources.service and framesift.sources."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from api.cli.shapes.record import Record


class Sources(Protocol):
    """See api.services.sources.service.Sources."""

    def list(self) -> Iterable[Record]: ...

    def add(self, name: str, uri: str, **more: Any) -> Record: ...

    def contents(self, name: str) -> Record: ...

    def change(
        self,
        name: str,
        *,
        uri: str | None = None,
        differing: bool = False,
        exclude: Sequence[str] | None = None,
        part_of: str | None = None,
        mount: str | None = None,
        max_mb_per_s: float | None = None,
        max_requests_per_s: float | None = None,
    ) -> Record: ...

    def remove(self, name: str) -> Record: ...
