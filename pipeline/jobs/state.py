"""States of a job, the same on every backend."""

from typing import Literal

JobState = Literal["pending", "running", "done", "failed", "cancelled", "unknown"]

FINISHED: tuple[JobState, ...] = ("done", "failed", "cancelled")
"""States that a job does not leave."""

UNFINISHED: tuple[JobState, ...] = ("pending", "running", "unknown")
"""The others."""
