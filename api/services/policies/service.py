"""Policies: what can be done with them, and what starts those whose time has come."""

import builtins
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from api.schemas import home_orders
from api.schemas.policies import NewPolicy, PolicyBody, PolicyChange, RunBody
from api.services.call import Call, Service
from api.services.policies.rights import PolicyRights
from catalog.errors import InvalidInput, NotFound
from catalog.policies import policies as policy_records
from catalog.policies import runs as policy_runs
from catalog.policies.runs import ACTIVE
from catalog.records.expected_version import ExpectedVersion, to_change
from catalog.records.jobs import recorded_job
from catalog.values import now
from pipeline.policies.actions import BATCH_ROWS
from pipeline.policies.schedule import NOW, check_schedule, is_due, last_of

if TYPE_CHECKING:  # imported where it is used: short commands do without
    from api.schemas.jobs import JobBody
    from catalog.records.policy_tables import Policy, PolicyRun
    from catalog.records.tables import Job

_MOST_RUNS = 1_000


class Policies(Service):
    """Policies of a home, as far as the caller may see and change them: see PolicyRights."""

    def __init__(self, session: Call) -> None:
        """Policies of the whole home: rights go by their collections, which limit the rows, too."""
        super().__init__(session)
        self._workspace = session.whole

    @property
    def _rights(self) -> PolicyRights:
        return PolicyRights.of(self._session.caller, self._workspace.readable_records)

    def list(self) -> list[PolicyBody]:
        """The policies that the caller may see, by name, with their newest runs."""
        policies = policy_records.listed(self._workspace.readable_records)
        return [self._body(policy) for policy in policies if self._rights.sees(policy)]

    def get(self, name: str) -> PolicyBody:
        """A policy, with its newest run."""
        return self._body(self._policy(name))

    def add(self, name: str, action: str, parameters: Mapping[str, Any], **more: Any) -> PolicyBody:
        """Keep a policy, which runs on its schedule or when it is told to."""
        request = NewPolicy.model_validate(
            {"name": name, "action": action, "parameters": dict(parameters), **more}
        )
        return self.keep(request.model_dump() | {"schedule": _schedule(request.schedule)})

    def keep(self, columns: Mapping[str, Any], *, starts: bool = False) -> PolicyBody:
        """Keep a policy of these values; as `add`.

        Args:
            columns: By column of catalog.records.policy_tables.Policy.
            starts: Whether it begins to run at once where its schedule is NOW.
        """
        from api.services.policies.actions import check
        from catalog.records.policy_tables import Policy

        owner, records = self._session.caller.owner, self._workspace.records
        policy = Policy(owner=owner.name, account=owner.account, updated_by=owner.name, **columns)
        self._rights.limit(self._workspace, policy)
        check(self._workspace, policy)
        policy_records.add(records, policy)
        return self._started(policy) if starts else PolicyBody.of(policy, None)

    def change(
        self, name: str, *, expected: ExpectedVersion | None = None, **changes: Any
    ) -> PolicyBody:
        """Change a policy that does not run just now.

        Args:
            **changes: The fields of PolicyChange that are to change.
        """
        columns = PolicyChange(**changes).model_dump(exclude_unset=True)
        if "schedule" in columns:
            columns["schedule"] = _schedule(columns["schedule"])
        return self.keep_changes(name, columns, expected=expected)

    def keep_changes(
        self,
        name: str,
        columns: Mapping[str, Any],
        *,
        starts: bool = False,
        expected: ExpectedVersion | None = None,
    ) -> PolicyBody:
        """Change a policy to these values; as `change`.

        Args:
            columns: By column of catalog.records.policy_tables.Policy; None changes nothing.
            starts: Whether it begins to run at once where NOW is its schedule, and among them.
        """
        from api.services.policies.actions import check

        policy, rights = self._idle_on_paper(name, expected), self._rights
        rights.check_change(policy)
        changes = {column: value for column, value in columns.items() if value is not None}
        for column, value in changes.items():
            setattr(policy, column, value)
        rights.limit(self._workspace, policy)
        check(self._workspace, policy)
        if policy.collections:
            changes["collections"] = policy.collections
        changed = policy_records.change(
            self._workspace.records, name, rights.user, changes, expected
        )
        return self._started(changed) if starts and "schedule" in changes else self._body(changed)

    def remove(self, name: str, *, expected: ExpectedVersion | None = None) -> None:
        """Forget a policy and its runs; tags that it set stay: catalog.policies.policies.remove."""
        self._rights.check_change(self._idle_on_paper(name, expected))
        policy_records.remove(self._workspace.records, name, expected)

    def runs(self, name: str, *, limit: int = _MOST_RUNS) -> builtins.list[RunBody]:
        """The newest runs of a policy, newest first."""
        from pipeline.policies import runs

        store, records = self._workspace.whole_catalog, self._workspace.records
        history = runs.history(store, records, self._policy(name), limit)
        return [RunBody.of(run, name) for run in history]

    def begin(self, name: str) -> "JobBody":
        """Run a policy now, whatever its schedule; the job that does it."""
        from api.schemas.jobs import JobBody

        policy = self._policy(name)
        self._rights.check_run(policy)
        run = self._begun(policy)
        return JobBody.of(
            recorded_job(self._workspace.records, run.job), self._session.workspace.place
        )

    def tell(self, name: str, action: str) -> None:
        """Have a policy's run pause, resume, or end: pipeline.policies.runs.ask.

        Args:
            action: "pause", "resume" or "kill".
        """
        from pipeline.policies import runs

        policy = self._policy(name)
        self._rights.check_run(policy)
        runs.ask(self._workspace.whole_catalog, self._workspace.records, policy, action)

    def run(self, name: str, *, run_id: str = "", batch_rows: int = BATCH_ROWS) -> RunBody:
        """Run a policy in this process; the run once it has ended.

        Args:
            run_id: A run that was begun elsewhere; a new one where it is empty.
            batch_rows: Files of one commit.
        """
        from api.services.policies.actions import work_of
        from pipeline.policies import runs

        store, records = self._workspace.whole_catalog, self._workspace.records
        policy = self._policy(name)
        work = work_of(self._workspace, policy, batch_rows)
        if run_id:
            run = self._active_run(policy, run_id)
        else:
            runs.check_active(policy)
            runs.newest(store, records, policy)
            run = policy_runs.begin(records, policy)
        return RunBody.of(runs.perform(store, records, policy, run, work), name)

    def start_due(self) -> builtins.list[RunBody]:
        """Start the policies whose time has come, as jobs; their runs."""
        from pipeline.policies import runs

        started, records = [], self._workspace.records
        for policy in policy_records.listed(records):
            last = runs.newest(self._workspace.whole_catalog, records, policy)
            idle = last is None or last.state not in ACTIVE
            until = now()
            since = last_of([policy.updated, *([last.started] if last is not None else [])], until)
            if idle and policy.state.lower() == "active" and is_due(policy.schedule, since, until):
                started.append(RunBody.of(self._begun(policy), policy.name))
        return started

    def _policy(self, name: str) -> "Policy":
        policy = policy_records.recorded(self._workspace.readable_records, name)
        self._rights.check_seen(policy)
        return policy

    def _started(self, policy: "Policy") -> PolicyBody:
        """The policy, running by now where its schedule is NOW and it is active."""
        if policy.schedule == NOW and policy.state.lower() == "active":
            self._begun(policy)
        return self._body(policy)

    def _body(self, policy: "Policy") -> PolicyBody:
        newest = policy_runs.last(self._workspace.readable_records, policy.id)
        if newest is not None and newest.state in ACTIVE:
            from pipeline.policies import runs  # with the catalog's database

            newest = runs.newest(self._workspace.whole_catalog, self._workspace.records, policy)
        return PolicyBody.of(policy, newest)

    def _idle_on_paper(self, name: str, expected: ExpectedVersion | None) -> "Policy":
        """The policy to change; a run of it whose process has ended is recorded as ended."""
        from pipeline.policies import runs

        policy = to_change("policy", name, expected, lambda: self._policy(name))
        runs.newest(self._workspace.whole_catalog, self._workspace.records, policy)
        return policy

    def _begun(self, policy: "Policy") -> "PolicyRun":
        """A run as a job; its record, which names the job."""
        from api.services.jobs.home_orders import begin_order
        from pipeline.policies import runs

        workspace = self._workspace
        store, records = workspace.whole_catalog, workspace.records
        queue = self._session.job_queue
        if not queue.user:
            queue = replace(queue, user=policy.owner, account=policy.account)

        def begin(run: "PolicyRun") -> "Job":
            order = home_orders.PolicyRun(policy=policy.name, run=run.run_id)
            return begin_order(workspace, order, policy.name, queue=queue)

        run = runs.start(store, records, policy, begin)
        return policy_runs.recorded(records, run.run_id) or run

    def _active_run(self, policy: "Policy", run_id: str) -> "PolicyRun":
        run = policy_runs.recorded(self._workspace.records, run_id)
        if run is None or run.policy_id != policy.id:
            raise NotFound("run", run_id[:80], f"it is none of policy {policy.name}")
        if run.state not in ACTIVE:
            raise InvalidInput(f"run {run_id} of policy {policy.name} has ended: it is {run.state}")
        return run


def _schedule(parts: dict[str, Any] | None) -> Any:
    """A schedule as records have it."""
    if parts is None:
        return NOW
    check_schedule(parts)
    return parts
