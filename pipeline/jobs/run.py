"""Training as a job: what runs, submitted."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from catalog.errors import InvalidInput
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Job
from pipeline.datasets.chosen_split import chosen_split
from pipeline.jobs.in_place import in_cache
from pipeline.jobs.inference.chosen_model import (
    CHECKPOINT,
    FINISHED_MODEL,
    ChosenModel,
    chosen_model,
    export_stage,
    model_folder,
)
from pipeline.jobs.installed import training_packages
from pipeline.jobs.job_input import JobInput, job_input
from pipeline.jobs.preparing import preparing_stage, to_be_prepared
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import PYTHON, JobPaths, Stage, read_json
from pipeline.jobs.resources import Resources
from pipeline.jobs.submit import JobOrder, Plan, submit
from pipeline.jobs.train_settings import TrainSettings
from pipeline.runs.augmentations import NONE, checked_augmentations
from pipeline.runs.bad_frames import BadFrames
from pipeline.runs.checkpoint_steps import named_checkpoint
from pipeline.runs.class_map import ClassMap, chosen_classes
from pipeline.runs.exchange import Exchange
from pipeline.runs.networks import SMALL_UNET, check_backbone, check_network
from pipeline.runs.precision import AUTO, check_precision
from pipeline.runs.size import LONGEST_SIDE_PX
from pipeline.runs.training_input import SIZE_STEP_PX

_USUAL = Resources()
_FLAGS = (
    "max_steps", "epochs", "learning_rate", "height", "width", "model", "backbone_weights",
    "checkpoint_every", "checkpoint_minutes", "keep_checkpoints", "evaluate_every",
    "evaluate_split", "target_miou", "precision",
)  # fmt: skip
"""Settings of a training that are flags of its program as they are."""


_COUNTS = ("max_steps", "epochs", "checkpoint_every", "keep_checkpoints", "evaluate_every")


def submit_training(
    records: RecordStore,
    queue: JobQueue,
    dataset: Dataset,
    settings: TrainSettings,
    *,
    stage: bool = True,
    start_after: float | None = None,
    attempts: int = 1,
    name: str | None = None,
    backend_name: str = "local",
    resources: Resources = _USUAL,
) -> Job:
    """Start training on a dataset's split; its record.

    Args:
        records: The records.
        queue: The home's jobs.
        dataset: What to train on.
        settings: How.
        stage: Whether it reads what is staged; else its files where its sources are mounted.
        start_after: Share of the split that is staged before it begins [percent]; see job_input.
        attempts: How often it may begin without a user's word, where it is lost.
        name: The job's name; made up when None.
        backend_name: Where it runs.
        resources: What it asks of the machines there, besides processes.

    Raises:
        InvalidInput: TensorFlow or Horovod is not installed, a bad name, a setting is out of
            range, a source is not mounted, or what is to be prepared is not staged.
        StorageError: A source's mount is not there.
        UnknownName: The dataset has no such split.
        NotFound: There is no such model to continue from.
        AlreadyExists: A job has that name.
    """
    check_settings(settings)
    weights = settings.backbone_weights
    if weights is not None and backend_name == "local" and not Path(weights).is_file():
        raise InvalidInput(
            f"backbone weights {weights}: no such file; expected ResNet-50's weights as Keras "
            "publishes them, .h5"
        )
    packages = training_packages(settings.workers, settings.model)
    needs = replace(resources, ranks=settings.workers, packages=packages)
    frames = job_input(records, queue, dataset, stage=stage, start_after=start_after)
    split = chosen_split(frames.whole, settings.split, "train")
    frames.whole.split(split).need_labels()
    classes = chosen_classes(settings.classes)
    if classes is not None:
        header = frames.whole.header
        classes.ids_of(header.classes, header.name)
    if settings.evaluate_every is not None:
        _check_evaluated(frames, split, settings.evaluate_split or "validation")
    prepares = to_be_prepared(frames, split, settings)
    if prepares and frames.is_in_place and queue.cache is not None:
        frames = in_cache(frames, queue.cache, writes=not queue.dry_run)
    origin = None
    if settings.continue_from is not None:
        origin = _parent(records, settings.continue_from)
        _check_parent(origin, classes.classes if classes else frames.whole.header.classes)

    def plan(paths: JobPaths) -> Plan:
        paths_shown = {"model_dir": str(paths.model), **frames.shown}
        parent = None if origin is None else origin.folder_in(paths)
        if parent is not None:
            paths_shown["continued_from"] = str(parent)
        training = _training_stage(frames, split, parent, classes, paths, settings)
        first = (
            [preparing_stage(frames, paths.folder.name, records.user, settings)] if prepares else []
        )
        order = ["--seed", str(settings.seed), "--batch-size", str(settings.batch_size)]
        return Plan(
            (*([] if origin is None else export_stage([origin], paths)), *first, training),
            paths_shown,
            settings={**asdict(settings), "split": split, **frames.settings},
            reads=frames.reads,
            staging=frames.beside(paths, split, settings.workers, order),
        )

    return submit(
        records,
        queue,
        JobOrder("train", f"train-{dataset.name}", name, dataset, backend_name, needs, attempts),
        plan,
    )


def _parent(records: RecordStore, model: str) -> ChosenModel:
    """The model to begin with: a training's, finished or not, with @STEP or @best; or a folder."""
    if named_checkpoint(model)[1] is not None:
        return chosen_model(records, model)
    folder = model_folder(records, model, (*FINISHED_MODEL, *CHECKPOINT))
    return ChosenModel(model, folder, None, None)


