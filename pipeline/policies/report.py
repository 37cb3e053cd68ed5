"""Reports on a run between two batches, and takes orders there."""

import time
from dataclasses import dataclass, field

from catalog.policies import runs as policy_runs
from catalog.policies.runs import RunCounts
from catalog.records.store import RecordStore

_LOOK_S = 0.5
"""Interval at which a paused run looks whether it may go on [s]."""

_RECORD_S = 1.0
"""Interval at which a run writes its progress, at the end of a file [s]."""


class Killed(Exception):
    """A run was asked to end."""


@dataclass
class Report:
    """Counts of a policy's run; receives the requests to pause and to end it."""

    records: RecordStore
    number: int
    counts: RunCounts = field(default_factory=RunCounts)
    _recorded: float = 0.0

    def heed(self) -> None:
        """Record the counts; wait while the run is to pause.

        Raises:
            Killed: The run is to end.
        """
        order = policy_runs.update(self.records, self.number, "running", self.counts)
        if order == "pause":
            order = policy_runs.update(self.records, self.number, "paused", self.counts)
            while order == "pause":
                time.sleep(_LOOK_S)
                order = policy_runs.requested_state(self.records, self.number)
            if order == "run":
                policy_runs.update(self.records, self.number, "running", self.counts)
        self._recorded = time.monotonic()
        if order == "kill":
            raise Killed

    def heed_now_and_then(self) -> None:
        """`heed`, at most once a second."""
        if time.monotonic() - self._recorded > _RECORD_S:
            self.heed()
