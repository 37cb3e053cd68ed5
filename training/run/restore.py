"""Begins a run: from its last checkpoint, another model, a backbone's weights, or none."""

from dataclasses import replace
from pathlib import Path

from catalog.errors import BadFile, FramesiftError, InvalidInput
from pipeline.runs.checkpoint_steps import CHECKPOINT_FILE
from pipeline.runs.run_length import Progress, length_from, run_length
from training.command import say
from training.input.trained_frames import write_trained_frames, write_trained_scenes
from training.network.deeplab import load_backbone
from training.run.checkpoint import Checkpoint
from training.run.training_run import Run, cannot_go_on


def restore(run: Run) -> Run:
    """The run from its last checkpoint, whose state is now on all workers."""
    workers = run.workers
    start, began_with = Progress(), workers.size
    failure: FramesiftError | None = None
    if workers.is_first:
        try:
            start, began_with = _initial_state(run)
        except FramesiftError as error:
            failure = error
    if cannot := cannot_go_on(workers, failure):
        raise cannot
    # The optimizer is built, so its variables are there to send before the first step already.
    workers.broadcast_variables([*run.model.variables, *run.state])
    start = Progress(*(workers.broadcast_number(n) for n in (start.step, start.examples)))
    run = _with_plan(run, workers.broadcast_number(began_with))
    length = length_from(run.planned, workers.size, run.settings.batch_size, start)
    settings = replace(run.settings, max_steps=length.max_steps)
    return replace(run, length=length, settings=settings, start=start)


def _with_plan(run: Run, began_with: int) -> Run:
    """The run, with the plan that it has had since it began with so many workers."""
    settings, frames = run.settings, len(run.frames)
    planned = run_length(
        frames, began_with, settings.batch_size, settings.max_steps, settings.epochs
    )
    identity = replace(run.identity, workers=began_with, max_steps=planned.max_steps)
    return replace(run, planned=planned, identity=identity)


def _initial_state(run: Run) -> tuple[Progress, int]:
    """Have the model begin as the checkpoint says, or the parent, or from random weights.

    Returns:
        How far it is, and with how many workers it began.
    """
    model_dir, header = run.settings.model_dir, run.frames.header
    checkpoint = Checkpoint.restore_newest(model_dir, lambda one: _load(run, one), say)
    if checkpoint:
        began_with = checkpoint.identity.workers
        say(f"going on from the checkpoint of step {checkpoint.step}")
        return Progress(checkpoint.step, checkpoint.examples), began_with
    if run.parent:
        run.parent.check_classes(run.classes.names, header.name)
        try:
            run.model.set_weights(run.parent.weights(run.settings.model))
        except ValueError as error:
            raise InvalidInput(
                f"the model in {run.parent.dir} is of another network than {run.settings.model}: "
                "train without --continue_from"
            ) from error
        say(f"beginning with the weights of {run.parent.dir}, step {run.parent.step}")
    elif run.settings.backbone_weights:
        load_backbone(run.model, run.settings.backbone_weights)
        say(f"beginning with the backbone of {run.settings.backbone_weights}")
    fkeys = run.frames.frames["fkey"].to_pylist()
    parent = Path(run.parent.dir) if run.parent else None
    if not write_trained_frames(model_dir, fkeys, parent):
        say(
            f"warning: {parent} has no list of the frames that it was trained on "
            "(trained_frames.parquet), so this model has none: a validation cannot say which "
            "frames it remembers"
        )
    write_trained_scenes(model_dir, run.frames.frames["scene"].to_pylist(), parent)
    return Progress(), run.workers.size


def _load(run: Run, checkpoint: Checkpoint) -> None:
    """Have the model and its optimizer be as a checkpoint says.

    Raises:
        BadFile: Its arrays are not the run's.
    """
    model_dir = run.settings.model_dir
    identity = _with_plan(run, checkpoint.identity.workers).identity
    checkpoint.check_same_run(run.frames.header.dataset_classes, identity, model_dir)
    try:
        run.model.set_weights(checkpoint.weights)
        for variable, value in zip(run.state, checkpoint.optimizer, strict=True):
            variable.assign(value)
    except ValueError as error:
        raise BadFile(
            f"checkpoint is damaged (its arrays are not those of {run.settings.model} and its "
            "optimizer)",
            str(model_dir / CHECKPOINT_FILE),
        ) from error
