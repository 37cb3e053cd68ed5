"""Attempts' usage of machines: cores and GPUs times seconds, and the seconds of waiting."""

from datetime import datetime

from catalog.records.tables import Job, Task
from pipeline.jobs.workflow.task_paths import RUN


def add_used(job: Job, task: Task) -> None:
    """Add to a job's record what an attempt of a task used, which has ended."""
    end = task.finished
    job.wait_s += _seconds(task.submitted, task.started or end)
    ran_s = _seconds(task.started, end)
    cores, gpus = reserved(job) if task.name == RUN else (1, 0)
    job.core_s += cores * ran_s
    job.gpu_s += gpus * ran_s


def reserved(job: Job) -> tuple[int, int]:
    """Cores and GPUs that a job's own work reserves: of each rank, one core at least."""
    resources = job.request.get("resources") or {}
    workers = (job.request.get("settings") or {}).get("workers") or 1
    ranks = resources.get("ranks") or workers
    return ranks * (resources.get("cores") or 1), ranks * (resources.get("gpus") or 0)


def _seconds(start: datetime | None, end: datetime | None) -> float:
    """Seconds between two moments; 0 where one is missing, or a clock was set back between them."""
    return 0.0 if start is None or end is None else max(0.0, (end - start).total_seconds())
