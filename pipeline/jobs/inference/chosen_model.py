"""Chooses the model that a job validates or predicts with: finished, or a checkpoint of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from catalog.errors import BadFile, InvalidInput, NotFound
from catalog.records.jobs import recorded_job
from catalog.records.store import RecordStore
from catalog.records.tables import Job
from catalog.storage.bounded_file import parsed_json
from ingest.labels.dataset_classes import DatasetClasses
from pipeline.jobs.request import PYTHON, JobPaths, Stage, read_json
from pipeline.runs.checkpoint_steps import BEST, checkpoint_steps, named_checkpoint
from pipeline.runs.class_map import ClassMap
from pipeline.runs.networks import check_network, is_own

FINISHED_MODEL = ("model.json",)
CHECKPOINT = ("checkpoint.npz",)
_FILES = ("model.json", "model.safetensors", "model.keras")


@dataclass(frozen=True)
class ChosenModel:
    """A model, as a job was asked for it."""

    name: str
    """As it was asked for: a training job's, or a folder or file of a model; with @STEP for a
    checkpoint, or @best.
    """
    folder: Path
    """Where its files, or those of the training, lie."""
    network: str | None
    """The user's own network, where a training of this home built it, or the user trusts the model:
    else a file is not believed. None for those of Framesift.
    """
    checkpoint: int | Literal["best"] | None
    """Its step, or "best"; None for the finished model."""

    def folder_in(self, paths: JobPaths) -> Path:
        """The folder that a job reads it from: for a checkpoint one of the job's own."""
        if self.checkpoint is None:
            return self.folder
        name = named_checkpoint(Path(self.name).name)[0]
        name = self.folder.parent.name if name == "model" else name
        return paths.folder / "checkpoints" / f"{name}@{self.checkpoint}"

    def export(self, paths: JobPaths) -> tuple[str, ...] | None:
        """The command that makes a model of the checkpoint there; None where none is needed.

        A copy, for a training that goes on replaces its checkpoints.
        """
        if self.checkpoint is None:
            return None
        if self.checkpoint == BEST:
            which: tuple[str, ...] = ("--best",)
        else:
            own = ("--model", self.network) if self.network else ()
            which = ("--step", str(self.checkpoint), *own)
        return (
            # -P: a folder "training" where the user happens to stand is not ours.
            PYTHON, "-P", "-m", "training.export_checkpoint", "--model_dir", str(self.folder),
            *which, "--out", str(self.folder_in(paths)),
        )  # fmt: skip

    def description(self) -> Mapping[str, Any]:
        """Its model.json; of a checkpoint the record of its run, which has the same names.

        Raises:
            BadFile: It is damaged.
        """
        if isinstance(self.checkpoint, int):
            return read_json(self.folder / "run.json")
        path = self.folder / (self.checkpoint or "") / "model.json"
        try:
            data = parsed_json(path.read_bytes())
        except ValueError as error:
            raise BadFile(f"is damaged: {error}", str(path)) from error
        if not isinstance(data, dict):
            raise BadFile("is damaged: expected a JSON object", str(path))
        return data

    def class_map(self) -> ClassMap | None:
        """By which it merges label classes; None where each is a class.

        Raises:
            BadFile: Its description is damaged.
        """
        try:
            class_map = self.description().get("class_map")
            return ClassMap.from_json(class_map) if class_map else None
        except (ValueError, AttributeError, InvalidInput) as error:
            raise BadFile(f"is damaged: {error}", str(self.folder / "model.json")) from error

    def check_classes(self, classes: DatasetClasses, dataset: str) -> None:
        """Accept a dataset whose label classes the model knows, as far as its description says.

        Raises:
            InvalidInput: They are not the model's, or its map lacks one of them.
            BadFile: Its description is damaged.
        """
        class_map, known = self.class_map(), self.description().get("classes")
        if class_map is not None:
            class_map.ids_in(classes, dataset)
            return
        classes.need_same_classes(dataset)
        learned = classes.learned
        if known and list(known) != list(learned):
            differing = [*sorted(set(known) ^ set(learned))[:3]] or ["their order"]
            raise InvalidInput(
                f"model {self.name} knows {len(known)} classes, dataset {dataset} has "
                f"{len(learned)}; they differ in {', '.join(differing)}: take a dataset with the "
                "same class list"
            )


