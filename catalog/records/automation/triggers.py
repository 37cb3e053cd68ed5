"""Triggers and their runs, as they are recorded."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from catalog.errors import InvalidInput
from catalog.records.kinds import TRIGGER_RUNS, TRIGGERS
from catalog.records.named import Named
from catalog.records.reading import Records
from catalog.values import now

if TYPE_CHECKING:  # reading does without SQLAlchemy
    from catalog.records.automation.tables import Trigger, TriggerRun
    from catalog.records.store import RecordStore
from catalog.text.account_name import check_name

LONGEST_NAME = 96
"""Characters: the names of its jobs and datasets begin with a trigger's."""

RUNNING, DONE, FAILED = "running", "done", "failed"
"""States of runs."""

_TRIGGERS = Named("trigger", TRIGGERS, "framesift trigger list and GET /v1/triggers list them")
listed, recorded, change = _TRIGGERS.listed, _TRIGGERS.recorded, _TRIGGERS.change
remove = _TRIGGERS.remove
"""The triggers; with one, its runs are removed, and their jobs stay."""


def add(records: "RecordStore", trigger: "Trigger") -> "Trigger":
    """Keep a new trigger.

    Raises:
        InvalidInput: Its name cannot be used.
        AlreadyExists: Its name is taken.
    """
    check_name("trigger", trigger.name)
    if len(trigger.name) > LONGEST_NAME:
        raise InvalidInput(
            f"trigger name '{trigger.name}' has {len(trigger.name)} characters; expected "
            f"{LONGEST_NAME} at most: the names of its jobs begin with it"
        )
    return _TRIGGERS.add(records, trigger)


def begin_run(records: "RecordStore", trigger: "Trigger", run: "TriggerRun") -> "TriggerRun":
    """Keep a new run; from here on only frames beyond those of now count."""
    from sqlalchemy import update

    from catalog.records.automation.tables import Trigger

    with records.session() as session:
        run.trigger_id, run.state, run.jobs = trigger.id, RUNNING, []
        session.add(run)
        if trigger.condition:
            session.execute(
                update(Trigger).where(Trigger.id == trigger.id).values(base_frames=run.frames)
            )
    return run


def keep_run(records: "RecordStore", number: int, **columns: Any) -> "TriggerRun":
    """Give a run other values of columns."""
    from catalog.records.automation.tables import TriggerRun

    with records.session() as session:
        run = session.get_one(TriggerRun, number)
        for column, value in columns.items():
            setattr(run, column, value)
        return run


def end_run(records: "RecordStore", number: int, state: str, error: str = "") -> "TriggerRun":
    """Keep how a run ended."""
    return keep_run(records, number, state=state, error=error, finished=now())


def unfinished_runs(records: "RecordStore") -> "list[tuple[Trigger, TriggerRun]]":
    """The runs that have not ended, with their triggers, oldest first."""
    from sqlalchemy import select

    from catalog.records.automation.tables import Trigger, TriggerRun

    query = (
        select(Trigger, TriggerRun)
        .join(TriggerRun, TriggerRun.trigger_id == Trigger.id)
        .where(TriggerRun.state == RUNNING)
        .order_by(TriggerRun.id)
    )
    with records.reading() as session:
        return [(trigger, run) for trigger, run in session.execute(query)]


def runs_of(records: Records, trigger: "Trigger", limit: int) -> "Sequence[TriggerRun]":
    """A trigger's newest runs, newest first."""
    of_it = "trigger_id = :trigger"
    return records.select(TRIGGER_RUNS, of_it, order="id DESC", limit=limit, trigger=trigger.id)


def last_run(records: Records, trigger: "Trigger") -> "TriggerRun | None":
    """A trigger's newest run; None before the first."""
    return next(iter(runs_of(records, trigger, 1)), None)
