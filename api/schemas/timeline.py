"""Tasks of a job as JSON, the moves that they made, and their logs."""

from datetime import datetime
from typing import TYPE_CHECKING, cast

from pydantic import Field

from api.schemas.base import EXAMPLE_TIME, Schema, iso_time
from pipeline.jobs.state import JobState

if TYPE_CHECKING:  # commands that ask a server do without the records' database
    from catalog.records.tables import Task, TaskMove


class TaskBody(Schema):
    """A step of a job."""

    name: str = Field(
        description="select, stage, prepare, run, collect, evict or migrate", examples=["run"]
    )
    state: JobState = Field(examples=["running"])
    attempt: int = Field(description="How often it was started.", examples=[1])
    attempts: int = Field(description="How often it may start without a user's word.", examples=[3])
    backend: str = Field(description="Where it runs.", examples=["local"])
    waits: str = Field(description="What it waits for; else empty.", examples=[""])
    error: str = Field(examples=[""])
    submitted: str | None = Field(examples=[EXAMPLE_TIME])
    started: str | None = Field(examples=[EXAMPLE_TIME])
    finished: str | None = Field(examples=[None])

    @classmethod
    def of(cls, task: "Task", folder: str, shown_folder: str) -> "TaskBody":
        """A record's; its paths begin with the folder that the caller may know."""
        return cls(
            name=task.name,
            state=cast(JobState, task.state),
            attempt=task.attempt,
            attempts=task.most_attempts,
            backend=task.backend,
            waits=task.waits.replace(folder, shown_folder),
            error=task.error.replace(folder, shown_folder),
            submitted=_time(task.submitted),
            started=_time(task.started),
            finished=_time(task.finished),
        )


class MoveBody(Schema):
    """A change of a task's state."""

    at: str = Field(examples=[EXAMPLE_TIME])
    task: str = Field(examples=["run"])
    attempt: int = Field(examples=[1])
    before: str = Field(description="Empty for a task that is new.", examples=["pending"])
    after: JobState = Field(examples=["running"])
    why: str = Field(description="Of a failure or a further attempt; else empty.", examples=[""])

    @classmethod
    def of(cls, move: "TaskMove", folder: str, shown_folder: str) -> "MoveBody":
        """A record's; its paths begin with the folder that the caller may know."""
        return cls(
            at=iso_time(move.at),
            task=move.task,
            attempt=move.attempt,
            before=move.before,
            after=cast(JobState, move.after),
            why=move.why.replace(folder, shown_folder),
        )


class TimelineAnswer(Schema):
    """Every change of the states of a job's tasks, the first one first."""

    moves: list[MoveBody]


class LogSizeBody(Schema):
    """A log of a job."""

    name: str = Field(description="Of a step or a command.", examples=["train-0"])
    bytes: int = Field(description="That it has by now.", examples=[40_213])


class LogSizesAnswer(Schema):
    """A job's logs, in the order in which they are shown."""

    logs: list[LogSizeBody]


def _time(time: datetime | None) -> str | None:
    return None if time is None else iso_time(time)