def _check_parent(parent: ChosenModel, classes: Sequence[str]) -> None:
    """Accept a model to begin with, as far as it, or the record of its run, says its classes."""
    folder = parent.folder
    about = read_json(folder / "model.json") or read_json(folder / "run.json")
    known = about.get("classes")
    if isinstance(known, list) and known != list(classes):
        differing = [*sorted({*map(str, known)} ^ set(classes))[:3]] or ["their order"]
        raise InvalidInput(
            f"continue from: model {parent.name} knows {len(known)} classes, the training would "
            f"have {len(classes)}; they differ in {', '.join(differing)}: take a model of the same "
            "classes, or --classes of that one"
        )


def _check_evaluated(frames: JobInput, split: str, evaluated: str) -> None:
    """Accept the split of a dataset that is to be scored on the way."""
    header = frames.whole.header
    others = [name for name in header.splits if name != split]
    if evaluated not in others:
        reason = "is trained on" if evaluated == split else "is not there"
        advice = f"name another with --evaluate-split: {', '.join(others)}"
        if not others:
            advice = f"divide the dataset first: framesift dataset split {header.name}"
        raise InvalidInput(
            f"evaluate split {evaluated} of dataset {header.name}@{header.version}: {reason}; "
            f"{advice}"
        )
    frames.whole.split(evaluated).need_labels()
    if frames.cache is not None:
        raise InvalidInput(
            "evaluate every: frames to validate on must be staged before the training begins: "
            "framesift stage"
        )


def _training_stage(
    frames: JobInput,
    split: str,
    parent: Path | None,
    classes: ClassMap | None,
    paths: JobPaths,
    settings: TrainSettings,
) -> Stage:
    command = [*training_program(), *frames.flags(paths), "--model_dir", str(paths.model)]
    mode = "train" if settings.evaluate_every is None else "train_and_evaluate"
    command += ["--exec_mode", mode, "--split", split]
    command += ["--batch_size", str(settings.batch_size)]
    command += ["--seed", str(settings.seed), "--num_workers", str(settings.workers)]
    for flag in _FLAGS:
        value = getattr(settings, flag)
        if value is not None:
            command += [f"--{flag}", str(value)]
    command += bad_frames_flags(settings.bad_frames)
    if settings.augment is not None:
        names = checked_augmentations(settings.augment)
        command += ["--augment", ",".join(names) or NONE]
    if settings.horovod and (exchange := Exchange.of(settings.horovod).text):
        command += ["--horovod", exchange]
    if classes is not None:
        command += ["--classes", json.dumps(classes.as_json())]
    if parent is not None:
        command += ["--continue_from", str(parent)]
    return Stage("train", (tuple(command),), ranks=settings.workers)


