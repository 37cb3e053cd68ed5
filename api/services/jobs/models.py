"""Models, which training jobs made: what can be done with them."""

from api.schemas.jobs import ModelBody
from api.workspace import Workspace
from catalog.errors import NotFound
from catalog.records.jobs import recorded_job, recorded_jobs
from pipeline.jobs.follow import refresh, refresh_all


class Models:
    """Models of a home: its training jobs that are done."""

    def __init__(self, workspace: Workspace) -> None:
        """Those that the workspace's caller may see."""
        self._workspace = workspace

    def list(self, *, before: int | None = None, limit: int | None = None) -> list[ModelBody]:
        """Models, newest first.

        Args:
            before: Only those of jobs whose number is lower.
            limit: At most this many.
        """
        records = self._workspace.records
        refresh_all(records)
        jobs = recorded_jobs(records, kind="train", states=["done"], before=before, limit=limit)
        return [ModelBody.of(job, self._workspace.place) for job in jobs]

    def get(self, name: str) -> ModelBody:
        """A model, by the name of its training job.

        Raises:
            NotFound: There is no such job, or it is no training that is done.
        """
        records = self._workspace.records
        job = refresh(records, recorded_job(records, name))
        if job.kind != "train" or job.state != "done":
            raise NotFound("model", name, f"job {name} is of kind {job.kind}, and {job.state}")
        return ModelBody.of(job, self._workspace.place)
