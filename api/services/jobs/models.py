"""Models, which training jobs made: what can be done with them."""

import builtins
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from api.schemas.jobs import ModelBody
from api.services.call import Service
from api.services.jobs.current import bring_up_to_date, current_job
from catalog.errors import NotFound
from catalog.records.datasets import datasets_by_id
from catalog.records.jobs import recorded_jobs

if TYPE_CHECKING:
    from api.schemas.improvements import ImprovementBody
    from catalog.records.tables import Job


class Models(Service):
    """Models of a home: its training jobs that are done."""

    def list(self, *, before: int | None = None, limit: int | None = None) -> list[ModelBody]:
        """Models, newest first.

        Args:
            before: Only those of jobs whose number is lower.
            limit: At most this many.
        """
        bring_up_to_date(self._workspace)
        records = self._workspace.readable_records
        jobs = recorded_jobs(records, kind="train", states=["done"], before=before, limit=limit)
        return self._bodies(jobs)

    def newest(self, *, limit: int, holding: str = "") -> builtins.list[str]:
        """Names of the newest models, newest first.

        Args:
            limit: At most this many.
            holding: Only those whose name holds this text, in whatever case.
        """
        bring_up_to_date(self._workspace)
        records = self._workspace.readable_records
        jobs = recorded_jobs(records, kind="train", states=["done"], limit=limit, holding=holding)
        return [job.name for job in jobs]

    def get(self, name: str) -> ModelBody:
        """A model, by the name of its training job.

        Raises:
            NotFound: There is no such job, or it is no training that is done.
        """
        try:
            job = current_job(self._workspace, name)
        except NotFound as error:
            raise NotFound(
                "model",
                name,
                "expected the name of a training job; framesift models list and GET /v1/models "
                "list them",
            ) from error
        if job.kind != "train" or job.state != "done":
            raise NotFound("model", name, f"job {name} is of kind {job.kind}, and {job.state}")
        return self._bodies([job])[0]

    def _bodies(self, jobs: "Sequence[Job]") -> builtins.list[ModelBody]:
        """The models of these jobs, with what their datasets came of."""
        datasets = datasets_by_id(
            self._workspace.readable_records, [job.dataset_id for job in jobs]
        )
        home = self._workspace.place
        return [
            ModelBody.of(job, _settings(job), home, datasets.get(job.dataset_id or 0))
            for job in jobs
        ]

    def improve(
        self,
        name: str,
        *,
        frames: int = 100,
        label: int = 0,
        per_scene: int | None = None,
        min_gap_s: float | None = None,
        seed: int = 0,
        at: int | None = None,
    ) -> "ImprovementBody":
        """Add the frames that a model lacks to what it was trained on: api.services.jobs.improve.

        Args:
            name: The model.
            frames: How many labelled frames to add, as a new version of its dataset; 0 for none.
            label: How many unlabelled frames to list that are most worth a label.
            per_scene: Most of one scene.
            min_gap_s: They are at least so far from frames that are validated with [s].
            seed: Decides between frames that are worth the same.
            at: The catalog snapshot that they are of; the newest when None.
        """
        from api.services.jobs.improve import Asked, improve  # with numpy, pyarrow

        request = Asked(frames, label, per_scene, min_gap_s, seed, at)
        return improve(self._workspace, name, request)


_OF_EVALUATIONS = ("evaluate_every", "evaluate_split")


def _settings(job: "Job") -> dict[str, Any]:
    """The settings that a run had: what was asked for, and else what its run.json says."""
    from pipeline.jobs.request import read_json
    from pipeline.runs.orders import TRAINING_SETTINGS

    settings: dict[str, Any] = dict(job.request.get("settings", {}))
    record = read_json(Path(job.paths["model_dir"]) / "run.json")
    of_run = record.get("settings")
    had: Mapping[str, Any] = of_run if isinstance(of_run, dict) else {}
    for name in TRAINING_SETTINGS:
        if had.get("exec_mode") != "train_and_evaluate" and name in _OF_EVALUATIONS:
            continue
        if settings.get(name) is None and had.get(name):
            settings[name] = had[name]
    return settings
