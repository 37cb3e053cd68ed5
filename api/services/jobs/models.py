"""Models, which trainings and programs made: what can be done with them."""

import builtins
from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from api.schemas.jobs import ModelBody
from api.services.call import Service
from api.services.jobs.current import bring_up_to_date, current_job
from catalog.errors import NotFound
from catalog.records.datasets import datasets_by_id
from catalog.records.jobs import recorded_jobs
from pipeline.jobs.program.paths import ProgramPaths

if TYPE_CHECKING:
    from api.schemas.improvements import ImprovementBody
    from catalog.records.tables import Dataset, Job


_PROGRAMS_AT_ONCE = 200
"""Jobs of programs that are read from the records together."""


class NamedModel(NamedTuple):
    """A model by its name."""

    name: str
    """As orders take it: a job, or JOB/FILE of one whose program wrote several ONNX files."""
    is_onnx: bool
    """Whether it is an ONNX file, which no training goes on from."""


class Models(Service):
    """Models of a home: its trainings that are done, and programs that wrote ONNX files."""

    def list(self, *, before: int | None = None, limit: int | None = None) -> list[ModelBody]:
        """Models, newest first.

        Args:
            before: Only those of jobs whose number is lower.
            limit: At most this many.
        """
        return self._bodies([*islice(self._jobs(before=before, limit=limit), limit)])

    def newest(self, *, limit: int, holding: str = "") -> builtins.list[NamedModel]:
        """The newest models, newest first.

        Args:
            limit: At most this many.
            holding: Only those of jobs whose name holds this text, in whatever case.
        """
        named = (
            NamedModel(name, job.kind == "run")
            for job in self._jobs(limit=limit, holding=holding)
            for name in _names(job)
        )
        return [*islice(named, limit)]

    def get(self, name: str) -> ModelBody:
        """A model, by the name of its job.

        Raises:
            NotFound: There is no such job, it is not done, or it made no model.
        """
        try:
            job = current_job(self._workspace, name)
        except NotFound as error:
            raise NotFound(
                "model",
                name,
                "expected the name of a training job, or of a program's that wrote an ONNX file; "
                "framesift models list and GET /v1/models list them",
            ) from error
        if job.state != "done" or not _names(job):
            wrote = ", and wrote no ONNX file" if (job.kind, job.state) == ("run", "done") else ""
            raise NotFound(
                "model", name, f"job {name} is of kind {job.kind}, and {job.state}{wrote}"
            )
        return self._bodies([job])[0]

    def _jobs(
        self, *, before: int | None = None, limit: int | None = None, holding: str = ""
    ) -> "Iterator[Job]":
        """Jobs that made models, newest first: trainings, and programs that wrote ONNX files."""
        bring_up_to_date(self._workspace)
        trainings = recorded_jobs(
            self._workspace.readable_records, kind="train", states=["done"], before=before,
            limit=limit, holding=holding,
        )  # fmt: skip
        return merge(trainings, self._programs(before, holding), key=lambda job: -job.id)

    def _programs(self, before: int | None, holding: str) -> "Iterator[Job]":
        records = self._workspace.readable_records
        while jobs := recorded_jobs(
            records, kind="run", states=["done"], before=before, limit=_PROGRAMS_AT_ONCE,
            holding=holding,
        ):  # fmt: skip
            yield from filter(_names, jobs)
            before = jobs[-1].id

    def _bodies(self, jobs: "Sequence[Job]") -> builtins.list[ModelBody]:
        """The models of these jobs, with what their datasets came of."""
        datasets = datasets_by_id(
            self._workspace.readable_records, [job.dataset_id for job in jobs]
        )
        return [self._body(job, datasets.get(job.dataset_id or 0)) for job in jobs]

    def _body(self, job: "Job", dataset: "Dataset | None") -> ModelBody:
        home = self._workspace.place
        if job.kind == "train":
            folder = str(job.paths["model_dir"])
            return ModelBody.of(job, folder, _settings(job), [], home, dataset)
        program = ProgramPaths(Path(job.paths["folder"]))
        return ModelBody.of(job, str(program.output), {}, program.onnx_files, home, dataset)

    def improve(
        self,
        name: str,
        *,
        frames: int = 100,
        label: int = 0,
        per_scene: int | None = None,
        min_gap_s: float | None = None,
        seed: int = 0,
        classes: Sequence[str] = (),
        drop: Sequence[str] = (),
        dry_run: bool = False,
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
            classes: Names or tags of the classes that frames are chosen for; all when empty.
            drop: fkeys of frames that are left out of those chosen; no other takes their place.
            dry_run: Save nothing.
            at: The catalog snapshot that they are of; the newest when None.
        """
        from api.services.jobs.improve import Asked, improve  # with numpy, pyarrow

        request = Asked(
            frames, label, per_scene, min_gap_s, seed, at, tuple(classes), tuple(drop), dry_run
        )
        return improve(self._workspace, name, request)

    def proposed_frames(
        self, improvement: "ImprovementBody", columns: Sequence[str]
    ) -> Mapping[str, Mapping[str, Any]]:
        """Columns of an improvement's frames, by fkey, as its snapshot has them.

        Args:
            columns: Of every frame, and class tags.
        """
        from query.frames.sampling import hashes_of
        from query.frames.select_frames import frames_of

        fkeys = [*improvement.to_add, *improvement.to_label]
        hashes = hashes_of(fkeys)
        hashes.sort()
        with self._workspace.catalog.reading(improvement.snapshot) as snapshot:
            rows, _ = frames_of(snapshot, hashes)
        known = [name for name in columns if name in rows.column_names]
        return {row["fkey"]: row for row in rows.select(["fkey", *known]).to_pylist()}


def _names(job: "Job") -> list[str]:
    """The models of a job that is done, by the names that orders take."""
    if job.kind != "run":
        return [job.name] if job.kind == "train" else []
    paths = ProgramPaths(Path(job.paths["folder"]))
    if paths.onnx_file is not None:
        return [job.name]
    return [f"{job.name}/{file}" for file in paths.onnx_files]


_OF_EVALUATIONS = ("evaluate_every", "evaluate_split")


def _settings(job: "Job") -> dict[str, Any]:
    """The settings that a training had: what was asked for, and else what its run.json says."""
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