def chosen_model(records: RecordStore, model: str, *, trusts: bool = False) -> ChosenModel:
    """The model that is named: a training job, its folder or file; or that with @STEP or @best.

    Args:
        records: The records.
        model: What is named.
        trusts: Whether the network of the user's own may be built that the model's file names.

    Raises:
        InvalidInput: It is no training, holds no trained model or no such checkpoint, or is of a
            network whose code is not trusted.
        NotFound: There is no such job, folder or file.
        BadFile: Its description is damaged.
    """
    name, checkpoint = named_checkpoint(model)
    if checkpoint is None or Path(model).exists():
        name, checkpoint = model, None
        folder = model_folder(records, model, FINISHED_MODEL)
    else:
        folder = model_folder(records, name, (*CHECKPOINT, *FINISHED_MODEL))
        _check_kept(model, folder, checkpoint)
    chosen = ChosenModel(model, folder, own_network(records, name), checkpoint)
    if chosen.network is not None:
        return chosen
    return replace(chosen, network=_trusted_network(chosen, trusts=trusts))


def _check_kept(model: str, folder: Path, checkpoint: int | Literal["best"]) -> None:
    """Accept what a training's folder holds.

    Raises:
        InvalidInput: It does not.
    """
    if checkpoint == BEST:
        if not (folder / BEST / "model.json").is_file():
            raise InvalidInput(
                f"model {model}: has no best model yet: framesift train --evaluate-every "
                "scores models on the way, and keeps the best"
            )
        return
    kept_steps = checkpoint_steps(folder)
    if checkpoint not in kept_steps:
        steps = ", ".join(f"{each:,}" for each in kept_steps) or "none"
        raise InvalidInput(
            f"model {model}: has no checkpoint of step {checkpoint:,}; it has {steps} "
            "(framesift train --checkpoint-every and --keep-checkpoints say which are kept)"
        )


def _trusted_network(chosen: ChosenModel, *, trusts: bool) -> str | None:
    """The user's own network that a model's file names; None where it names one of Framesift's.

    Raises:
        InvalidInput: It names code that is not trusted.
        BadFile: The file is damaged.
    """
    network = chosen.description().get("network")
    if not isinstance(network, str) or not is_own(network):
        return None
    check_network(network)
    if not trusts:
        raise InvalidInput(
            f"model {chosen.name}: is of the network {network}, whose code would run with your "
            "rights: name the training job of this home that made it, or give --trust-model"
        )
    return network


def export_stage(models: Sequence[ChosenModel], paths: JobPaths) -> tuple[Stage, ...]:
    """The stage that makes models of checkpoints; none where no checkpoint is meant."""
    commands = tuple(filter(None, (model.export(paths) for model in models)))
    return (Stage("export", commands, uses_gpus=False),) if commands else ()


def own_network(records: RecordStore, model: str) -> str | None:
    """The user's own network, where a training of this home built it; a file is not believed."""
    try:
        settings = recorded_job(records, model).request.get("settings", {})
    except NotFound:
        return None
    network = settings.get("model")
    return network if network is not None and is_own(network) else None


def no_training(job: Job) -> InvalidInput:
    """The error that a job which is no training is named as a model."""
    way = ""
    if job.kind == "run":
        way = (
            f"; a program's checkpoints are for programs (framesift run --checkpoint {job.name}): "
            "score what it predicts with framesift validate --predictions or --scores"
        )
    return InvalidInput(f"model {job.name}: is a job of kind {job.kind}, not train{way}")


def model_folder(records: RecordStore, model: str, files: Sequence[str]) -> Path:
    """The folder of a training job's model, or the one named, that holds one of the files.

    Raises:
        InvalidInput: The job is no training, or none of the files is there.
        NotFound: There is no such job, folder or file.
    """
    try:
        job = recorded_job(records, model)
        if job.kind != "train":
            raise no_training(job)
        path = Path(job.paths["model_dir"])
    except NotFound as error:
        path = Path(model)
        if path.name in _FILES and path.is_file():
            path = path.parent
        if path.is_file():
            raise InvalidInput(
                f"model {model}: is no model: expected a folder with model.json, which says "
                "classes and input size, and model.safetensors, which has the weights"
            ) from error
        if not path.is_dir():
            raise NotFound(
                "model",
                model,
                "expected the name of a training job, which framesift models list shows, or a "
                "model folder",
            ) from error
    if not any((path / name).is_file() for name in files):
        lacks = (
            f"{files[0]} is missing" if len(files) == 1 else f"{' and '.join(files)} are missing"
        )
        steps = ", ".join(f"{model}@{step}" for step in checkpoint_steps(path))
        unfinished = f"; its training did not finish, and left {steps}" if steps else ""
        raise InvalidInput(f"model {model}: holds no trained model ({lacks}{unfinished})")
    return path.resolve()
