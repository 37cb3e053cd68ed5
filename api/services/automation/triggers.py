"""Triggers: kept, listed, removed, enabled; api.services.automation.starting begins their jobs."""

import builtins
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from api.schemas.automation.triggers import TriggerBody, TriggerRunBody
from api.services.call import Call, Service
from api.services.jobs.programs import need_programs
from catalog.errors import InvalidInput
from catalog.records.automation import triggers as records_of
from catalog.values import now
from query.question.wrong_value import checked

if TYPE_CHECKING:  # imported where it is used: short commands do without
    from api.schemas.automation.new_triggers import NewTrigger
    from catalog.records.automation.tables import Trigger

_MOST_RUNS = 1_000


class Triggers(Service):
    """Triggers of a home."""

    def list(self) -> list[TriggerBody]:
        """Every trigger, by name, with its newest run."""
        return [self._body(trigger) for trigger in records_of.listed(self._readable_records)]

    def get(self, name: str) -> TriggerBody:
        """A trigger, with its newest run."""
        return self._body(records_of.recorded(self._readable_records, name))

    def add(self, name: str, *, then: Sequence[Mapping[str, Any]], **more: Any) -> TriggerBody:
        """Keep a trigger, which begins jobs from here on.

        Raises:
            InvalidInput: Something of it cannot be used, or nothing would start it.
        """
        from api.schemas.automation.new_triggers import NewTrigger
        from catalog.records.automation.tables import Trigger
        from query.frames.count_frames import as_condition, count_frames
        from query.question.question import Question

        request = checked(NewTrigger, name=name, then=[*map(dict, then)], **more)
        _check(request)
        if any(step.kind == "run" for step in request.then):
            need_programs(self._session)
        steps = [step.model_dump(mode="json", exclude_unset=True) for step in request.then]
        least = request.min_frames
        if least is None:
            least = 0 if request.schedule else 1
        trigger = Trigger(
            name=request.name,
            condition="",
            min_frames=least,
            quiet_s=request.quiet_s,
            schedule=request.schedule,
            split=request.split or "",
            steps=steps,
            **_owner_of(self._session),
        )
        if request.when is not None:
            catalog = self._session.workspace.catalog
            trigger.condition = as_condition(catalog, request.when)
            count, snapshot = count_frames(catalog, Question(where=trigger.condition))
            trigger.frames = trigger.base_frames = count
            trigger.snapshot = snapshot
        self._session.whole.job_queue.make_folder()  # without it nothing drives a home
        records_of.add(self._records, trigger)
        return TriggerBody.of(trigger, None)

    def enable(self, name: str, *, enabled: bool) -> TriggerBody:
        """Have a trigger begin jobs, or no longer; what it has begun goes on."""
        changes = {"since": now()} if enabled else {}
        changed = records_of.change(self._records, name, enabled=enabled, **changes)
        return self._body(changed)

    def remove(self, name: str) -> None:
        """Forget a trigger and its runs; their jobs stay."""
        records_of.remove(self._records, name)

    def runs(self, name: str, *, limit: int = _MOST_RUNS) -> builtins.list[TriggerRunBody]:
        """The newest runs of a trigger, newest first."""
        trigger = records_of.recorded(self._readable_records, name)
        runs = records_of.runs_of(self._readable_records, trigger, limit)
        return [TriggerRunBody.of(run, name) for run in runs]

    def _body(self, trigger: "Trigger") -> TriggerBody:
        return TriggerBody.of(trigger, records_of.last_run(self._readable_records, trigger))


def _owner_of(session: Call) -> dict[str, str]:
    """The columns of a trigger that say whose it is."""
    owner = session.owner
    return {"owner": owner.name, "account": owner.account, "scope": session.caller.scope}


def _check(request: "NewTrigger") -> None:
    """The request makes sense as a whole.

    Raises:
        InvalidInput: It does not.
    """
    from pipeline.datasets.split import parse_split
    from pipeline.policies.schedule import check_schedule

    if request.when is None and request.schedule is None:
        raise InvalidInput(
            "trigger: nothing starts it; give a condition on frames (when), a schedule, or both"
        )
    if request.when is None:
        for name in ("min_frames", "split"):
            if getattr(request, name) is not None:
                raise InvalidInput(f"trigger: {name}: goes with a condition on frames (when)")
    if request.schedule is not None:
        check_schedule(request.schedule)
    elif request.min_frames == 0:
        raise InvalidInput(
            "min_frames 0: without a schedule expected 1 or more frames, or it would start for ever"
        )
    if request.split is not None:
        parse_split(request.split)
    _check_steps(request)


def _check_steps(request: "NewTrigger") -> None:
    """Each step has the dataset and the model that it needs.

    Raises:
        InvalidInput: It has not.
    """
    trains = False
    for number, step in enumerate(request.then, 1):
        if step.dataset is None and request.when is None:
            raise InvalidInput(
                f"then: step {number} ({step.kind}): name a dataset; without a condition on frames "
                "(when) the trigger makes none"
            )
        if getattr(step, "question", None) is not None:
            raise InvalidInput(
                f"then: step {number} ({step.kind}): has a question of its own; a trigger's frames "
                "are those of its condition (when)"
            )
        if step.kind in ("validate", "predict") and step.model is None and not trains:
            raise InvalidInput(
                f"then: step {number} ({step.kind}): name a model, or put a training before it"
            )
        trains = trains or step.kind == "train"
