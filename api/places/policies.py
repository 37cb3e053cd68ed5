"""Policies, as JSON: see api.services.policies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from api.cli import chosen
from api.places.long_work import policy_run
from catalog.errors import InvalidInput
from pipeline.policies.actions import BATCH_ROWS

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
    if chosen.server() is not None:
        return ServerPolicies(chosen.client())
    from api.places.home.policies import HomePolicies

    return HomePolicies(chosen.home())


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
