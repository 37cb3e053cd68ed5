"""Ctrl-C while a job is followed: the job goes on, and whoever stopped looking is told so."""

from collections.abc import Iterator
from contextlib import contextmanager

from api.cli import destination
from api.cli.terminal import stderr

_INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells count it: 128 plus the number of SIGINT."""


def leave_driven() -> None:
    """Have a process of its own drive the jobs of a home, where none does; a server does itself."""
    if destination.server() is None:
        from api.services.jobs.driving import drive_detached  # with the home's stores

        drive_detached(destination.home())


@contextmanager
def leaving_job_running(job: str) -> Iterator[None]:
    """Where the block is interrupted, say what goes on and how to end it; then exit with 130."""
    try:
        yield
    except KeyboardInterrupt:
        leave_driven()
        stderr.print(
            f"job {job} goes on; framesift jobs wait {job} follows it, "
            f"framesift jobs cancel {job} ends it"
        )
        raise SystemExit(_INTERRUPTED) from None
