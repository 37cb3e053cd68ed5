"""Triggers and their runs as JSON."""

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from api.schemas.base import EXAMPLE_TIME, Numbered, PageAnswer, Schema, iso_time

if TYPE_CHECKING:  # commands that ask a server do without the records' database
    from catalog.records.automation.tables import Trigger, TriggerRun


class TriggerRunBody(Numbered):
    """The jobs that a trigger began at one time."""

    trigger: str = Field(examples=["bikes"])
    cause: Literal["frames", "schedule"] = Field(examples=["frames"])
    state: Literal["running", "done", "failed"] = Field(examples=["done"])
    frames: int = Field(description="That its condition found.", examples=[1_204])
    snapshot: int = Field(description="Of the catalog; 0 without a condition.", examples=[17])
    dataset: str | None = Field(
        description="Of the frames; null where no job needs it.", examples=["bikes@3"]
    )
    jobs: list[str] = Field(examples=[["bikes-4-train1", "bikes-4-validate2"]])
    error: str = Field(description="Why it failed.", examples=[""])
    started: str = Field(examples=[EXAMPLE_TIME])
    finished: str | None = Field(examples=[EXAMPLE_TIME])

    @classmethod
    def of(cls, run: "TriggerRun", trigger: str) -> "TriggerRunBody":
        """A record's."""
        body = cls(
            trigger=trigger,
            cause=run.cause,  # type: ignore[arg-type]
            state=run.state,  # type: ignore[arg-type]
            frames=run.frames,
            snapshot=run.snapshot,
            dataset=run.dataset or None,
            jobs=run.jobs,
            error=run.error,
            started=iso_time(run.started),
            finished=None if run.finished is None else iso_time(run.finished),
        )
        body._number = run.id
        return body


class TriggerBody(Schema):
    """A trigger."""

    name: str = Field(examples=["bikes"])
    when: str | None = Field(
        description="A WHERE body over frames.",
        examples=["bicycle > 0 AND camera = 'front_center'"],
    )
    min_frames: int = Field(description="More than at its last start.", examples=[500])
    quiet_s: int = Field(description="[s]", examples=[60])
    schedule: dict[str, Any] | None = Field(examples=[None])
    split: str | None = Field(examples=["train=0.8,validation=0.2"])
    then: list[dict[str, Any]] = Field(
        examples=[[{"kind": "train", "max_steps": 300}, {"kind": "validate"}]]
    )
    enabled: bool
    owner: str = Field(examples=["dora"])
    frames: int = Field(description="When they were counted last.", examples=[1_240])
    new_frames: int = Field(description="Of these more than at its last start.", examples=[36])
    error: str = Field(description="Why it cannot start; empty otherwise.", examples=[""])
    created: str = Field(examples=[EXAMPLE_TIME])
    last_run: TriggerRunBody | None = Field(description="Null before the first.")

    @classmethod
    def of(cls, trigger: "Trigger", last: "TriggerRun | None") -> "TriggerBody":
        """A record's, with its newest run."""
        return cls(
            name=trigger.name,
            when=trigger.condition or None,
            min_frames=trigger.min_frames,
            quiet_s=trigger.quiet_s,
            schedule=trigger.schedule,
            split=trigger.split or None,
            then=trigger.steps,
            enabled=trigger.enabled,
            owner=trigger.owner,
            frames=trigger.frames,
            new_frames=max(0, trigger.frames - trigger.base_frames),
            error=trigger.error,
            created=iso_time(trigger.created),
            last_run=None if last is None else TriggerRunBody.of(last, trigger.name),
        )


class TriggersAnswer(PageAnswer):
    """Triggers by name."""

    triggers: list[TriggerBody]


class TriggerRunsAnswer(PageAnswer):
    """Runs of a trigger, newest first."""

    runs: list[TriggerRunBody]
