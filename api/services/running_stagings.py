"""Stagings that run or wait to: of this home's jobs, and of all who share its cache."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import ValidationError

from api.schemas.base import iso_time
from api.schemas.stagings import RunningStagingBody, StagingPlanBody, StagingProgressBody
from api.services.jobs.current import bring_up_to_date
from api.workspace import Workspace
from catalog.errors import FramesiftError, NotAllowed, NotFound
from catalog.records.datasets import complete_dataset
from catalog.records.jobs import recorded_job, recorded_jobs
from catalog.records.reading import Records
from pipeline.cache.beat import Watch
from pipeline.cache.running import RunningStaging, StagingAbout, cancel_staging, running_stagings
from pipeline.job_state import UNFINISHED
from pipeline.jobs.request import JobPaths

if TYPE_CHECKING:  # reading does without the records' database
    from catalog.records.tables import Job

WATCH = Watch()
"""This process's watch: it must notice when the beats of other hosts stop."""


def running(workspace: Workspace) -> list[RunningStagingBody]:
    """The stagings that run or wait to, of datasets that the workspace's user sees whole."""
    return [body for body, _, _ in _found(workspace)]


def running_one(workspace: Workspace, name: str) -> RunningStagingBody:
    """One of them."""
    return _one(workspace, name)[0]


def cancel_running(workspace: Workspace, name: str) -> RunningStagingBody:
    """Ask one of them to end; it, as it was.

    Raises:
        NotAllowed: The user is limited to collections, and it is another user's job.
    """
    from pipeline.jobs.follow import cancel

    body, job, staging = _one(workspace, name)
    if job is not None:
        cancel(workspace.records, recorded_job(workspace.records, job.name))
    elif workspace.records.user:
        raise NotAllowed(f"staging {name}: it is no job of yours; its user or an admin ends it")
    elif staging is not None:
        cancel_staging(workspace.cache, staging.name)
    return body.model_copy(update={"state": "cancelling"})


_Found: TypeAlias = "tuple[RunningStagingBody, Job | None, RunningStaging | None]"


def _one(workspace: Workspace, name: str) -> _Found:
    for running in _found(workspace):
        if running[0].name == name:
            return running
    raise NotFound(
        "running staging", name, "GET /v1/stagings/running and framesift stagings running list them"
    )


def _found(workspace: Workspace) -> list[_Found]:
    """Those of the cache, and the jobs that are not there yet."""
    bring_up_to_date(workspace)
    records = workspace.readable_records
    jobs = {str(job.paths["folder"]): job for job in recorded_jobs(records, states=UNFINISHED)}
    running: list[_Found] = []
    for staging in running_stagings(workspace.cache, WATCH):
        job = jobs.pop(staging.about.job_folder, None)
        if _is_visible(records, staging.about):
            running.append((_body(staging, job, is_limited=workspace.is_limited), job, staging))
    staging_jobs = [job for job in jobs.values() if job.kind == "stage"]
    waiting: list[_Found] = [(_waiting(job), job, None) for job in staging_jobs]
    return waiting + running


def _is_visible(records: Records, about: StagingAbout) -> bool:
    """True where the user sees all frames of the staged manifest."""
    if not records.user:
        return True
    try:
        return complete_dataset(records, about.dataset).content_id == about.content_id
    except FramesiftError:
        return False


def _body(staging: RunningStaging, job: "Job | None", *, is_limited: bool) -> RunningStagingBody:
    about = staging.about
    is_shown = job is not None or not is_limited
    return RunningStagingBody(
        name=staging.name if job is None else job.name,
        dataset=about.dataset,
        state="cancelling" if staging.is_cancelled or _is_cancelled(job) else "running",
        job=None if job is None else job.name,
        user=about.user if is_shown else "",
        host=about.host if is_shown else "",
        began=about.began,
        plan=StagingPlanBody(
            files=about.files,
            bytes=about.bytes,
            missing_files=about.missing_files,
            missing_bytes=about.missing_bytes,
        ),
        progress=_progress(staging.progress),
    )


def _progress(content: Mapping[str, Any]) -> StagingProgressBody | None:
    """The progress in a file of the cache; None where it has none, or one of another version."""
    try:
        return StagingProgressBody.model_validate(content)
    except ValidationError:
        return None


def _waiting(job: "Job") -> RunningStagingBody:
    """The staging of a job that has not begun to fetch, or decodes what it has fetched."""
    return RunningStagingBody(
        name=job.name,
        dataset=job.dataset or "",
        state="cancelling" if _is_cancelled(job) else job.state,
        job=job.name,
        user=job.owner or "",
        host="",
        began=None if job.started is None else iso_time(job.started),
        plan=None,
        progress=None,
    )


def _is_cancelled(job: "Job | None") -> bool:
    return job is not None and JobPaths(Path(job.paths["folder"])).cancel.exists()
