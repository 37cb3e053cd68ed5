"""Training as a job: what runs."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from catalog.errors import InvalidInput
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset
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
from pipeline.jobs.request import PYTHON, JobPaths, Stage, read_json
from pipeline.jobs.resources import asked_resources
from pipeline.jobs.work import JobHome, Work
from pipeline.manifest import Manifest
from pipeline.runs.augmentations import NONE, checked_augmentations
from pipeline.runs.checkpoint_steps import named_checkpoint
from pipeline.runs.class_map import ClassMap, chosen_classes
from pipeline.runs.exchange import Exchange
from pipeline.runs.orders import TRAINING_SETTINGS, Training, TrainingSettings
from pipeline.runs.setting import rows

_FIRST = (
    "batch_size", "seed", "num_workers", "max_steps", "epochs", "learning_rate", "height", "width",
    "model", "backbone_weights", "checkpoint_every", "checkpoint_minutes", "keep_checkpoints",
    "evaluate_every", "evaluate_split", "target_miou", "precision", "bad_frames", "augment",
    "horovod", "classes", "continue_from",
)  # fmt: skip
"""Flags of a training in the order in which recorded command lines have them; others follow."""

_ALWAYS = ("batch_size", "seed")
"""Flags that a command line has with their defaults, too."""


def training_work(
    home: JobHome, order: Training, dataset: Dataset, paths: JobPaths, manifest: Manifest | None
) -> Work:
    """The work of a training; see pipeline.jobs.plan.work_of.

    Raises:
        InvalidInput: TensorFlow or Horovod is not installed, a source is not mounted, or what is to
            be prepared is not staged.
        StorageError: A source's mount is not there.
        UnknownName: The dataset has no such split.
        NotFound: There is no such model to continue from.
    """
    weights = order.backbone_weights
    if weights is not None and order.backend == "local" and not Path(weights).is_file():
        raise InvalidInput(
            f"backbone weights {weights}: no such file; expected ResNet-50's weights as Keras "
            "publishes them, .h5"
        )
    frames = job_input(home, order, dataset, manifest, order.start_after)
    split = chosen_split(frames.whole, order.split, "train")
    frames.whole.split(split).need_labels()
    classes, labels = chosen_classes(order.classes), frames.whole.header.dataset_classes
    if classes is not None:
        classes.ids_in(labels, dataset.name)
    else:
        labels.need_same_classes(dataset.name)
    if order.evaluate_every is not None:
        _check_evaluated(frames, split, order.evaluate_split or "validation")
    prepares = to_be_prepared(frames, split, order)
    if prepares and frames.is_in_place and home.queue.cache is not None:
        frames = in_cache(frames, home.queue.cache)
    parent = None
    if order.continue_from is not None:
        parent = _parent(home.records, str(order.continue_from))
        _check_parent(parent, classes.classes if classes else labels.learned)
    shown = {"model_dir": str(paths.model), **frames.shown}
    parent_folder = None if parent is None else parent.folder_in(paths)
    if parent_folder is not None:
        shown["continued_from"] = str(parent_folder)
    stages = [] if parent is None else [*export_stage([parent], paths)]
    if prepares:
        stages.append(preparing_stage(frames, paths.folder.name, home.records.user, order))
    stages.append(_training_stage(frames, split, parent_folder, classes, paths, order))
    reading = ["--seed", str(order.seed), "--batch-size", str(order.batch_size)]
    settings = {name: getattr(order, name) for name in TRAINING_SETTINGS}
    return Work(
        tuple(stages),
        asked_resources(order, training_packages(order.workers, order.model)),
        shown,
        settings={**settings, "split": split, **frames.settings},
        reads=frames.reads,
        staging=frames.beside(paths, split, order.workers, reading),
        writes=frames.writes,
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
    other_splits = [name for name in header.splits if name != split]
    if evaluated not in other_splits:
        reason = "is trained on" if evaluated == split else "is not there"
        advice = f"name another with --evaluate-split: {', '.join(other_splits)}"
        if not other_splits:
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
    order: Training,
) -> Stage:
    mode = "train" if order.evaluate_every is None else "train_and_evaluate"
    command = [
        *training_program(), *frames.flags(paths), "--model_dir", str(paths.model),
        "--exec_mode", mode, "--split", split,
    ]  # fmt: skip
    values: dict[str, Any] = {
        row.name: getattr(order, row.name)
        for row in rows(TrainingSettings)
        if row.setting.flag and (row.name in _ALWAYS or getattr(order, row.name) != row.default)
    }
    values |= {"split": None, "num_workers": order.workers, "continue_from": parent}
    values["classes"] = None if classes is None else json.dumps(classes.as_json())
    if order.augment is not None:
        values["augment"] = ",".join(checked_augmentations(order.augment)) or NONE
    values["horovod"] = Exchange.of(order.horovod or {}).text or None
    for flag in dict.fromkeys((*_FIRST, *values)):
        if values.get(flag) is not None:
            command += [f"--{flag}", str(values[flag])]
    return Stage("train", (tuple(command),), ranks=order.workers)


def training_program() -> list[str]:
    """The program of trainings, validations and predictions, without its flags."""
    # -P: a folder "training" where the user happens to stand is not ours.
    return [PYTHON, "-P", "-m", "training.main"]
