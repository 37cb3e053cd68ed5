"""The cache: api.services.cache and framesift.cache."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from api.cli.shapes.record import Record


class Cache(Protocol):
    """See api.services.cache.Cache."""

    def status(self) -> Record: ...

    def limits(self) -> Record: ...

    def limit(self, **limits: int | None) -> Record: ...

    def pin(self, dataset: str) -> Record: ...

    def unpin(self, dataset: str) -> Record: ...

    def contents(
        self, dataset: str, *, filesets: Sequence[str] = (), missing: bool = False
    ) -> Iterable[Record]: ...

    def evict(self, dataset: str, *, filesets: Sequence[str] = ()) -> Record: ...
