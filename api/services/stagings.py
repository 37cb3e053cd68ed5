"""Stagings, which bring datasets' files near the jobs: what can be done with them."""

import builtins
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from api.schemas import home_orders
from api.schemas.stagings import (
    ForesightBody,
    PreparedBody,
    RunningStagingBody,
    Staged,
    StagingBody,
)
from api.services.call import Service, user_here
from catalog.errors import BadFile, InvalidInput, NotFound
from catalog.records.datasets import complete_dataset, recorded_dataset
from catalog.records.jobs import recorded_job
from catalog.records.stagings import recorded_staging, recorded_stagings
from pipeline.runs.size import FormSize, form_size

if TYPE_CHECKING:  # imported where it is used: short commands do without
    from api.schemas.jobs import JobBody
    from api.services.cache_figures import CacheFigures
    from catalog.records.tables import Dataset, Staging
    from pipeline.cache.reading import StagingLocation
    from pipeline.staging.concurrent import ConcurrentCallbacks
    from pipeline.staging.fetch import FailedFile
    from pipeline.staging.progress import Progress
    from pipeline.staging.stage_concurrently import SplitReading


class Stagings(Service):
    """Stagings of a home's datasets."""

    def list(
        self, *, dataset: str | None = None, before: int | None = None, limit: int | None = None
    ) -> list[StagingBody]:
        """Stagings that are done or have failed, newest first.

        Args:
            before: Only those whose number is lower.
        """
        records = self._workspace.readable_records
        dataset_id = None if dataset is None else recorded_dataset(records, dataset).id
        stagings = recorded_stagings(records, dataset_id=dataset_id, before=before, limit=limit)
        return [self._body(*staging) for staging in stagings]

    def get(self, number: int) -> StagingBody:
        """A staging."""
        return self._body(*recorded_staging(self._workspace.readable_records, number))

    def _body(self, staging: "Staging", dataset: str) -> StagingBody:
        body = StagingBody.of(staging, dataset, self._workspace.place)
        # It may name others' files and jobs; the caller's own job says why it failed.
        return body.model_copy(update={"error": ""}) if self._workspace.is_limited else body

    def running(self) -> builtins.list[RunningStagingBody]:
        """Stagings into the home's cache that run or wait to, the newest first."""
        from api.services.running_stagings import running

        return running(self._workspace)

    def get_running(self, name: str) -> RunningStagingBody:
        """One of them: api.services.running_stagings.running_one."""
        from api.services.running_stagings import running_one

        return running_one(self._workspace, name)

    def cancel(self, name: str) -> RunningStagingBody:
        """Ask one of them to end: api.services.running_stagings.cancel_running."""
        from api.services.running_stagings import cancel_running

        return cancel_running(self._workspace, name)

    def figures(self) -> "CacheFigures":
        """Figures of the home's cache; for callers who see every row, as they name datasets."""
        from api.services.cache_figures import cache_figures
        from api.services.running_stagings import WATCH

        return cache_figures(self._workspace.cache, WATCH)

    def begin(self, order: home_orders.Staging) -> "JobBody":
        """Fetch a dataset's images and labels into the home's cache; the job that does it."""
        from api.schemas.jobs import JobBody
        from api.services.jobs.home_orders import begin_order

        size = None if order.prepare is None else str(form_size(order.prepare))
        record = complete_dataset(self._workspace.records, order.dataset)
        self._check_targets(record, order.to, verify=order.verify, prepare=order.prepare)
        order = replace(order, dataset=f"{record.name}@{record.version}", prepare=size)
        job = begin_order(
            self._workspace, order, record.name, dataset=record, queue=self._session.job_queue
        )
        return JobBody.of(job, self._workspace.place)

    def plan(self, dataset: str, *, workers: int = 4, cache: Path | None = None) -> ForesightBody:
        """The plan of a staging of a dataset; this fetches and evicts nothing.

        Args:
            cache: Folder of the cache; the home's when None.
        """
        from pipeline.staging.preview import preview_staging

        records = self._workspace.records
        record = complete_dataset(records, dataset)
        foresight = preview_staging(
            records,
            record,
            (cache or self._workspace.cache).expanduser().absolute(),
            workers=workers,
            indexes=self._workspace.indexes,
            user=self._session.job_queue.user or records.user,
        )
        holders = [] if self._workspace.is_limited else foresight.holders
        evicted = () if self._workspace.is_limited else foresight.evicted_datasets
        fields = asdict(foresight) | {"holders": [*holders], "evicted_datasets": [*evicted]}
        return ForesightBody(dataset=f"{record.name}@{record.version}", **fields)

    def beside(
        self,
        dataset: str,
        reading: "SplitReading",
        *,
        job_folder: Path,
        cache: Path,
        callbacks: "ConcurrentCallbacks",
        located: "Callable[[StagingLocation], None]",
    ) -> None:
        """Fetch what a job reads, ahead of it, in this process, until that is told to end.

        Args:
            dataset: NAME@VERSION.
            reading: What the job reads of it.
            job_folder: Of the job, or of a script that is no job of the home.
            cache: Folder to fetch into.
            callbacks: Called as it goes on.
            located: Called with where readers find the staging.

        Raises:
            InvalidInput: The job has no such ranks or shards.
        """
        from pipeline.staging.stage_concurrently import ConcurrentOptions, stage_concurrently

        here, readers = reading.here, reading.readers
        if here is not None and not all(0 <= one < readers for one in here):
            raise InvalidInput(
                f"ranks {', '.join(map(str, sorted(here)))}: the job has {readers}, from 0 to "
                f"{readers - 1}"
            )
        records = self._workspace.records
        options = ConcurrentOptions(
            indexes=self._workspace.indexes,
            job_folder=job_folder,
            user=self._user(job_folder),
            archives=self._workspace.archive_access,
        )
        stage_concurrently(
            records, recorded_dataset(records, dataset), cache, reading, options, callbacks, located
        )

    def run(
        self,
        dataset: str,
        *,
        cache: Path | None,
        workers: int,
        progress: "Callable[[Progress], None]",
        failed: "Callable[[FailedFile], None]",
        verify: bool = False,
        prepare: str | None = None,
        prepared: Callable[[int, int], None] = lambda _frames, _of: None,
        job_folder: Path | None = None,
        to: Sequence[str] = (),
    ) -> Staged:
        """Fetch a dataset's images and labels in this process, and decode them in others.

        Args:
            cache: Folder to fetch into; the home's cache when None.
            workers: Files fetched at once.
            progress: Called whenever a file has come.
            failed: Called with each file that cannot be had or decoded; the others go on.
            verify: Read what is in the cache again, and fetch what is damaged.
            prepare: Size to decode the frames at, WIDTHxHEIGHT or full; None to fetch them only.
            prepared: Called with the number of decoded frames, and of all.
            job_folder: Of the job whose command this process is; None where it is no job's.
            to: AFM filesets to bring them into in place of the cache, as pipeline.afm.target
                writes them.

        Raises:
            InvalidInput: The size is none, or a target.
        """
        from pipeline.staging.stage import stage_dataset

        size = None if prepare is None else form_size(prepare)
        record = recorded_dataset(self._workspace.records, dataset)
        if to:
            self._check_targets(record, to, verify=verify, prepare=prepare)
            if cache is not None:
                raise InvalidInput(f"--cache {cache} and --to {to[0]}: give one of them")
            staging = self._to_afm(record, to, workers, progress, failed, job_folder)
            return _staged(record, staging)
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
            user=self._user(job_folder),
            job_folder=str(job_folder or ""),
            archives=self._workspace.archive_access,
        )
        form = (
            None
            if size is None
            else _prepared(record, staging, size, failed, prepared, self._user(job_folder))
        )
        return _staged(record, staging, damaged, form)

    def _to_afm(
        self,
        record: "Dataset",
        to: Sequence[str],
        workers: int,
        progress: "Callable[[Progress], None]",
        failed: "Callable[[FailedFile], None]",
        job_folder: Path | None,
    ) -> "Staging":
        from pipeline.afm.stage import stage_to_afm

        return stage_to_afm(
            self._workspace.records,
            record,
            to,
            self._workspace.afm_access,
            workers=workers,
            progress=progress,
            failed=failed,
            archives=self._workspace.archive_access,
            cache=self._workspace.cache,
            user=self._user(job_folder),
            job_folder=str(job_folder or ""),
        )

    def _user(self, job_folder: Path | None) -> str:
        """The user whose staging this process runs: a job's owner, or the machine's user."""
        from pipeline.jobs.request import JobRequest

        if job_folder is None:
            return user_here()
        try:
            job = recorded_job(self._workspace.records, job_folder.name)
        except NotFound:  # of a script that starts its training by itself
            return user_here()
        return JobRequest.from_json(job.request).user or job.owner or ""

    def _check_targets(
        self, record: "Dataset", to: Sequence[str], *, verify: bool, prepare: str | None
    ) -> None:
        """Accept targets that are filesets of AFM, with options that AFM has.

        Raises:
            InvalidInput: A target is no fileset, or verify or prepare is asked for.
        """
        from pipeline.afm.target import filesets_of
        from pipeline.manifest_store import read_manifest

        if not to:
            return
        if verify or prepare is not None:
            option = "verify" if verify else "prepare"
            raise InvalidInput(f"to {to[0]}: {option} goes with the cache, and not with AFM")
        header = read_manifest(self._workspace.records, record).header
        filesets_of(to, sorted(header.roots))


