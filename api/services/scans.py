"""Scans of sources: what can be done with them."""

import builtins
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from api.schemas import home_orders
from api.schemas.base import iso_time
from api.schemas.scans import ProblemBody, ScanBody, ScanProgress, ScanStatus
from api.services.call import Service
from catalog.errors import CatalogBusy, InvalidInput, NotFound
from catalog.records.jobs import recorded_jobs
from catalog.records.scans import (
    last_scan,
    newest_scans,
    recorded_problems,
    recorded_scan,
    recorded_scans,
)
from catalog.records.sources import recorded_source, recorded_sources
from catalog.values import Problem
from ingest.scan.scan_record import SCAN
from pipeline.job_state import FINISHED

if TYPE_CHECKING:  # what asks how scans stand does without what scans
    from api.schemas.jobs import JobBody
    from catalog.records.tables import Job, Scan, Source
    from catalog.store import CatalogStore
    from ingest.engines.choice import EngineChoice
    from ingest.scan.scan import ScanOptions
    from ingest.scan.scan_counts import Progress, ScanCounts
    from ingest.sources.partial import FolderSelection

_NEWEST_JOBS = 1_000
"""Newest scan jobs among which that of a source is looked for."""

_MOST_RUNNING = 10_000


@dataclass(frozen=True)
class Scanned:
    """The end of a scan that ran in this process."""

    scan: int
    """Its number."""
    counts: "ScanCounts | None"
    """None where it only looked for what is wrong."""
    problems: Sequence[Problem]
    """Faults of the source's files."""

    def to_json(self) -> dict[str, Any]:
        """It as JSON."""
        counts = {} if self.counts is None else self.counts.to_json()
        problems = [asdict(problem) for problem in self.problems]
        return {"scan": self.scan, **counts, "problems": problems}


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
            self._workspace.readable_records, source=source, state=state, before=before, limit=limit
        )
        return [ScanBody.of(*scan) for scan in scans]

    def newest(self) -> builtins.list[ScanBody]:
        """The newest scan of each source that was scanned."""
        return [ScanBody.of(*scan) for scan in newest_scans(self._workspace.readable_records)]

    def get(self, number: int) -> ScanBody:
        """A scan."""
        return ScanBody.of(*recorded_scan(self._workspace.readable_records, number))

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

    def begin(self, order: home_orders.Scan) -> "JobBody":
        """Catalog a source's files; the job that does it."""
        from api.schemas.jobs import JobBody
        from api.services.jobs.home_orders import begin_order

        name = recorded_source(self._workspace.records, order.source).name
        job = begin_order(
            self._workspace, replace(order, source=name), name, queue=self._session.job_queue
        )
        return JobBody.of(job, self._workspace.place)

    def begin_alone(self, order: home_orders.Scan) -> "JobBody":
        """As `begin`, where no scan of the source runs.

        Raises:
            InvalidInput: A scan of it runs, or a folder is not there.
        """
        from ingest.sources.recorded import open_recorded

        source = recorded_source(self._workspace.records, order.source)
        if selection := _selection_of(order):
            files = open_recorded(source, self._workspace.indexes)
            for folder in (*selection.recursive, *selection.flat):
                if next(iter(files.list(folder)), None) is None:
                    raise InvalidInput(f"partition '{folder[:200]}' of {source.name} is not found")
            order = replace(order, folders=selection.recursive, flat_folders=selection.flat)
        # One at a time, also of several servers: what is looked for is there before the next looks.
        with self._workspace.whole_catalog.lock(
            f"start-scan-{source.id}", "a scan is being started"
        ):
            status = self._status(source, self._jobs())
            if status is not None and status.state == "running":
                raise InvalidInput(f"Scan already currently in-progress for {source.name}.")
            return self.begin(order)

    def run(
        self,
        order: home_orders.Scan,
        progress: "Progress",
        *,
        made: Callable[[str], None],
        class_list: Path | None = None,
        engine: "EngineChoice | None" = None,
        counted: Path | None = None,
    ) -> Scanned:
        """Catalog a source's files in this process, or look for what is wrong with them.

        Args:
            order: What is scanned.
            progress: Called with the counts.
            made: Called with a line on a catalog that is made, where there is none.
            class_list: A class list in place of the source's own.
            engine: What counts the labels; threads when None.
            counted: Folder of units that a job array counted; None to count here.

        Raises:
            NotFound: Of its errors: it was never scanned.
        """
        from ingest.engines.choice import EngineChoice, open_engine
        from ingest.scan import array_scan
        from ingest.scan.scan import scan_source

        records = self._workspace.records
        source = recorded_source(records, order.source)
        if order.errors:
            last = last_scan(records, source.id)
            if last is None:
                raise NotFound(
                    "scan", source.name, f"ingest it first: framesift ingest {source.name}"
                )
            return Scanned(last.id, None, recorded_problems(records, source_id=source.id))
        store, options = self._to_scan(order, made, class_list)
        if counted is not None:
            result = array_scan.collect_units(
                store, records, source, options, counted, progress=progress
            )
        else:
            with open_engine(engine or EngineChoice()) as opened:
                result = scan_source(
                    store, records, source, options, engine=opened, progress=progress
                )
        problems = recorded_problems(records, scan_id=result.scan)
        return Scanned(result.scan, result.counts, problems)

    def write_units(
        self,
        order: home_orders.Scan,
        folder: Path,
        progress: "Progress",
        *,
        made: Callable[[str], None],
        class_list: Path | None,
        unit_frames: int,
    ) -> int:
        """List a source, and write what a job array is to count: ingest.scan.array_scan.

        Args:
            order: What is scanned.
            folder: A new folder for the units.
            progress: As of `run`.
            made: As of `run`.
            class_list: As of `run`.
            unit_frames: Frames of a unit.

        Returns:
            How many units there are.
        """
        from ingest.scan import array_scan

        records = self._workspace.records
        source = recorded_source(records, order.source)
        store, options = self._to_scan(order, made, class_list)
        return array_scan.write_units(
            store, records, source, options, folder, unit_frames=unit_frames, progress=progress
        )

    def _to_scan(
        self, order: home_orders.Scan, made: Callable[[str], None], class_list: Path | None
    ) -> "tuple[CatalogStore, ScanOptions]":
        """The catalog, made where a source that was never scanned has none; and the options."""
        from ingest.scan.scan import ScanOptions
        from pipeline.archive.recall import recall_listed

        self._workspace.on_making = made
        options = ScanOptions(
            class_list=class_list,
            full=order.full,
            check_images=order.check_images,
            index_folder=self._workspace.indexes,
            recall=partial(recall_listed, self._workspace.archive_access),
            selection=_selection_of(order),
            max_removed=order.max_removed,
        )
        return self._workspace.whole_catalog, options

    def stop(self, source: str) -> None:
        """Ask the scan of a source to end; what it has committed stays.

        Raises:
            InvalidInput: No scan of it runs, or not as a job.
        """
        from pipeline.jobs.follow import cancel

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
        """Progress of scans and watches that run, or ran when their machine went down."""
        scans = recorded_scans(self._workspace.records, state="running", limit=_MOST_RUNNING)
        last = {(source, scan.kind): scan.counts for scan, source in reversed(scans)}
        return [
            ScanProgress(
                source=source,
                kind=kind,
                files=counts.get("files") or 0,
                files_per_s=counts.get("files_per_s") or 0,
                seconds=counts.get("seconds") or 0,
            )
            for (source, kind), counts in last.items()
        ]

    def _status(self, source: "Source", jobs: "Sequence[Job]") -> ScanStatus | None:
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

    def _jobs(self) -> "builtins.list[Job]":
        return recorded_jobs(self._workspace.records, kind="scan", limit=_NEWEST_JOBS)

    def _newest_job(self, source: "Source", jobs: "Sequence[Job]") -> "Job | None":
        """The newest job that scans the source."""
        from pipeline.jobs.follow import refresh

        job = next((job for job in jobs if job.request["order"]["source"] == source.name), None)
        return None if job is None else refresh(self._workspace.records, job)

    def _is_scanned(self, source: "Source") -> bool:
        """Return whether a process scans the source."""
        from ingest.scan.scan_lock import scan_lock

        try:
            with scan_lock(self._workspace.whole_catalog, source):
                return False
        except CatalogBusy:
            return True


def _status_of(source: "Source", state: str, error: str, of: "Job | Scan") -> ScanStatus:
    """By its scan, or by its job while there is no scan yet."""
    from catalog.records.tables import Scan

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


def _ended(job: "Job") -> str:
    return {"done": "done", "cancelled": "stopped"}.get(job.state, "failed")


def _selection_of(order: home_orders.Scan) -> "FolderSelection | None":
    """The selection of the source that is scanned; None for all of it."""
    from ingest.sources.partial import FolderSelection

    if not order.folders and not order.flat_folders:
        return None
    return FolderSelection.of(order.folders, order.flat_folders)
