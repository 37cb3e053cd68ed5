"""A scan's job, as its page shows it beside its counts: its source, and the files with problems."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from api.schemas.jobs import JobBody
from api.schemas.scans import ProblemBody
from api.services.session import Session
from api.web.source_form import frames_path
from catalog.errors import NotFound
from framesift.progress import count_of

_PROBLEMS = 20


@dataclass(frozen=True)
class ScannedSource:
    """The source of a scan's job."""

    name: str
    scan: int | None
    """The scan's number; None before it has one."""
    frames_path: str
    """Find, with the source's frames."""
    problems: Sequence[ProblemBody]
    """The first files of the scan with problems."""


def scanned_source(session: Session, job: JobBody) -> ScannedSource | None:
    """The source that a job scans; None where it was removed."""
    number, problems = count_of(job.metrics, "scan"), []
    try:
        source = session.sources.get(str(job.settings.get("source", "")))
    except NotFound:
        return None
    with suppress(NotFound):
        problems = [] if number is None else session.scans.problems(number, limit=_PROBLEMS)
    return ScannedSource(source.name, number, frames_path(source.datasource), problems)
