"""Checks of the labels of scanned sources: what can be done with them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from api.schemas.home_orders import LabelCheck
from api.schemas.jobs import JobBody
from api.services.call import Service
from api.services.jobs.home_orders import begin_order
from catalog.records.scans import recorded_problems
from catalog.records.sources import recorded_source
from ingest.scan.check_labels import check_labels, check_scanned


class LabelChecks(Service):
    """Checks of labels of a home's sources."""

    def begin(self, order: LabelCheck) -> JobBody:
        """Look at the labels of a source; the job that does it.

        Raises:
            InvalidInput: The source was never scanned.
        """
        source = recorded_source(self._workspace.records, order.source)
        check_scanned(source)
        job = begin_order(
            self._workspace,
            replace(order, source=source.name),
            source.name,
            queue=self._session.job_queue,
        )
        return JobBody.of(job, self._workspace.place)

    def run(self, order: LabelCheck, progress: Callable[[int, int], None]) -> dict[str, Any]:
        """Look at the labels in this process; what they hold, and the problems of the last scans.

        Args:
            order: The source, and how many labels.
            progress: Called with how many labels are done, and how many there are to do.
        """
        workspace = self._workspace
        source = recorded_source(workspace.records, order.source)
        checked, unread = check_labels(
            workspace.catalog,
            source,
            most=order.labels,
            index_folder=workspace.indexes,
            progress=progress,
        )
        problems = recorded_problems(workspace.records, source_id=source.id)
        return {
            **checked.to_json(),
            "labels_unread": unread,
            "problems": [
                {"kind": problem.kind, "file": problem.key, "reason": problem.reason}
                for problem in problems
                if problem.kind != "unknown_colours"
            ],
        }