def bad_frames_flags(bad_frames: str | None) -> list[str]:
    """The flags that say what becomes of frames that cannot be read.

    Raises:
        InvalidInput: It is nothing that can become of them.
    """
    if bad_frames is None:
        return []
    BadFrames.parse(bad_frames)
    return ["--bad_frames", bad_frames]


def training_program() -> list[str]:
    """The program of trainings, validations and predictions, without its flags."""
    # -P: a folder "training" where the user happens to stand is not ours.
    return [PYTHON, "-P", "-m", "training.main"]


def check_settings(settings: TrainSettings) -> None:
    """Accept settings that go together.

    Raises:
        InvalidInput: They do not, or one is out of range.
    """
    if settings.max_steps is not None and settings.epochs is not None:
        raise InvalidInput(
            f"max steps {settings.max_steps} and epochs {settings.epochs}: give one of them"
        )
    checked_augmentations(settings.augment or ())
    bad_frames_flags(settings.bad_frames)
    _check_exchange(settings)
    _check_network(settings)
    check_precision(settings.precision or AUTO)
    counts = [getattr(settings, name) for name in _COUNTS]
    lengths = [count for count in counts if count is not None]
    if min(settings.workers, settings.batch_size, *lengths) < 1:
        raise InvalidInput("workers, batch size, steps and epochs must each be at least 1")
    if settings.evaluate_split is not None and settings.evaluate_every is None:
        raise InvalidInput(
            f"evaluate split {settings.evaluate_split}: give evaluate every, too, after how many "
            "epochs it is scored"
        )
    if settings.target_miou is not None:
        _check_target(settings.target_miou, settings.evaluate_every)
    for side in ("height", "width"):
        _check_side(side, getattr(settings, side))
    if settings.seed < 0:
        raise InvalidInput(f"seed {settings.seed}: expected 0 or more")
    for flag in ("learning_rate", "checkpoint_minutes"):
        value = getattr(settings, flag)
        if value is not None and not value > 0:
            raise InvalidInput(f"{flag.replace('_', ' ')} {value:g}: expected a number above 0")


def _check_side(side: str, pixels: int | None) -> None:
    if pixels is None or (1 <= pixels <= LONGEST_SIDE_PX and not pixels % SIZE_STEP_PX):
        return
    near = min(max(1, round(pixels / SIZE_STEP_PX)), LONGEST_SIDE_PX // SIZE_STEP_PX) * SIZE_STEP_PX
    raise InvalidInput(
        f"{side} {pixels}: expected a multiple of {SIZE_STEP_PX} up to {LONGEST_SIDE_PX:,} pixels, "
        f"such as {near:,}"
    )


def _check_exchange(settings: TrainSettings) -> None:
    if Exchange.of(settings.horovod or {}).reduce == "adasum":
        raise InvalidInput(
            "horovod reduce=adasum: jobs start their workers by Gloo, and Adasum needs MPI: take "
            "reduce=average, or start training.main by mpirun"
        )


def _check_network(settings: TrainSettings) -> None:
    if settings.model is not None:
        check_network(settings.model)
    check_backbone(settings.model or SMALL_UNET, settings.backbone_weights)


def _check_target(miou: float, evaluate_every: int | None) -> None:
    if not 0 < miou <= 1:
        raise InvalidInput(f"target miou {miou:g}: expected a number above 0 and at most 1")
    if evaluate_every is None:
        raise InvalidInput("target miou: give evaluate every, too, by which it is looked for")
