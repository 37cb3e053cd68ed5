"""Jobs: api.services.jobs.service and framesift.jobs."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from api.cli.shapes.record import Record


class Jobs(Protocol):
    """See api.services.jobs.service.Jobs."""

    def list(self) -> Iterable[Record]: ...

    def get(self, name: str) -> Record: ...

    def train(self, dataset: str, **options: Any) -> Record: ...

    def validate(
        self,
        model: str,
        dataset: str,
        *,
        workers: int = 2,
        split: str | None = None,
        trust_model: bool = False,
        name: str | None = None,
        backend: str = "local",
    ) -> Record: ...

    def cancel(self, name: str) -> Record: ...

    def resume(self, name: str) -> Record: ...

    def wait(self, name: str, *, progress: Callable[[Record], object]) -> Record: ...

    def log_chunks(self, name: str) -> Iterator[bytes]: ...
