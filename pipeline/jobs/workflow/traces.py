"""Spans of jobs: each attempt of each task, for whatever backend it ran on.

The process that records an attempt's end makes its span out of the times in the records: so nodes
need neither OpenTelemetry nor a way to the collector.
"""

from collections.abc import Callable, Mapping
from functools import partial

from catalog.records.tables import Job, Task
from catalog.traces.spans import Value, record
from catalog.values import now
from pipeline.jobs.workflow.moves import TRACEPARENT


def parent_of(job: Job) -> Mapping[str, str] | None:
    """What a job's spans belong to; None where it was ordered without traces."""
    parent = job.request.get(TRACEPARENT)
    return {TRACEPARENT: parent} if parent else None


def about(job: Job, task: Task) -> dict[str, Value]:
    """Attributes of the spans of a task."""
    return {
        "framesift.job": job.name,
        "framesift.job.kind": job.kind,
        "framesift.job.step": task.name,
        "framesift.job.attempt": task.attempt,
        "framesift.job.backend": task.backend,
    }


def span_of_attempt(job: Job, task: Task) -> Callable[[], None]:
    """Makes the span of the attempt that a task has ended, to be called when that is committed."""
    parent = job.request.get(TRACEPARENT)
    if not parent:
        return _none
    ended = task.finished or now()
    submitted = task.submitted or ended
    began = task.started or submitted
    attributes = about(job, task) | {
        "framesift.job.state": task.state,
        "framesift.job.wait_s": max(0.0, round((began - submitted).total_seconds(), 3)),
    }
    error = "" if task.state == "done" else task.state
    return partial(
        record, "job attempt", attributes, parent=parent, began=began, ended=ended, error=error
    )


def _none() -> None:
    """The job was ordered without traces."""
