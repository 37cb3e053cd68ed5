"""The steps of a job that begins with a question: what each does, once or again."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from api.schemas.datasets import NewDataset
from api.services.accounts.callers import NOBODY_ASKED, Caller
from api.services.datasets.new_dataset import make_dataset
from api.services.jobs.service import Jobs
from api.services.session import Session
from api.workspace import Workspace
from catalog.accounts.row_collections import rules_of
from catalog.errors import FramesiftError, NotFound
from catalog.records.datasets import whole_dataset
from catalog.records.jobs import recorded_job
from catalog.records.tables import Dataset, Job
from pipeline.jobs.job_input import is_at_hand
from pipeline.jobs.program.collect import described_files
from pipeline.jobs.request import JobPaths, write_json
from pipeline.jobs.workflow.moves import ASKED
from pipeline.manifest_store import read_manifest
from query.question.question import Question

_FETCHERS = 4
"""Files that are fetched at once, as `framesift stage` does."""

Say = Callable[[str], None]


def do_step(home: Workspace, folder: Path, step: str, say: Say) -> None:
    """Do a step of a job, on behalf of the user who began it; one that was done before is no harm.

    Args:
        home: The whole home.
        folder: Of the job.
        step: "select", "stage", "prepare", "collect" or "evict".
        say: Told what came of it, in lines.

    Raises:
        FramesiftError: It cannot be done.
    """
    job = recorded_job(home.records, folder.name)
    submission = job.request[ASKED]
    session = Session(home, _caller(home, job, submission), is_command=submission["is_command"])
    steps: Mapping[str, Callable[[Session, Job, Say], None]] = {
        "select": _select,
        "stage": _stage,
        "prepare": _prepare,
        "collect": _collect,
        "evict": _evict,
    }
    steps[step](session, job, say)


def _caller(home: Workspace, job: Job, submission: Mapping[str, Any]) -> Caller:
    """The user who began a job, with the rows that one sees now."""
    if not job.owner:
        return replace(NOBODY_ASKED, user=submission["caller"])
    return Caller(
        job.owner, frozenset(), "write", logged_in=False, rules=rules_of(home.records, job.owner)
    )


def _select(session: Session, job: Job, say: Say) -> None:
    """Save the frames that answer the question, of the snapshot at which it was asked."""
    submission, records = job.request[ASKED], session.records
    name = submission["save_as"] or job.name.removeprefix(records.own_names)
    question = Question.model_validate(submission["question"])
    request = NewDataset(name=name, question=question, seed=question.seed)
    saved = make_dataset(session.workspace, request, submission["at"], submission["caller"])
    with session.whole.records.session() as writing:
        writing.get_one(Job, job.id).dataset_id = saved.id
    say(f"{saved.name}@{saved.version}: {saved.frames:,} frames of snapshot {submission['at']}")


def _stage(session: Session, job: Job, say: Say) -> None:
    """Bring the dataset's files into the cache, where they are not folders of this machine."""
    dataset = _dataset(session, job)
    name = f"{dataset.name}@{dataset.version}"
    if is_at_hand(read_manifest(session.records, dataset).header):
        say(f"{name} is read where it lies: its sources are folders of this machine")
        return
    staged = session.stagings.run(
        name,
        cache=None,
        workers=_FETCHERS,
        progress=lambda _: None,
        failed=lambda file: say(f"failed: {file}"),
        job_folder=Path(job.paths["folder"]),
    )
    say(f"{name} is staged: {staged.files_copied:,} of {staged.files:,} files were fetched")


def _prepare(session: Session, job: Job, say: Say) -> None:
    """Plan what the job's backend is handed."""
    dataset, submission = _dataset(session, job), job.request[ASKED]
    planned = Jobs(session).planned(
        job.name, job.kind, dataset=f"{dataset.name}@{dataset.version}", **submission["options"]
    )
    say(f"{planned.name} is planned for {planned.backend}")


def _collect(session: Session, job: Job, say: Say) -> None:
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
    say(f"{document['output_files']:,} files, {document['output_bytes']:,} bytes")


def _evict(session: Session, job: Job, say: Say) -> None:
    """Remove the dataset from the cache; where others use it, it stays, and the job is done."""
    dataset = _dataset(session, job)
    try:
        evicted = session.cache.evict(f"{dataset.name}@{dataset.version}")
    except NotFound:
        say("nothing of it is in the cache")
    except FramesiftError as error:
        say(f"it stays in the cache: {error}")
    else:
        say(f"{evicted.files:,} files, {evicted.bytes:,} bytes")


def _dataset(session: Session, job: Job) -> Dataset:
    """The dataset of a job.

    Raises:
        NotFound: Somebody has removed it.
    """
    return whole_dataset(session.records, job.dataset or "")
