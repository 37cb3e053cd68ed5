"""Jobs, as JSON: see bodies.of_job."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from api.cli import chosen
from catalog.errors import InvalidInput
from pipeline.jobs.train_settings import TrainSettings

if TYPE_CHECKING:  # it imports httpx, which commands on a home do without
    from framesift import Client

Body = Mapping[str, Any]


@dataclass(frozen=True)
class ValidateSettings:
    """How a model is validated.

    Attributes:
        workers: Shards, each a process.
        split: Which one; None for the usual one.
        trust_model: Whether a foreign model may run what its author put into it.
    """

    workers: int
    split: str | None
    trust_model: bool = False


class Jobs(Protocol):
    """Who runs jobs."""

    def train(self, dataset: str, settings: TrainSettings, name: str | None, backend: str) -> Body:
        """Start a training."""

    def validate(
        self, model: str, dataset: str, settings: ValidateSettings, name: str | None, backend: str
    ) -> Body:
        """Start a validation."""

    def listed(self) -> Sequence[Body]:
        """Every job, newest first."""

    def found(self, name: str) -> Body:
        """One, as it stands."""

    def logs(self, name: str) -> Iterator[bytes]:
        """What one's commands printed, each below a heading."""

    def cancel(self, name: str) -> Body:
        """Ask one to end."""

    def resume(self, name: str) -> Body:
        """Start the next attempt of one that failed or was cancelled."""

    def follow(self, name: str, show: Callable[[Body], None]) -> Body:
        """Wait until one has ended, and show how it stands meanwhile.

        Raises:
            JobFailed: It ended otherwise than done.
        """


def jobs() -> Jobs:
    """Of the chosen place."""
    if chosen.server() is not None:
        return ServerJobs(chosen.client())
    from api.places.home.jobs import HomeJobs

    return HomeJobs(chosen.home())


@dataclass(frozen=True)
class ServerJobs:
    """A server."""

    server: "Client"

    def train(self, dataset: str, settings: TrainSettings, name: str | None, backend: str) -> Body:
        """Start a training."""
        return self.server.jobs.train(dataset, **_given(settings, name, backend)).document

    def validate(
        self, model: str, dataset: str, settings: ValidateSettings, name: str | None, backend: str
    ) -> Body:
        """Start a validation."""
        if settings.trust_model:
            raise InvalidInput(
                "--trust-model: a server loads no foreign models; validate it where it lies, on a "
                "home of that machine"
            )
        options = _given(settings, name, backend)
        del options["trust_model"]
        return self.server.jobs.validate(model, dataset, **options).document

    def listed(self) -> Sequence[Body]:
        """Every job."""
        return [job.document for job in self.server.jobs.list()]

    def found(self, name: str) -> Body:
        """One."""
        return self.server.jobs.get(name).document

    def logs(self, name: str) -> Iterator[bytes]:
        """What its commands printed."""
        return iter([self.server.jobs.get(name).logs().encode()])

    def cancel(self, name: str) -> Body:
        """Ask one to end."""
        return self.server.jobs.get(name).cancel().document

    def resume(self, name: str) -> Body:
        """Start the next attempt of one."""
        return self.server.jobs.get(name).resume().document

    def follow(self, name: str, show: Callable[[Body], None]) -> Body:
        """Wait for one."""
        return self.server.jobs.get(name).wait(progress=show).document


def _given(
    settings: TrainSettings | ValidateSettings, name: str | None, backend: str
) -> dict[str, Any]:
    """What was given, and nothing that was left open: an older server may not know its name."""
    options = asdict(settings) | {"name": name, "backend": backend}
    return {key: value for key, value in options.items() if value is not None}
