"""Scans of sources: what can be done with them."""

import builtins
from collections.abc import Mapping, Sequence
from typing import Any

from api.schemas.base import iso_time
from api.schemas.jobs import JobBody
from api.schemas.scans import NewScan, ProblemBody, ScanBody, ScanProgress, ScanStatus
from api.services.call import Service
from api.services.jobs.commands import begin_command
from catalog.errors import CatalogBusy, InvalidInput
from catalog.records.jobs import recorded_jobs
from catalog.records.scans import recorded_problems, recorded_scan, recorded_scans
from catalog.records.sources import recorded_source, recorded_sources
from catalog.records.tables import Job, Scan, Source
from ingest.scan.removal_guard import MOST_REMOVED
from ingest.scan.scan_lock import scan_lock
from ingest.scan.scan_record import SCAN
from ingest.sources.partial import FolderSelection
from ingest.sources.recorded import open_recorded
from pipeline.jobs.follow import cancel, refresh
from pipeline.jobs.state import FINISHED

_NEWEST_JOBS = 1_000
"""Newest scan jobs among which that of a source is looked for."""

_MOST_RUNNING = 10_000


class Scans(Service):
    """Scans of a home's sources."""

    def list(
        self,
        *,
        source: str | None = None,
        state: str | None = None,
        before: int | None = None,
        limit: int | None = None,
    ) -> list[ScanBody]:
        """Scans, newest first.

        Args:
            before: Only those whose number is lower.
            limit: At most this many; all when None.
        """
        scans = recorded_scans(
            self._workspace.records, source=source, state=state, before=before, limit=limit
        )
        return [ScanBody.of(*scan) for scan in scans]

    def get(self, number: int) -> ScanBody:
        """A scan."""
        return ScanBody.of(*recorded_scan(self._workspace.records, number))

    def problems(
        self, number: int, *, offset: int = 0, limit: int | None = None
    ) -> builtins.list[ProblemBody]:
        """Problems that the scan met and that are still there, in the order it met them.

        Args:
            offset: Problems that are passed over.
        """
        records = self._workspace.records
        recorded_scan(records, number)
        problems = recorded_problems(records, scan_id=number, limit=limit, offset=offset)
        return [
            ProblemBody(kind=problem.kind, key=problem.key, reason=problem.reason)
            for problem in problems
        ]

    def begin(
        self,
        source: str,
        *,
        full: bool = False,
        max_removed: float = MOST_REMOVED,
        check_images: bool = True,
        errors: bool = False,
    ) -> JobBody:
        """Catalog a source's files; the job that does it.

        Args:
            full: Count all labels again, changed or not.
            max_removed: Share of the source's catalogued files that may be removed at once.
            check_images: Open each camera image to see that it is whole and fits its label.
            errors: Only list what is wrong with its files.
        """
        scan = NewScan(
            source=source,
            full=full,
            max_removed=max_removed,
            check_images=check_images,
            errors=errors,
        )
        options = [*(["--full"] if full else []), *(["--errors"] if errors else [])]
        options += ["--max-removed", str(max_removed), *_unchecked(check_images)]
        name = recorded_source(self._workspace.records, source).name
        return self._begin(name, options, scan.model_dump())

    def begin_alone(
        self,
        source: str,
        *,
        folders: Sequence[str] = (),
        flat_folders: Sequence[str] = (),
        check_images: bool = True,
    ) -> JobBody:
        """Catalog a source's files, or some folders of them, where no scan of it runs; the job.

        Args:
            folders: Folders to scan with those in them; all where none are named.
            flat_folders: Folders to scan without those in them.

        Raises:
            InvalidInput: A scan of it runs, or a folder is not there.
        """
        recorded = recorded_source(self._workspace.records, source)
        options = [*self._options_of(recorded, folders, flat_folders), *_unchecked(check_images)]
        # One at a time, also of several servers: what is looked for is there before the next looks.
        with self._workspace.whole_catalog.lock(
            f"start-scan-{recorded.id}", "a scan is being started"
        ):
            status = self._status(recorded, self._jobs())
            if status is not None and status.state == "running":
                raise InvalidInput(f"Scan already currently in-progress for {recorded.name}.")
            return self._begin(recorded.name, options, {"source": recorded.name})

    def _options_of(
        self, source: Source, folders: Sequence[str], flat_folders: Sequence[str]
    ) -> builtins.list[str]:
        """Options of `framesift ingest` for a part of a source; none for all of it."""
        if not folders and not flat_folders:
            return []
        partition = FolderSelection.of(folders, flat_folders)
        files = open_recorded(source, self._workspace.indexes)
        for folder in (*partition.recursive, *partition.flat):
            if next(iter(files.list(folder)), None) is None:
                raise InvalidInput(f"partition '{folder[:200]}' of {source.name} is not found")
        # In one word each: a folder may be called --full.
        return [
            *(f"--folder={folder}" for folder in partition.recursive),
            *(f"--flat-folder={folder}" for folder in partition.flat),
        ]

    def _begin(self, name: str, options: Sequence[str], settings: Mapping[str, Any]) -> JobBody:
        arguments = ("ingest", "--json", *options, "--", name)
        return begin_command(
            self._workspace, "scan", name, arguments, settings, queue=self._session.job_queue
        )

    def stop(self, source: str) -> None:
        """Ask the scan of a source to end; what it has committed stays.

        Raises:
            InvalidInput: No scan of it runs, or not as a job.
        """
        recorded = recorded_source(self._workspace.records, source)
        job = self._newest_job(recorded, self._jobs())
        if job is None or job.state in FINISHED:
            if self._is_scanned(recorded):
                raise InvalidInput(
                    f"The scan of {recorded.name} was begun at a terminal: end it there."
                )
            raise InvalidInput(f"No scan is currently in progress for {recorded.name}.")
        cancel(self._workspace.records, job)

    def status(self, source: str) -> ScanStatus | None:
        """The status of a source's newest scan; None where there never was one."""
        return self._status(recorded_source(self._workspace.records, source), self._jobs())

    def running(self) -> builtins.list[ScanStatus]:
        """The scans that run, by their sources' names."""
        jobs = self._jobs()
        statuses = [
            self._status(source, jobs) for source in recorded_sources(self._workspace.records)
        ]
        return [status for status in statuses if status and status.state == "running"]

    def progress(self) -> builtins.list[ScanProgress]:
        """Progress of each source's scan that runs, or ran when its machine went down."""
        scans = recorded_scans(self._workspace.records, state="running", limit=_MOST_RUNNING)
        # Of a source that is scanned and watched, the last.
        last = {source: scan.counts for scan, source in reversed(scans)}
        return [
            ScanProgress(
                source=source,
                files=counts.get("files") or 0,
                files_per_s=counts.get("files_per_s") or 0,
            )
            for source, counts in last.items()
        ]

    def _status(self, source: Source, jobs: Sequence[Job]) -> ScanStatus | None:
        job = self._newest_job(source, jobs)
        scans = recorded_scans(self._workspace.records, source=source.name, kind=SCAN, limit=1)
        scan = scans[0][0] if scans else None
        if job is not None and (scan is None or scan.started < job.created):
            # Not begun yet, or ended before it could begin.
            state = _ended(job) if job.state in FINISHED else "running"
            return _status_of(source, state, job.error, job)
        if scan is None:
            return None
        state, error = scan.state, scan.error
        if state == "running" and not self._is_scanned(source):
            stopped = job is not None and job.state == "cancelled"
            state, error = ("stopped", "") if stopped else ("failed", "its process ended")
        return _status_of(source, state, error, scan)

    def _jobs(self) -> builtins.list[Job]:
        return recorded_jobs(self._workspace.records, kind="scan", limit=_NEWEST_JOBS)

    def _newest_job(self, source: Source, jobs: Sequence[Job]) -> Job | None:
        """The newest job that scans the source."""
        job = next((job for job in jobs if _command(job)[-1:] == [source.name]), None)
        return None if job is None else refresh(self._workspace.records, job)

    def _is_scanned(self, source: Source) -> bool:
        """Return whether a process scans the source."""
        try:
            with scan_lock(self._workspace.whole_catalog, source):
                return False
        except CatalogBusy:
            return True


def _status_of(source: Source, state: str, error: str, of: Job | Scan) -> ScanStatus:
    """By its scan, or by its job while there is no scan yet."""
    counts, started = (of.counts, of.started) if isinstance(of, Scan) else ({}, of.created)
    return ScanStatus.model_validate(
        {
            "source": source.name,
            "state": state,
            "error": error if state == "failed" else "",
            "started": iso_time(started),
            "finished": None if of.finished is None else iso_time(of.finished),
            "files": counts.get("files") or 0,
            "indexed": sum(counts.get(change) or 0 for change in ("added", "changed", "unchanged")),
        }
    )


def _ended(job: Job) -> str:
    return {"done": "done", "cancelled": "stopped"}.get(job.state, "failed")


def _command(job: Job) -> list[str]:
    return list(job.request["stages"][0]["commands"][0])


def _unchecked(check_images: bool) -> Sequence[str]:
    return () if check_images else ("--no-check-images",)
