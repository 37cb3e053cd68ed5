"""Tasks of a job in their order, and the files of each."""

from pathlib import Path

from pipeline.jobs.request import JobPaths

RUN = "run"
"""The task that does a job's own work, on the job's backend."""

POSITIONS = {
    "select": 10, "stage": 20, "fetch": 25, "prepare": 30, RUN: 40, "collect": 50, "evict": 60,
    "migrate": 70,
}  # fmt: skip
"""Tasks in their order, with room for more."""


def step_paths(folder: Path, task: str) -> JobPaths:
    """The files of a task of that name, of the job in ``folder``."""
    return JobPaths(folder if task == RUN else folder / "steps" / task)
