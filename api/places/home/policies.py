"""Policies of a home."""

from collections.abc import Sequence
from dataclasses import dataclass

from api.cli.commands.policy_actions import work_of
from api.places.policies import Body
from api.services.policies import RunBody, listed, start_due
from api.workspace import Workspace
from catalog.errors import InvalidInput, NotFound
from catalog.policies import policies as policy_records
from catalog.policies import runs as policy_runs
from catalog.policies.runs import ACTIVE
from catalog.policies.tables import Policy, PolicyRun
from pipeline.policies import runs


@dataclass(frozen=True)
class HomePolicies:
    """A home."""

    workspace: Workspace

    def listed(self) -> Sequence[Body]:
        """Every policy."""
        return [body.model_dump() for body in listed(self.workspace)]

    def run(self, name: str, run_id: str, batch_rows: int) -> Body:
        """Run one in this process."""
        store, records = self.workspace.catalog, self.workspace.records
        policy = policy_records.found(records, name)
        work = work_of(self.workspace, policy, batch_rows)
        if run_id:
            begun = self._begun(policy, run_id)
        else:
            runs.check_active(policy)
            runs.newest(store, records, policy)
            begun = policy_runs.begin(records, policy)
        ended = runs.perform(store, records, policy, begun, work)
        return RunBody.of(ended, name).model_dump()

    def due(self) -> Sequence[Body]:
        """Start those whose time has come, as jobs."""
        return [body.model_dump() for body in start_due(self.workspace)]

    def _begun(self, policy: Policy, run_id: str) -> PolicyRun:
        begun = policy_runs.found(self.workspace.records, run_id)
        if begun is None or begun.policy_id != policy.id:
            raise NotFound("run", run_id[:80], f"it is none of policy {policy.name}")
        if begun.state not in ACTIVE:
            raise InvalidInput(
                f"run {run_id} of policy {policy.name} has ended: it is {begun.state}"
            )
        return begun
