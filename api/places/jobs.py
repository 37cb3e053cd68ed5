"""Jobs, as JSON: see bodies.of_job."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from api import bodies
from api.places import chosen
from api.workspace import Workspace
from catalog.tables import Job
from pipeline.run import (
    TrainSettings,
    cancel,
    refresh,
    submit_training,
    submit_validation,
    wait,
)

if TYPE_CHECKING:  # it imports httpx, which commands on a home do without
    from framesift import Client

Body = Mapping[str, Any]


@dataclass(frozen=True)
class ValidateSettings:
    """How a model is validated.

    Attributes:
        workers: Shards, each a process.
        batch_size: Frames at once.
        split: Which one.
    """

    workers: int
    batch_size: int
    split: str


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

    def follow(self, name: str, show: Callable[[Body], None]) -> Body:
        """Wait until one has ended, and show how it stands meanwhile.

        Raises:
            JobFailed: It ended otherwise than done.
        """


def jobs() -> Jobs:
    """Of the chosen place."""
    if chosen.server() is None:
        return HomeJobs(chosen.home())
    return ServerJobs(chosen.client())


@dataclass(frozen=True)
class HomeJobs:
    """A home."""

    workspace: Workspace

    def train(self, dataset: str, settings: TrainSettings, name: str | None, backend: str) -> Body:
        """Start a training."""
        records = self.workspace.records
        job = submit_training(
            records,
            self.workspace.jobs,
            records.dataset(dataset),
            settings,
            name=name,
            backend_name=backend,
        )
        return bodies.of_job(job)

    def validate(
        self, model: str, dataset: str, settings: ValidateSettings, name: str | None, backend: str
    ) -> Body:
        """Start a validation."""
        records = self.workspace.records
        job = submit_validation(
            records,
            self.workspace.jobs,
            model,
            records.dataset(dataset),
            **asdict(settings),
            name=name,
            backend_name=backend,
        )
        return bodies.of_job(job)

    def listed(self) -> Sequence[Body]:
        """Every job."""
        records = self.workspace.records
        return [bodies.of_job(refresh(records, job)) for job in records.jobs()]

    def found(self, name: str) -> Body:
        """One."""
        return bodies.of_job(refresh(self.workspace.records, self._job(name)))

    def logs(self, name: str) -> Iterator[bytes]:
        """What its commands printed."""
        from api.job_files import joined_logs  # it imports fastapi

        _, chunks = joined_logs(Path(self._job(name).paths["logs"]), None, 0)
        return chunks

    def cancel(self, name: str) -> Body:
        """Ask one to end."""
        return bodies.of_job(cancel(self.workspace.records, self._job(name)))

    def follow(self, name: str, show: Callable[[Body], None]) -> Body:
        """Wait for one."""
        ended = wait(self.workspace.records, self._job(name), lambda job: show(bodies.of_job(job)))
        return bodies.of_job(ended)

    def _job(self, name: str) -> Job:
        return self.workspace.records.job(name)


@dataclass(frozen=True)
class ServerJobs:
    """A server."""

    server: "Client"

    def train(self, dataset: str, settings: TrainSettings, name: str | None, backend: str) -> Body:
        """Start a training."""
        options = asdict(settings) | {"name": name, "backend": backend}
        return self.server.jobs.train(dataset, **options).document

    def validate(
        self, model: str, dataset: str, settings: ValidateSettings, name: str | None, backend: str
    ) -> Body:
        """Start a validation."""
        options = asdict(settings) | {"name": name, "backend": backend}
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

    def follow(self, name: str, show: Callable[[Body], None]) -> Body:
        """Wait for one."""
        return self.server.jobs.get(name).wait(progress=show).document
