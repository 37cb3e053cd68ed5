"""Stagings, which bring datasets' files near the jobs: what can be done with them."""

import builtins
from collections.abc import Callable
from pathlib import Path

from api.schemas.jobs import JobBody
from api.schemas.stagings import PreparedBody, Staged, StagingBody
from api.services.jobs.commands import begin_command
from api.workspace import Workspace
from catalog.errors import BadFile
from catalog.records.datasets import recorded_dataset, whole_dataset
from catalog.records.stagings import recorded_staging, recorded_stagings
from catalog.records.tables import Dataset, Staging
from pipeline.prepared.size import Size
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

    def begin(
        self, dataset: str, *, workers: int = 4, verify: bool = False, prepare: str | None = None
    ) -> JobBody:
        """Fetch a dataset's images and labels into the home's cache; the job that does it.

        Args:
            dataset: NAME, or NAME@VERSION.
            workers: Files fetched at once.
            verify: Read what is in the cache again, and fetch what is damaged.
            prepare: Size to decode the frames at, WIDTHxHEIGHT; None to fetch them only.

        Raises:
            NotFound: There is no such dataset.
            InvalidInput: The size is none.
            NotAllowed: The caller may not see all of its frames.
            StorageError: The job cannot be started.
        """
        prepared = [] if prepare is None else ["--prepare", str(Size.parse(prepare))]
        whole = whole_dataset(self._workspace.records, dataset)
        command = ["stage", "--json", "--workers", str(workers), *(["--verify"] if verify else [])]
        arguments = (*command, *prepared, "--", f"{whole.name}@{whole.version}")
        settings = {
            "workers": workers,
            **({"verify": True} if verify else {}),
            **({"prepare": prepare} if prepare else {}),
        }
        return begin_command(self._workspace, "stage", whole.name, arguments, settings, whole)

    def run(
        self,
        dataset: str,
        *,
        cache: Path | None,
        workers: int,
        progress: Callable[[Progress], None],
        failed: Callable[[FailedFile], None],
        verify: bool = False,
        prepare: str | None = None,
        prepared: Callable[[int, int], None] = lambda _frames, _of: None,
    ) -> Staged:
        """Fetch a dataset's images and labels in this process, and decode them in others.

        Args:
            dataset: NAME, or NAME@VERSION.
            cache: Folder to fetch into; the home's cache when None.
            workers: Files fetched at once.
            progress: Told whenever a file has come.
            failed: Told of each file that cannot be had or decoded; the others go on.
            verify: Read what is in the cache again, and fetch what is damaged.
            prepare: Size to decode the frames at, WIDTHxHEIGHT; None to fetch them only.
            prepared: Told the frames that are decoded, and of how many.

        Raises:
            NotFound: There is no such dataset.
            InvalidInput: The size is none.
            StorageError: A file cannot be had, or the cache cannot be written.
            BadFile: A frame cannot be decoded.
        """
        size = None if prepare is None else Size.parse(prepare)
        record = recorded_dataset(self._workspace.records, dataset)
        damaged: builtins.list[str] = []
        staging = stage_dataset(
            self._workspace.records,
            record,
            (cache or self._workspace.cache).expanduser().absolute(),
            workers=workers,
            indexes=self._workspace.indexes,
            verify=verify,
            damaged=damaged.append,
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
            damaged=damaged,
            prepared=None if size is None else _prepared(record, staging, size, failed, prepared),
        )


def _prepared(
    dataset: Dataset,
    staging: Staging,
    size: Size,
    failed: Callable[[FailedFile], None],
    prepared: Callable[[int, int], None],
) -> PreparedBody:
    from pipeline.prepared.prepare import prepare  # decoding needs NumPy and Pillow

    form = prepare(Path(staging.manifest), size, progress=prepared)
    for bad in form.bad:
        failed(FailedFile(bad.file, bad.reason))
    if form.bad:
        raise BadFile(
            f"{form.frames - len(form.bad):,} of the {form.frames:,} frames of "
            f"{dataset.name}@{dataset.version} are prepared at {size}; the others cannot be "
            "decoded, and a training that reads them ends there. The first is "
            f"{form.bad[0].file}: {form.bad[0].reason}"
        )
    return PreparedBody(
        size=str(size),
        folder=str(form.folder),
        frames=form.frames,
        made=form.made,
        bytes=form.bytes,
    )
