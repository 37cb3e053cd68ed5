"""The first steps in a home without frames, as far as they are done."""

from dataclasses import dataclass

from api.schemas.jobs import JobBody
from api.services.session import Session
from pipeline.job_state import FINISHED


@dataclass(frozen=True)
class FirstSteps:
    """A home without frames."""

    sources: int
    """Sources that it has."""
    scan: JobBody | None
    """The newest scan's job."""

    @property
    def scan_runs(self) -> bool:
        """Whether that job has not ended."""
        return self.scan is not None and self.scan.state not in FINISHED


def first_steps(session: Session) -> FirstSteps | None:
    """The steps so far; None for users who see rows of collections only."""
    if not session.caller.sees_all:
        return None
    scans = session.jobs.list(kind="scan", limit=1)
    return FirstSteps(len(session.sources.list()), scans[0] if scans else None)
