"""Scans of sources: what can be done with them."""

import builtins

from api.schemas.jobs import JobBody
from api.schemas.scans import NewScan, ProblemBody, ScanBody
from api.workspace import Workspace
from catalog.records.scans import recorded_problems, recorded_scan, recorded_scans
from catalog.records.sources import recorded_source
from ingest.scan.removal_guard import MOST_REMOVED
from pipeline.jobs.command_job import submit_command


class Scans:
    """Scans of a home's sources."""

    def __init__(self, workspace: Workspace) -> None:
        """Those of the workspace."""
        self._workspace = workspace

    def list(
        self,
        *,
        source: str | None = None,
        state: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[ScanBody]:
        """Scans, newest first.

        Args:
            source: Only of this source.
            state: Only in this state.
            before: Only those whose number is lower.
            limit: At most this many.
        """
        scans = recorded_scans(
            self._workspace.records, source=source, state=state, before=before, limit=limit
        )
        return [ScanBody.of(*scan) for scan in scans]

    def get(self, number: int) -> ScanBody:
        """A scan.

        Raises:
            NotFound: There is none of that number.
        """
        return ScanBody.of(*recorded_scan(self._workspace.records, number))

    def problems(
        self, number: int, *, offset: int = 0, limit: int | None = None
    ) -> builtins.list[ProblemBody]:
        """Problems that the scan met and that are still there, in the order it met them.

        Args:
            number: The scan.
            offset: Problems that are passed over.
            limit: At most this many.

        Raises:
            NotFound: There is no such scan.
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
        errors: bool = False,
    ) -> JobBody:
        """Catalog a source's files; the job that does it.

        Args:
            source: The source.
            full: Count all labels again, changed or not.
            max_removed: Share of the source's catalogued files that may be removed at once.
            errors: Only list what is wrong with its files.

        Raises:
            NotFound: There is no such source.
            StorageError: The job cannot be started.
        """
        request = NewScan(source=source, full=full, max_removed=max_removed, errors=errors)
        name = recorded_source(self._workspace.records, source).name
        options = [*(["--full"] if full else []), *(["--errors"] if errors else [])]
        options += ["--max-removed", str(max_removed)]
        job = submit_command(
            self._workspace.records,
            self._workspace.job_queue,
            "scan",
            f"scan-{name}",
            ("ingest", "--json", *options, "--", name),
            environment=self._workspace.variables,
            settings=request.model_dump(),
        )
        return JobBody.of(job, self._workspace.place)
