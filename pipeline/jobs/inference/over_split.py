"""A trained model over the frames of a split: what a validation and a prediction have in common."""

from dataclasses import dataclass, replace
from typing import Any

from catalog.errors import InvalidInput
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset
from pipeline.datasets.chosen_split import chosen_split
from pipeline.jobs.inference.chosen_model import ChosenModel, chosen_model
from pipeline.jobs.installed import package_of
from pipeline.jobs.job_input import JobInput, job_input
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import JobPaths, Stage
from pipeline.jobs.resources import Resources
from pipeline.jobs.run import bad_frames_flags, training_program
from pipeline.jobs.submit import Plan


@dataclass(frozen=True)
class ModelOverSplit:
    """A trained model and the frames of a split that it is run over, fanned out over workers.

    Attributes:
        model: The model.
        frames: The dataset.
        split: Of the dataset.
        workers: Shards, each a process of its own.
        needs: What the job asks of the machines.
        settings: As the job's record shows them.
        flags: Of the training program, for its every mode.
    """

    model: ChosenModel
    frames: JobInput
    split: str
    workers: int
    needs: Resources
    settings: dict[str, Any]
    flags: list[str]

    def command(self, mode: str, paths: JobPaths) -> list[str]:
        """The training program in a mode, with all flags but a shard's."""
        # One thread each, so that scores do not depend on the number of shards to the last digit.
        modes = ["--exec_mode", mode, "--split", self.split, "--threads", "1"]
        program = [*training_program(), *self.frames.flags(paths)]
        program += ["--model_dir", str(self.model.folder_in(paths))]
        return [*program, *self.flags, *modes, "--results_dir", str(paths.results)]

    def plan(self, paths: JobPaths, stages: tuple[Stage, ...], results: dict[str, str]) -> Plan:
        """The job's plan, of its stages and the paths of its results."""
        return Plan(
            stages,
            {"model_dir": str(self.model.folder_in(paths)), **self.frames.shown, **results},
            self.workers,
            settings=self.settings,
            reads=self.frames.reads,
            staging=self.frames.beside(paths, self.split, self.workers),
        )


def model_over_split(
    records: RecordStore,
    queue: JobQueue,
    model: str,
    dataset: Dataset,
    *,
    workers: int,
    split: str | None,
    trust_model: bool,
    bad_frames: str | None,
    stage: bool,
    start_after: float | None,
    resources: Resources,
) -> ModelOverSplit:
    """The plan that a validation and a prediction share; see submit_validation.

    Raises:
        InvalidInput: Workers < 1, the model is not trained or knows other classes, or a source is
            not mounted.
        BadFile: The model's description is damaged.
        StorageError: A source's mount is not there.
        NotFound: There is no such model.
        UnknownName: The dataset has no such split.
    """
    if workers < 1:
        raise InvalidInput(f"workers {workers}: expected at least 1")
    trained = chosen_model(records, model, trusts=trust_model)
    packages = ("tensorflow", *package_of(trained.network))
    needs = replace(resources, ranks=workers, packages=packages)
    frames = job_input(records, queue, dataset, stage=stage, start_after=start_after)
    split = chosen_split(frames.whole, split, "validation")
    trained.check_classes(frames.whole.header.classes, dataset.name)
    network = ["--model", trained.network] if trained.network else []
    flags = [*network, *bad_frames_flags(bad_frames)]
    settings: dict[str, Any] = {"model": model, "workers": workers, "split": split}
    settings |= frames.settings
    if trust_model:
        flags.append("--trust_model")
        settings["trust_model"] = True
    if bad_frames:
        settings["bad_frames"] = bad_frames
    return ModelOverSplit(trained, frames, split, workers, needs, settings, flags)
