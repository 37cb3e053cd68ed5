"""States of a job and of its tasks, the same on every backend."""

from typing import Literal

JobState = Literal[
    "pending", "staging", "queued", "running", "done", "failed", "cancelled", "unknown"
]

FINISHED: tuple[JobState, ...] = ("done", "failed", "cancelled")
"""States that a job leaves only when a user resumes it."""

UNFINISHED: tuple[JobState, ...] = ("pending", "staging", "queued", "running", "unknown")
"""The others."""
