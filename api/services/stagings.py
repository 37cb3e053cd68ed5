"""Stagings, which bring datasets' files near the jobs: what can be done with them."""

from collections.abc import Callable
from pathlib import Path

from api.schemas.jobs import JobBody
from api.schemas.stagings import Staged, StagingBody
from api.workspace import Workspace
from catalog.records.datasets import recorded_dataset, whole_dataset
from catalog.records.stagings import recorded_staging, recorded_stagings
from pipeline.jobs.command_job import submit_command
from pipeline.staging.fetch import FailedFile
from pipeline.staging.progress import Progress
from pipeline.staging.stage import stage_dataset


class Stagings:
    """Stagings of a home's datasets."""

    def __init__(self, workspace: Workspace) -> None:
        """Those that the workspace's caller may see."""
        self._workspace = workspace

    def list(
        self, *, dataset: str | None = None, before: int | None = None, limit: int | None = None
    ) -> list[StagingBody]:
        """Stagings that are done, newest first.

        Args:
            dataset: Only of this NAME, or NAME@VERSION.
            before: Only those whose number is lower.
            limit: At most this many.

        Raises:
            NotFound: There is no such dataset.
        """
        records = self._workspace.records
        dataset_id = None if dataset is None else recorded_dataset(records, dataset).id
        stagings = recorded_stagings(records, dataset_id=dataset_id, before=before, limit=limit)
        return [StagingBody.of(*staging, self._workspace.place) for staging in stagings]

    def get(self, number: int) -> StagingBody:
        """A staging.

        Raises:
            NotFound: There is none of that number.
        """
        return StagingBody.of(
            *recorded_staging(self._workspace.records, number), self._workspace.place
        )

    def begin(self, dataset: str, *, workers: int = 4) -> JobBody:
        """Fetch a dataset's images and labels into the home's cache; the job that does it.

        Args:
            dataset: NAME, or NAME@VERSION.
            workers: Files fetched at once.

        Raises:
            NotFound: There is no such dataset.
            NotAllowed: The caller may not see all of its frames.
            StorageError: The job cannot be started.
        """
        whole = whole_dataset(self._workspace.records, dataset)
        job = submit_command(
            self._workspace.records,
            self._workspace.job_queue,
            "stage",
            f"stage-{whole.name}",
            ("stage", "--json", "--workers", str(workers), "--", f"{whole.name}@{whole.version}"),
            environment=self._workspace.variables,
            dataset=whole,
            settings={"workers": workers},
        )
        return JobBody.of(job, self._workspace.place)

    def run(
        self,
        dataset: str,
        *,
        cache: Path | None,
        workers: int,
        progress: Callable[[Progress], None],
        failed: Callable[[FailedFile], None],
    ) -> Staged:
        """Fetch a dataset's images and labels in this process.

        Args:
            dataset: NAME, or NAME@VERSION.
            cache: Folder to fetch into; the home's cache when None.
            workers: Files fetched at once.
            progress: Told whenever a file has come.
            failed: Told of each file that cannot be had; the others go on.

        Raises:
            NotFound: There is no such dataset.
            StorageError: A file cannot be had, or the cache cannot be written.
        """
        record = recorded_dataset(self._workspace.records, dataset)
        staging = stage_dataset(
            self._workspace.records,
            record,
            (cache or self._workspace.cache).expanduser().absolute(),
            workers=workers,
            indexes=self._workspace.indexes,
            progress=progress,
            failed=failed,
        )
        return Staged(
            dataset=record.name,
            version=record.version,
            cache=staging.cache,
            manifest=staging.manifest,
            files=staging.files,
            files_copied=staging.files_copied,
            bytes=staging.bytes,
            bytes_copied=staging.bytes_copied,
        )
