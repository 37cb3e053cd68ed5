"""Prepares a training run: its frames, workers and network, checked before the first step."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import tensorflow as tf

from catalog.errors import BadFile, FramesiftError, InvalidInput
from pipeline.cache.reading import ReadsThrough
from pipeline.cores import threads_of_process
from pipeline.manifest import Manifest
from pipeline.prepared.label_classes import LabelClasses
from pipeline.runs.augmentations import NONE
from pipeline.runs.class_map import chosen_classes
from pipeline.runs.exchange import Exchange
from pipeline.runs.precision import MIXED
from pipeline.runs.run_length import RunLength, run_length
from training.input.dataset import open_reader, open_split
from training.network.draws import layers_with_generators
from training.network.gpus import chosen_precision, compile_for_gpus, layers_in
from training.network.learning_rate import COURSE
from training.network.loss_scale import LossScale
from training.network.networks import build_network
from training.run.checkpoint import checkpoints_bytes
from training.run.parent import Parent, read_parent
from training.run.restore import restore
from training.run.room import need_room
from training.run.run_identity import RunIdentity
from training.run.score import scoring_of, skipped_of
from training.run.step_memory import need_memory
from training.run.training_run import Run, cannot_go_on
from training.run.workers import Workers, join_workers, use_threads
from training.run_settings import RunSettings

CLIP_NORM = 1.0


def prepare(settings: RunSettings) -> Run:
    """The run of these settings, from its last checkpoint if there is one; nothing lacks."""
    through = ReadsThrough.at(settings.manifest, settings.staging)
    frames, split, dataset_classes = open_split(through.manifest, settings.split, "train")
    frames.need_labels()
    header = frames.header
    if not len(frames):
        raise InvalidInput(f"split '{split}' of {header.name} has no frames")
    class_map = chosen_classes(settings.classes)
    classes = LabelClasses.of(dataset_classes, class_map, header.name)
    workers = join_workers(settings.num_workers, settings.exchange)
    use_threads(threads := threads_of_process(settings.threads, workers.local_size))
    length = run_length(
        len(frames), workers.size, settings.batch_size, settings.max_steps, settings.epochs
    )
    precision = _agreed_precision(settings.precision, workers)
    settings = replace(settings, split=split, threads=threads, precision=precision)
    bad = skipped_of(settings, frames, len(frames), split)
    reader, prepared = open_reader(
        frames,
        dataset_classes,
        settings.height,
        settings.width,
        settings.cache_bytes,
        wait_for=through.wait_for,
        classes=classes,
        bad=bad,
    )
    parent = read_parent(settings.continue_from) if settings.continue_from else None
    model, optimizer = _model(settings, len(classes))
    run = Run(
        settings=settings,
        length=length,
        planned=length,
        frames=frames,
        through=through,
        reader=reader,
        classes=classes,
        prepared=prepared,
        workers=workers,
        parent=parent,
        identity=_identity(settings, split, length, frames, classes, workers, parent),
        model=model,
        optimizer=optimizer,
        scoring=scoring_of(settings, frames, through.manifest, classes, workers, model),
        bad=bad,
        scale=LossScale() if precision == MIXED else None,
    )
    run.about.check()  # before the first step, and not after the last
    _check_resources(run)
    return restore(run)


def _agreed_precision(setting: str, workers: Workers) -> str:
    precision = chosen_precision(setting)
    if not workers.agree(precision):
        raise InvalidInput(
            f"this worker would compute in {precision}, and others would not: give --precision "
            "float32 or mixed_float16"
        )
    return precision


def _model(settings: RunSettings, n_classes: int) -> tuple[Any, Any]:
    """The network with weights of the seed, and its optimizer."""
    tf.keras.utils.set_random_seed(settings.seed)
    compile_for_gpus()
    with layers_in(settings.precision), layers_with_generators():
        model = build_network(
            settings.model,
            settings.height,
            settings.width,
            n_classes,
            trusted=settings.model,
        )
    optimizer = tf.keras.optimizers.Adam(settings.learning_rate, global_clipnorm=CLIP_NORM)
    optimizer.build(model.trainable_variables)
    return model, optimizer


def _identity(
    settings: RunSettings,
    split: str,
    length: RunLength,
    frames: Manifest,
    classes: LabelClasses,
    workers: Workers,
    parent: Parent | None,
) -> RunIdentity:
    exchange = settings.exchange
    reduced = Exchange(compression=exchange.compression, reduce=exchange.reduce).text
    smoothed = f"label smoothing {settings.label_smoothing:g}" if settings.label_smoothing else ""
    return RunIdentity(
        dataset_id=frames.header.id,
        split=split,
        height_px=settings.height,
        width_px=settings.width,
        network=settings.model,
        seed=settings.seed,
        batch_size=settings.batch_size,
        workers=workers.size,
        learning_rate=settings.learning_rate,
        max_steps=length.max_steps,
        schedule=", ".join(filter(None, (f"Adam, norm {CLIP_NORM}, {COURSE}", reduced, smoothed))),
        parent_sha256=parent.sha256 if parent else "",
        augment=",".join(settings.augment) or NONE,
        precision=settings.precision,
        class_map=f"{classes.map.name} ({classes.map.digest[:12]})" if classes.map else "",
        backbone_sha256=_digest(settings.backbone_weights) if settings.backbone_weights else "",
    )


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BadFile(error.strerror or "cannot be read", str(path)) from error


def _check_resources(run: Run) -> None:
    """Accept disk, memory and files if no worker lacks any of them."""
    failure: FramesiftError | None = None
    try:
        if run.workers.is_first:
            _check_disk(run)
        need_memory(run.model, run.settings.batch_size, run.workers.local_size)
        if run.settings.staging is None:  # else files come while the run reads
            run.reader.look_for_files()
        if run.scoring:
            run.scoring.look_for_files()
    except FramesiftError as error:
        failure = error
    if cannot := cannot_go_on(run.workers, failure):
        raise cannot


def _check_disk(run: Run) -> None:
    """Accept a disk with space for all that the run keeps at once, beside what is there."""
    weights, state = (
        sum(variable.numpy().nbytes for variable in of) for of in (run.model.variables, run.state)
    )
    models = 2 if run.scoring else 1
    copies = run.settings.keep_checkpoints + 1  # one is written before the oldest is removed
    total = copies * (weights + state) + models * weights
    need_room(run.settings.model_dir, total - checkpoints_bytes(run.settings.model_dir))
