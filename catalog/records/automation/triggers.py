"""Triggers and their runs, as they are recorded."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from catalog.errors import AlreadyExists, InvalidInput, NotFound
from catalog.records.automation.tables import Trigger, TriggerRun
from catalog.records.store import RecordStore
from catalog.records.tables import now
from catalog.text.account_name import check_name, is_name

LONGEST_NAME = 96
"""Characters: the names of its jobs and datasets begin with a trigger's."""

RUNNING, DONE, FAILED = "running", "done", "failed"
"""States of runs."""


def add(records: RecordStore, trigger: Trigger) -> Trigger:
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
    with records.session() as session:
        if session.scalar(select(Trigger.id).where(Trigger.name == trigger.name)) is not None:
            raise AlreadyExists("trigger", trigger.name, "choose another name or remove it first")
        session.add(trigger)
    return trigger


def listed(records: RecordStore) -> list[Trigger]:
    """Every trigger, by name."""
    with records.reading() as session:
        return list(session.scalars(select(Trigger).order_by(Trigger.name)))


def recorded(records: RecordStore, name: str) -> Trigger:
    """The trigger of that name."""
    with records.reading() as session:
        return _get(session, name)


def change(records: RecordStore, name: str, **columns: Any) -> Trigger:
    """Give a trigger other values of columns."""
    with records.session() as session:
        trigger = _get(session, name)
        for column, value in columns.items():
            setattr(trigger, column, value)
        return trigger


def remove(records: RecordStore, name: str) -> None:
    """Forget a trigger and its runs; their jobs stay."""
    with records.session() as session:
        session.delete(_get(session, name))


def begin_run(records: RecordStore, trigger: Trigger, run: TriggerRun) -> TriggerRun:
    """Keep a new run; from here on only frames beyond those of now count."""
    with records.session() as session:
        run.trigger_id, run.state, run.jobs = trigger.id, RUNNING, []
        session.add(run)
        if trigger.condition:
            session.execute(
                update(Trigger).where(Trigger.id == trigger.id).values(base_frames=run.frames)
            )
    return run


def keep_run(records: RecordStore, number: int, **columns: Any) -> TriggerRun:
    """Give a run other values of columns."""
    with records.session() as session:
        run = session.get_one(TriggerRun, number)
        for column, value in columns.items():
            setattr(run, column, value)
        return run


def end_run(records: RecordStore, number: int, state: str, error: str = "") -> TriggerRun:
    """Keep how a run ended."""
    return keep_run(records, number, state=state, error=error, finished=now())


def unfinished_runs(records: RecordStore) -> list[tuple[Trigger, TriggerRun]]:
    """The runs that have not ended, with their triggers, oldest first."""
    query = (
        select(Trigger, TriggerRun)
        .join(TriggerRun, TriggerRun.trigger_id == Trigger.id)
        .where(TriggerRun.state == RUNNING)
        .order_by(TriggerRun.id)
    )
    with records.reading() as session:
        return [(trigger, run) for trigger, run in session.execute(query)]


def runs_of(records: RecordStore, trigger: Trigger, limit: int) -> Sequence[TriggerRun]:
    """A trigger's newest runs, newest first."""
    query = select(TriggerRun).where(TriggerRun.trigger_id == trigger.id)
    with records.reading() as session:
        return session.scalars(query.order_by(TriggerRun.id.desc()).limit(limit)).all()


def last_run(records: RecordStore, trigger: Trigger) -> TriggerRun | None:
    """A trigger's newest run; None before the first."""
    return next(iter(runs_of(records, trigger, 1)), None)


def _get(session: Session, name: str) -> Trigger:
    query = select(Trigger).where(Trigger.name == name)
    trigger = session.scalar(query) if is_name(name) else None
    if trigger is None:
        raise NotFound(
            "trigger", name[:140], "framesift trigger list and GET /v1/triggers list them"
        )
    return trigger
