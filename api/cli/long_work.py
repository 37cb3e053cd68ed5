"""Long work: in the command's own process on a home; a server's job, which is waited for here."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from api.cli import destination
from api.cli.sigint import leaving_job_running
from api.cli.target import Record, home_session
from api.schemas.home_orders import Extraction, LabelCheck, Scan, Staging
from catalog.errors import InvalidInput

if TYPE_CHECKING:  # commands on a home do without httpx, those that ask a server without databases
    from framesift import Job
    from ingest.extractors.run import ExtractCounts
    from pipeline.staging.fetch import FailedFile
    from pipeline.staging.progress import Progress

Body = Mapping[str, Any]


@dataclass(frozen=True)
class Reports:
    """Callbacks that tell how a staging goes."""

    progress: "Callable[[Progress], None]"
    """Told how far it is."""
    failed: "Callable[[FailedFile], None]"
    """Told of each file that cannot be had or decoded."""
    prepared: Callable[[int, int], None]
    """Told the frames that are decoded, and of how many."""
    state: Callable[[str], None]
    """Told the state of a server's job."""


def stage(order: Staging, cache: Path | None, reports: Reports) -> Record:
    """Fetch a dataset into a cache, and decode its frames once.

    Args:
        order: What is staged.
        cache: Folder on a home; its own cache when None.
        reports: Who is told how it goes.
    """
    if destination.server() is None:
        return home_session().stagings.run(
            **vars(order),
            cache=cache,
            progress=reports.progress,
            failed=reports.failed,
            prepared=reports.prepared,
        )
    _refuse_cache(cache)
    staged_by = destination.client().datasets.get(order.dataset)
    job = staged_by.stage(
        workers=order.workers, verify=order.verify, prepare=order.prepare, to=order.to
    )
    staged: Body = _result(job, lambda job: reports.state(str(job["state"])))
    return staged


def staging_plan(dataset: str, cache: Path | None, workers: int) -> Record:
    """The plan of a staging into a home's cache or a server's."""
    if destination.server() is None:
        return home_session().stagings.plan(dataset, workers=workers, cache=cache)
    _refuse_cache(cache)
    planned: Record = destination.client().stagings.plan(dataset, workers=workers)
    return planned


def _refuse_cache(cache: Path | None) -> None:
    if cache is not None:
        raise InvalidInput(
            f"--cache {cache}: a server stages into its own (FRAMESIFT_CACHE there); leave it out"
        )


def server_scan(order: Scan, show: Callable[[Body], None]) -> Body:
    """Have a server scan a source: what `framesift ingest --json` prints there."""
    source = destination.client().sources.get(order.source)
    job = source.scan(
        full=order.full,
        max_removed=order.max_removed,
        check_images=order.check_images,
        errors=order.errors,
    )
    scanned: Body = _result(job, show)
    return scanned


def check_labels(order: LabelCheck, show: Callable[[int, int | None, str], None]) -> Body:
    """Look at a source's labels: what they hold, and the problems of the last scans.

    Args:
        order: The source, and how many labels.
        show: Told how many labels are done and how many there are; or a job's state.
    """
    if destination.server() is None:
        return home_session().label_checks.run(order, lambda done, of: show(done, of, ""))
    source = destination.client().sources.get(order.source)
    job = source.check_labels(labels=order.labels)
    checked: Body = _result(job, lambda job: show(0, None, str(job["state"])))
    return checked


def extract(
    extraction: Extraction, show: Callable[[str, "ExtractCounts | None"], None]
) -> Iterator[Body]:
    """Read tags from files: what each extractor did, with the files that were bad.

    Of a server's extraction the first thousand bad files are reports.

    Args:
        extraction: Tags to be read.
        show: Told the family that is read and its counts; or a job's state, and None.
    """
    if destination.server() is None:
        yield from home_session().extractions.run(extraction, show)
        return
    if extraction.own:
        raise InvalidInput(
            f"--extractor {extraction.own[0]}: a server runs no code of its clients: install it "
            "there, by the entry point framesift.extractors, and give its name"
        )
    if not extraction.extractors:
        from ingest.extractors.registry import check_some

        check_some(())
    job = destination.client().tags.extract(
        extraction.source,
        *extraction.extractors,
        full=extraction.full,
        workers=extraction.workers,
        errors=extraction.errors,
    )
    yield from _result(job, lambda job: show(str(job["state"]), None))


def run_policy(name: str, run_id: str, batch_rows: int) -> Record:
    """Run a policy; the run once it has ended.

    Args:
        run_id: A run that was begun elsewhere; a new one where it is empty.
        batch_rows: Files of one commit.
    """
    if destination.server() is None:
        return home_session().policies.run(name, run_id=run_id, batch_rows=batch_rows)
    from pipeline.policies.actions import BATCH_ROWS

    if run_id or batch_rows != BATCH_ROWS:
        raise InvalidInput("--run and --batch-rows: a server begins runs itself; leave them out")
    run: Body = _result(destination.client().policies.get(name).run())
    return run


def _result(job: "Job", show: Callable[[Body], None] | None = None) -> Any:
    with leaving_job_running(job.name):
        return job.wait(progress=show or False).result()
