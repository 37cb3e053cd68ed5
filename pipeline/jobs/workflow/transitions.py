"""The moves from state to state that a task may make, in one table."""

from collections.abc import Mapping

from catalog.errors import JobFailed
from pipeline.job_state import JobState

TRANSITIONS: Mapping[JobState, frozenset[JobState]] = {
    # A look may come late: between two, a task may have begun and ended.
    "pending": frozenset(
        {"staging", "queued", "running", "done", "failed", "cancelled", "unknown"}
    ),
    "staging": frozenset({"queued", "running", "done", "failed", "cancelled", "unknown"}),
    "queued": frozenset(
        {"pending", "staging", "running", "done", "failed", "cancelled", "unknown"}
    ),
    # A scheduler may put a job back into its queue; a machine may wait for its slot again.
    "running": frozenset(
        {"pending", "staging", "queued", "done", "failed", "cancelled", "unknown"}
    ),
    # The backend did not answer; it answers again.
    "unknown": frozenset(
        {"pending", "staging", "queued", "running", "done", "failed", "cancelled"}
    ),
    "failed": frozenset({"pending"}),  # the next attempt
    "cancelled": frozenset({"pending"}),  # a user resumes it
    "done": frozenset({"pending"}),  # a job is resumed, and brings again what it reads
}
"""State -> states that may follow it."""


def check_move(task: str, before: JobState, after: JobState) -> None:
    """Go on only where a task may make a move.

    Raises:
        JobFailed: The table lacks it.
    """
    if after not in TRANSITIONS[before]:
        allowed = ", ".join(sorted(TRANSITIONS[before])) or "nothing"
        raise JobFailed(task, f"task {task} is {before}, which {allowed} may follow, not {after}")
