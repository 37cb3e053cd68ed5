"""A trained model over the frames of a split: what a validation and a prediction have in common."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from catalog.errors import InvalidInput
from catalog.records.tables import Dataset
from pipeline.datasets.chosen_split import chosen_split
from pipeline.jobs.inference.chosen_model import ChosenModel, chosen_model
from pipeline.jobs.inference.chosen_onnx import ChosenOnnx, check_stage, chosen_onnx, is_onnx
from pipeline.jobs.inference.chosen_predictions import ChosenPredictions, chosen_predictions
from pipeline.jobs.installed import package_of
from pipeline.jobs.job_input import JobInput, job_input
from pipeline.jobs.request import JobPaths, Stage
from pipeline.jobs.resources import asked_resources
from pipeline.jobs.training import training_program
from pipeline.jobs.work import JobHome, Work
from pipeline.manifest import Manifest
from pipeline.runs.orders import ModelOrder, Validation

Chosen = ChosenModel | ChosenOnnx | ChosenPredictions
"""What frames are scored by."""


@dataclass(frozen=True)
class ModelOverSplit:
    """A trained model and the frames of a split that it is run over, fanned out over workers."""

    order: ModelOrder
    model: Chosen
    frames: JobInput
    split: str

    def command(self, mode: str, paths: JobPaths, more: Sequence[str] = ()) -> list[str]:
        """The training program in a mode, with all flags but a shard's."""
        flags = ["--model", self.model.network] if self.model.network else []
        if self.order.bad_frames is not None:
            flags += ["--bad_frames", self.order.bad_frames]
        if self.order.trust_model:
            flags.append("--trust_model")
        # One thread each, so that scores do not depend on the number of shards to the last digit.
        modes = ["--exec_mode", mode, "--split", self.split, "--threads", "1"]
        program = [*training_program(), *self.frames.flags(paths)]
        program += ["--model_dir", str(self.model.folder_in(paths))]
        return [*program, *flags, *more, *modes, "--results_dir", str(paths.results)]

    def work(
        self,
        paths: JobPaths,
        stages: tuple[Stage, ...],
        results: dict[str, str],
        more_settings: dict[str, Any],
        models: Sequence[Chosen],
    ) -> Work:
        """The job's work, of its stages and the paths of its results.

        Args:
            paths: The job's files.
            stages: What runs.
            results: Paths that its record shows.
            more_settings: What was asked for beside what is common.
            models: All that it reads, whose networks' packages it needs.
        """
        order = self.order
        settings: dict[str, Any] = {
            **({"model": order.model} if order.model else {}), "workers": order.workers,
            "split": self.split, **self.frames.settings,
        }  # fmt: skip
        own = {"trust_model": order.trust_model, "bad_frames": order.bad_frames, **more_settings}
        settings |= {name: value for name, value in own.items() if value}
        writes: list[Callable[[], object]] = [
            partial(model.write, paths) for model in models if not isinstance(model, ChosenModel)
        ]
        checks = [model.check(paths) for model in models if isinstance(model, ChosenOnnx)]
        return Work(
            (*check_stage(checks), *stages),
            asked_resources(order, _packages(models)),
            {"model_dir": str(self.model.folder_in(paths)), **self.frames.shown, **results},
            order.workers,
            settings=settings,
            reads=self.frames.reads,
            staging=self.frames.beside(paths, self.split, order.workers),
            writes=(*self.frames.writes, *writes),
        )


def _packages(models: Sequence[Chosen]) -> tuple[str, ...]:
    """The packages that models are run by; of predictions alone, those of the report."""
    packages = []
    if any(isinstance(model, ChosenModel) for model in models):
        packages.append("tensorflow")
    if any(isinstance(model, ChosenOnnx) for model in models):
        packages.append("onnxruntime")
    networks = [package for model in models for package in package_of(model.network)]
    return (*packages, *networks) or ("matplotlib",)


def model_over_split(
    home: JobHome, order: ModelOrder, dataset: Dataset, manifest: Manifest | None
) -> ModelOverSplit:
    """The model and the split of an order.

    Raises:
        InvalidInput: The model is not trained or knows other classes, or a source is not mounted.
        BadFile: The model's description is damaged.
        StorageError: A source's mount is not there.
        NotFound: There is no such model.
        UnknownName: The dataset has no such split.
    """
    if isinstance(order, Validation) and order.scores_predictions:
        frames = job_input(home, order, dataset, manifest, order.start_after)
        split = chosen_split(frames.whole, order.split, "validation")
        of_predictions = chosen_predictions(home, order, frames.whole.header)
        return ModelOverSplit(order, of_predictions, frames, split)
    if is_onnx(home.records, order.model):
        frames = job_input(home, order, dataset, manifest, order.start_after)
        split = chosen_split(frames.whole, order.split, "validation")
        onnx = chosen_onnx(home.records, order, frames.whole.header, order.model)
        return ModelOverSplit(order, onnx, frames, split)
    trained = trained_model(home, order)
    frames = job_input(home, order, dataset, manifest, order.start_after)
    split = chosen_split(frames.whole, order.split, "validation")
    trained.check_classes(frames.whole.header.dataset_classes, dataset.name)
    return ModelOverSplit(order, trained, frames, split)


def trained_model(home: JobHome, order: ModelOrder) -> ChosenModel:
    """The model of a training that an order names; it answers what others are asked for.

    Raises:
        InvalidInput: It is not trained, or the order says what its training says.
        NotFound: There is no such model.
    """
    if settings := order.of_other_models:
        raise InvalidInput(
            f"{settings[0].replace('_', ' ')}: goes with predictions, or with an ONNX file; model "
            f"{order.model} is a training's, which says so itself"
        )
    return chosen_model(home.records, order.model, trusts=order.trust_model)
