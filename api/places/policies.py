"""Policies, as JSON: see api.policies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from api.commands.policy_actions import work_of
from api.places import chosen
from api.places.long_work import policy_run
from api.policies import RunBody, listed, start_due
from api.workspace import Workspace
from catalog import policy_records, policy_runs
from catalog.errors import InvalidInput, NotFound
from catalog.policy_runs import ACTIVE
from catalog.policy_tables import Policy, PolicyRun
from pipeline.policies import runs
from pipeline.policies.tags import BATCH_ROWS

if TYPE_CHECKING:  # it imports httpx, which commands on a home do without
    from framesift import Client

Body = Mapping[str, Any]


class Policies(Protocol):
    """Who has policies."""

    def listed(self) -> Sequence[Body]:
        """Every policy, with its last run."""

    def run(self, name: str, run_id: str, batch_rows: int) -> Body:
        """Run one; the run once it has ended.

        Args:
            name: The policy.
            run_id: A run that was begun elsewhere; a new one where it is empty.
            batch_rows: Files of one commit.
        """

    def due(self) -> Sequence[Body]:
        """Start those whose time has come; their runs."""


def policies() -> Policies:
    """Of the chosen place."""
    if chosen.server() is None:
        return HomePolicies(chosen.home())
    return ServerPolicies(chosen.client())


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


@dataclass(frozen=True)
class ServerPolicies:
    """A server, where a run is a job."""

    server: "Client"

    def listed(self) -> Sequence[Body]:
        """Every policy."""
        return [policy.document for policy in self.server.policies.list()]

    def run(self, name: str, run_id: str, batch_rows: int) -> Body:
        """Have one run there."""
        if run_id or batch_rows != BATCH_ROWS:
            raise InvalidInput(
                "--run and --batch-rows: a server begins runs itself; leave them out"
            )
        return policy_run(self.server, name)

    def due(self) -> Sequence[Body]:
        """Have those started whose time has come."""
        found: Sequence[Body] = self.server.policies.start_due()
        return found
