"""The steps of a job that begins with a question: what each does, once or again."""

from collections.abc import Callable, Mapping
from pathlib import Path

from api.services.datasets.new_dataset import make_dataset
from api.services.jobs.orders import home_of, new_dataset, plan_work
from api.services.jobs.owners import call_of
from api.services.session import Session
from api.workspace import Workspace
from catalog.errors import FramesiftError, NotFound
from catalog.records.datasets import complete_dataset
from catalog.records.jobs import recorded_job
from catalog.records.tables import Dataset, Job
from ingest.sources.source_options import SourceOptions
from pipeline.archive.migrate import migrate_dataset
from pipeline.archive.recall import recall_archived
from pipeline.jobs.in_place import paths_in_use
from pipeline.jobs.inference.chosen_predictions import on_server
from pipeline.jobs.inference.fetched_predictions import fetch_predictions, fetched_folder
from pipeline.jobs.job_input import is_at_hand
from pipeline.jobs.program.collect import described_files
from pipeline.jobs.request import JobPaths, write_json
from pipeline.jobs.workflow.moves import ASKED
from pipeline.manifest import Manifest
from pipeline.manifest_store import read_manifest
from pipeline.runs.job_order import order_in
from pipeline.runs.job_orders import FRAMES_ORDERS
from pipeline.runs.orders import order_of
from pipeline.staging.opened_sources import OpenedSources

_FETCHERS = 4
"""Files that are fetched at once, as `framesift stage` does."""

Report = Callable[[str], None]


def do_step(home: Workspace, folder: Path, step: str, report: Report) -> None:
    """Do a step of a job, on behalf of the user who began it; one that was done before is no harm.

    Args:
        home: The whole home.
        folder: Of the job.
        step: "select", "stage", "fetch", "prepare", "collect", "evict" or "migrate".
        say: Told what came of it, in lines.

    Raises:
        FramesiftError: It cannot be done, or the user may not have it done any more.
    """
    job = recorded_job(home.records, folder.name)
    owner = call_of(home, job)
    session = Session(home, owner.caller, is_command=owner.is_command)
    steps: Mapping[str, Callable[[Session, Job, Report], None]] = {
        "select": _select,
        "stage": _stage,
        "fetch": _fetch,
        "prepare": _prepare,
        "collect": _collect,
        "evict": _evict,
        "migrate": _migrate,
    }
    steps[step](session, job, report)


def _select(session: Session, job: Job, report: Report) -> None:
    """Save the frames that answer the question, of the snapshot at which it was asked."""
    order = order_in(job.request["order"], FRAMES_ORDERS)
    request = new_dataset(session.records, job.name, order)
    snapshot = job.request[ASKED]["at"]
    saved = make_dataset(session.workspace, request, snapshot, session.caller.owner)
    with session.whole.records.session() as writing:
        writing.get_one(Job, job.id).dataset_id = saved.id
    report(f"{saved.name}@{saved.version}: {saved.frames:,} frames of snapshot {snapshot}")


def _stage(session: Session, job: Job, report: Report) -> None:
    """Bring the dataset's files into the cache, where they are not folders of this machine."""
    dataset = _dataset(session, job)
    name = f"{dataset.name}@{dataset.version}"
    manifest = read_manifest(session.records, dataset)
    if is_at_hand(manifest.header):
        _recall(session, manifest, report)
        report(f"{name} is read where it lies: its sources are folders of this machine")
        return
    staged = session.stagings.run(
        name,
        cache=None,
        workers=_FETCHERS,
        progress=lambda _: None,
        failed=lambda file: report(f"failed: {file}"),
        job_folder=Path(job.paths["folder"]),
    )
    report(f"{name} is staged: {staged.files_copied:,} of {staged.files:,} files were fetched")


def _fetch(session: Session, job: Job, report: Report) -> None:
    """Bring predictions from a server to the job's folder."""
    paths, home = JobPaths(Path(job.paths["folder"])), home_of(session)
    orders = on_server(session.records, order_of(job.request["order"]))
    for below, order in orders.items():
        place = order.predictions or ""
        options = SourceOptions.from_json(home.fences(order).options)
        fetched = fetch_predictions(place, options, fetched_folder(paths, below))
        report(f"{place}: {fetched.copied:,} of {fetched.files:,} files were fetched")


def _recall(session: Session, manifest: Manifest, report: Report) -> None:
    """Have the archive bring back what is about to be read where it lies, by one list."""
    files = (*manifest.images(), *manifest.labels())
    recalled = recall_archived(
        [(file.source, file.key) for file in files if file],
        OpenedSources(session.records, manifest.header).files,
        session.workspace.archive_access,
    )
    if recalled.files:
        report(f"{recalled.files - len(recalled.causes):,} files were recalled from their archive")
    for (_, key), cause in recalled.causes.items():
        report(f"failed: {key}: {cause}")


def _prepare(session: Session, job: Job, report: Report) -> None:
    """Plan what the job's backend is handed."""
    plan_work(session, job, _dataset(session, job), order_of(job.request["order"]))
    report(f"{job.name} is planned for {job.backend}")


def _collect(session: Session, job: Job, report: Report) -> None:
    """Write result.json: what the job made, and of what."""
    paths, dataset = JobPaths(Path(job.paths["folder"])), _dataset(session, job)
    output = {"train": paths.model, "validate": paths.report, "predict": paths.report}[job.kind]
    lineage = {
        "dataset": f"{dataset.name}@{dataset.version}",
        "dataset_id": dataset.content_id,
        "snapshot": dataset.snapshot,
        "frames": dataset.frames,
        "settings": job.request["settings"],
    }
    document = {**described_files(output), "metrics": job.metrics, "lineage": lineage}
    write_json(paths.result, document, fsync=True)
    report(f"{document['output_files']:,} files, {document['output_bytes']:,} bytes")


def _evict(session: Session, job: Job, report: Report) -> None:
    """Remove the dataset from the cache; where others use it, it stays, and the job is done."""
    dataset = _dataset(session, job)
    try:
        evicted = session.cache.evict(f"{dataset.name}@{dataset.version}")
    except NotFound:
        report("nothing of it is in the cache")
    except FramesiftError as error:
        report(f"it stays in the cache: {error}")
    else:
        report(f"{evicted.files:,} files, {evicted.bytes:,} bytes")


def _migrate(session: Session, job: Job, report: Report) -> None:
    """Send the dataset's files back to tape; where the archive fails, the job is done as well."""
    access, records = session.workspace.archive_access, session.records
    try:
        in_use = paths_in_use(records, job.name)
        migrated = migrate_dataset(records, _dataset(session, job), access, in_use)
    except FramesiftError as error:
        report(f"they stay on disk: {error}")
        return
    report(f"{migrated.files:,} files, {migrated.bytes:,} bytes are on tape")
    if migrated.in_use:
        report(f"{migrated.in_use:,} files stay on disk: other jobs read them")
    if migrated.remaining:
        cause = migrated.cause or "the archive's own log says why"
        report(f"{migrated.remaining:,} files were not migrated: {cause}")


def _dataset(session: Session, job: Job) -> Dataset:
    """The dataset of a job.

    Raises:
        NotFound: Somebody has removed it.
    """
    return complete_dataset(session.records, job.dataset or "")