def _staged(
    record: "Dataset",
    staging: "Staging",
    damaged: Sequence[str] = (),
    form: PreparedBody | None = None,
) -> Staged:
    return Staged(
        dataset=record.name,
        version=record.version,
        cache=staging.cache,
        manifest=staging.manifest,
        files=staging.files,
        files_copied=staging.files_copied,
        bytes=staging.bytes,
        bytes_copied=staging.bytes_copied,
        damaged=[*damaged],
        prepared=form,
    )


def _prepared(
    dataset: "Dataset",
    staging: "Staging",
    size: FormSize,
    failed: "Callable[[FailedFile], None]",
    prepared: Callable[[int, int], None],
    user: str,
) -> PreparedBody:
    from pipeline.cache.lease import Holder
    from pipeline.prepared.in_cache import prepare_in_cache  # decoding needs NumPy and Pillow
    from pipeline.staging.fetch import FailedFile

    holder = Holder(f"{dataset.name}@{dataset.version}", user=user)
    cache, manifest = Path(staging.cache), Path(staging.manifest).name
    form = prepare_in_cache(cache, manifest, size, holder, prepared)
    for bad in form.bad:
        failed(FailedFile(bad.file, bad.reason))
    if form.bad:
        raise BadFile(
            f"{form.frames - len(form.bad):,} of the {form.frames:,} frames of "
            f"{dataset.name}@{dataset.version} are prepared at {size.words}; the others cannot be "
            "decoded, and a training that reads them ends there. The first is "
            f"{form.bad[0].file}: {form.bad[0].reason}"
        )
    return PreparedBody(
        size=str(size),
        folder=str(form.folder),
        frames=form.frames,
        made=form.decoded,
        bytes=form.bytes,
    )
