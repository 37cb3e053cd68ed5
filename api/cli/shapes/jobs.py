"""Jobs: api.services.jobs.service and framesift.jobs."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from api.cli.shapes.record import Record


class Models(Protocol):
    """See api.services.jobs.models.Models."""

    def list(self) -> Iterable[Record]: ...

    def get(self, name: str) -> Record: ...

    def improve(
        self,
        name: str,
        *,
        frames: int = 100,
        label: int = 0,
        per_scene: int | None = None,
        min_gap_s: float | None = None,
        seed: int = 0,
        at: int | None = None,
    ) -> Record: ...


class Jobs(Protocol):
    """See api.services.jobs.service.Jobs."""

    def list(self) -> Iterable[Record]: ...

    def get(self, name: str) -> Record: ...

    def compare(self, jobs: Any) -> Record: ...

    def usage(self, by: Any = "user") -> Iterable[Record]: ...

    def submit(self, order: Any) -> Record: ...

    def dry_run(self, kind: str, **options: Any) -> Record: ...

    def timeline(self, name: str) -> Record: ...

    def cancel(self, name: str) -> Record: ...

    def resume(
        self, name: str, *, workers: int | None = None, bad_frames: str | None = None
    ) -> Record: ...

    def wait(self, name: str, *, progress: Callable[[Record], object]) -> Record: ...

    def log_sizes(self, name: str) -> Record: ...

    def log_part(self, name: str, log: str, offset: int) -> Iterator[bytes]: ...

    def remove(self, name: str) -> None: ...

    def log_chunks(self, name: str) -> Iterator[bytes]: ...
