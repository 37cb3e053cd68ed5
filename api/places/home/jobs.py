"""Jobs of a home."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from api.places.jobs import Body, ValidateSettings
from api.schemas import bodies
from api.workspace import Workspace
from catalog.records.tables import Job
from pipeline.jobs.follow import cancel, refresh, wait
from pipeline.jobs.run import submit_training, submit_validation
from pipeline.jobs.submit import resume
from pipeline.jobs.train_settings import TrainSettings


@dataclass(frozen=True)
class HomeJobs:
    """A home."""

    workspace: Workspace

    def train(self, dataset: str, settings: TrainSettings, name: str | None, backend: str) -> Body:
        """Start a training."""
        records = self.workspace.records
        job = submit_training(
            records,
            self.workspace.job_queue,
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
            self.workspace.job_queue,
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
        from api.services.job_files import joined_logs  # it imports fastapi

        _, chunks = joined_logs(Path(self._job(name).paths["logs"]), None, 0)
        return chunks

    def cancel(self, name: str) -> Body:
        """Ask one to end."""
        return bodies.of_job(cancel(self.workspace.records, self._job(name)))

    def resume(self, name: str) -> Body:
        """Start the next attempt of one."""
        return bodies.of_job(
            resume(self.workspace.records, self.workspace.job_queue, self._job(name))
        )

    def follow(self, name: str, show: Callable[[Body], None]) -> Body:
        """Wait for one."""
        ended = wait(self.workspace.records, self._job(name), lambda job: show(bodies.of_job(job)))
        return bodies.of_job(ended)

    def _job(self, name: str) -> Job:
        return self.workspace.records.job(name)
