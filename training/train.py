"""The training loop.

What it takes and gives on the sample frames is in training/experiments/.
"""

import hashlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import tensorflow as tf

from catalog.errors import BadFile, FramesiftError, InvalidInput, JobFailed
from pipeline.cores import threads_of_process
from pipeline.datasets.chosen_split import UNDIVIDED
from pipeline.example_order import examples
from pipeline.manifest import Manifest
from pipeline.prepared.form import PreparedRows
from training.command import say
from training.input.batches import Batches
from training.input.class_weights import catalogued_pixels, class_weights
from training.input.dataset import open_reader, open_split
from training.input.trained_frames import write_trained_frames
from training.network.about_model import AboutModel
from training.network.learning_rate import COURSE, learning_rate_at
from training.network.loss import weight_of_class_id, weighted_cross_entropy
from training.network.model import NETWORK, build_model
from training.network.model_files import write_model
from training.network.parent import Parent, read_parent
from training.run.checkpoint import CHECKPOINT_FILE, Checkpoint
from training.run.metrics_log import MetricsLog
from training.run.run_identity import RunIdentity
from training.run.run_length import Begun, RunLength, length_from, run_length
from training.run.stop_signal import noted_signals
from training.run.workers import Workers, join_workers, use_threads
from training.run_settings import RunSettings

CLIP_NORM = 1.0

Fetch = Callable[[], tuple[Any, FramesiftError | None]]
"""Gives the next batch, or why there is none."""


@dataclass(frozen=True)
class Run:
    """What a training run works with.

    Attributes:
        settings: As they are, nothing left open.
        length: With the workers that it has now.
        planned: With those that it began with, whose number is in its identity.
        frames: Of the split.
        prepared: Their prepared form, where there is one.
        workers: This one among all.
        parent: The model that it began with.
        identity: By which it is told from other runs.
        model: Keras model.
        optimizer: Keras optimizer.
    """

    settings: RunSettings
    length: RunLength
    planned: RunLength
    frames: Manifest
    prepared: PreparedRows | None
    workers: Workers
    parent: Parent | None
    identity: RunIdentity
    model: Any
    optimizer: Any


def train(settings: RunSettings) -> None:
    """Train a model to its last step, going on from the run's last checkpoint if there is one.

    Raises:
        BadFile: The manifest, an image, a label, the checkpoint or the parent cannot be used.
        InvalidInput: The number of workers, the dataset or the parent is not what was asked, or
            the checkpoint is another run's.
        NotFound: There is no such parent.
        JobFailed: The loss is no number any more, another worker ended, workers disagree, or the
            run was told to end.
        StorageError: The disk refuses.
    """
    frames, split, palette = open_split(settings.manifest, settings.split, "train")
    frames.need_labels()
    if not len(frames):
        raise InvalidInput(f"split '{split}' of {frames.header.name} has no frames")
    workers = join_workers(settings.num_workers)
    use_threads(threads := threads_of_process(settings.threads, workers.local_size))
    length = _length(settings, len(frames), workers.size)
    # From here on the settings are those that the run has, and not those that were left open.
    settings = replace(settings, split=split, threads=threads)
    reader, prepared = open_reader(
        frames, palette, settings.height_px, settings.width_px, settings.cache_bytes
    )
    parent = read_parent(settings.continue_from) if settings.continue_from else None
    tf.keras.utils.set_random_seed(settings.seed)
    model = build_model(settings.height_px, settings.width_px, len(palette))
    optimizer = tf.keras.optimizers.Adam(settings.learning_rate, global_clipnorm=CLIP_NORM)
    optimizer.build(model.trainable_variables)
    identity = _identity(settings, split, length, frames, workers, parent)
    run = Run(
        settings, length, length, frames, prepared, workers, parent, identity, model, optimizer
    )
    _about(run).check()  # before the first step, and not after the last

    run, begun = _restore(run)
    order = examples(
        len(frames),
        settings.seed,
        settings.batch_size,
        rank=workers.rank,
        ranks=workers.size,
        begin=begun.examples,
    )
    batches = Batches(
        reader, order, batch_size=settings.batch_size, seed=settings.seed, threads=threads
    )
    if workers.is_first:
        _say_start(run, begun.step)
    try:
        _loop(run, _fetching(batches), begun)
    except (tf.errors.OpError, RuntimeError) as error:
        # HorovodInternalError is a RuntimeError.
        raise _cause(error) from error
    finally:
        batches.close()
    if workers.is_first:
        _finish(run)


def _length(settings: RunSettings, frames: int, workers: int) -> RunLength:
    return run_length(frames, workers, settings.batch_size, settings.max_steps, settings.epochs)


def _identity(
    settings: RunSettings,
    split: str,
    length: RunLength,
    frames: Manifest,
    workers: Workers,
    parent: Parent | None,
) -> RunIdentity:
    return RunIdentity(
        dataset_id=frames.header.id,
        split=split,
        height_px=settings.height_px,
        width_px=settings.width_px,
        network=NETWORK,
        seed=settings.seed,
        batch_size=settings.batch_size,
        workers=workers.size,
        learning_rate=settings.learning_rate,
        max_steps=length.max_steps,
        schedule=f"Adam, norm {CLIP_NORM}, {COURSE}",
        parent_sha256=parent.sha256 if parent else "",
    )


def _say_start(run: Run, step: int) -> None:
    settings, header = run.settings, run.frames.header
    dataset = f"{header.name} v{header.version}"
    say(
        f"training on {len(run.frames)} frames of {dataset} ({settings.split}), "
        f"{run.workers.size} worker(s) x {settings.batch_size} frames, {settings.threads} "
        f"thread(s) each, step {step} to {run.length.max_steps}: {run.length}"
    )
    if run.prepared is not None:
        say(f"reading frames from the prepared form {run.prepared.form.folder}")
    else:
        say("decoding each frame: no prepared form of this size (framesift stage --prepare)")
    for warning in _warnings(run):
        say(f"warning: {warning}")


def _warnings(run: Run) -> list[str]:
    header = run.frames.header
    if run.settings.split != UNDIVIDED:
        return []
    warning = (
        f"dataset {header.name} is not divided: all its frames are trained on, and none is left "
        "to validate with (framesift dataset split)"
    )
    return [warning]


def _fetching(batches: Batches) -> Fetch:
    def fetch() -> tuple[Any, FramesiftError | None]:
        try:
            return next(batches), None
        except FramesiftError as error:
            return None, error
        except (OSError, MemoryError) as error:
            reason = str(error) or type(error).__name__
            return None, JobFailed("training", f"a frame cannot be read: {reason}")

    return fetch


def _loop(run: Run, fetch: Fetch, begun: Begun) -> None:
    workers, step, last = run.workers, begun.step, run.length.max_steps
    each_step = run.settings.batch_size * workers.size
    read = begun.examples
    metrics = None
    if workers.is_first:
        prepared = run.prepared.form.folder.name if run.prepared else None
        metrics = MetricsLog(run.settings.model_dir, run.length, _warnings(run), step, prepared)
    train_step = _train_step(run)
    losses: list[float] = []
    began_s = time.perf_counter()
    batch: Any = None
    failure: FramesiftError | None = None
    if step < last:
        batch, failure = fetch()
    if unread := _cannot_go_on(workers, failure):
        raise unread
    with noted_signals() as stop:
        while step < last:
            step, read = step + 1, read + each_step
            rate = _set_rate(run, read)
            losses.append(float(train_step(*batch)))
            if step == 1 or step % run.settings.log_every_steps == 0 or step == last:
                now_s = time.perf_counter()
                _log(run, metrics, step, rate, losses, now_s - began_s)
                began_s, losses = now_s, []
            if step < last:
                batch, failure = fetch()
            # All leave at the same step, whichever was told to, or cannot read its next batch.
            ends = workers.any(failure is not None or bool(stop.received)) and step < last
            if ends or step % run.settings.checkpoint_every_steps == 0 or step == last:
                _save(run, Begun(step, read))
            if ends:
                unread = _cannot_go_on(workers, failure)
                if unread and workers.is_first:
                    say(f"the checkpoint of step {step} is kept")
                raise unread or JobFailed(
                    "training",
                    f"ended by {stop.received or 'another worker'} after step {step} of {last}: "
                    "its checkpoint is kept, and the same command goes on from it",
                )


def _cannot_go_on(workers: Workers, failure: FramesiftError | None) -> FramesiftError | None:
    """What one worker at least cannot read, on all: whichever's words end the log, they say it."""
    texts = workers.texts("" if failure is None else str(failure))
    return failure or next((JobFailed("training", text) for text in texts if text), None)


def _set_rate(run: Run, read: int) -> float:
    """Set the learning rate of the step after which so many examples have been read."""
    planned, settings = run.planned, run.settings
    # The step that a run with the workers of its beginning would make: its own, if they are these.
    step = -(-read // (settings.batch_size * run.identity.workers))
    rate = learning_rate_at(
        min(step, planned.max_steps), planned.max_steps, settings.learning_rate, run.workers.size
    )
    run.optimizer.learning_rate.assign(rate)
    return rate


def _log(
    run: Run,
    metrics: MetricsLog | None,
    step: int,
    rate: float,
    losses: Sequence[float],
    seconds: float,
) -> None:
    """Have the mean loss of the last steps written by the first worker; all take part in it."""
    loss = run.workers.mean(sum(losses) / len(losses))
    if not math.isfinite(loss):
        raise JobFailed("training", f"loss is {loss} at step {step}: lower --learning_rate")
    images_per_s = len(losses) * run.settings.batch_size * run.workers.size / seconds
    if metrics:
        metrics.record(step, loss, rate, images_per_s)
        say(
            f"step {step}/{run.length.max_steps} loss {loss:.4f} "
            f"learning_rate {rate:.2g} {images_per_s:.1f} images/s"
        )


def _train_step(run: Run) -> Any:
    """A compiled function: one step on (images, labels) of this worker, its loss."""
    model, optimizer, workers = run.model, run.optimizer, run.workers
    weights = weight_of_class_id(class_weights(catalogued_pixels(run.frames)))

    def train_step(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            logits = model(images, training=True)  # (B, H, W, n_classes)
            loss = weighted_cross_entropy(labels, logits, weights)
        averaging = workers.tape(tape)
        gradients = averaging.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return tf.function(train_step)


def _restore(run: Run) -> tuple[Run, Begun]:
    """How far the last checkpoint is, its state now on all workers; and the run as it goes on."""
    workers = run.workers
    begun, began_with = Begun(), workers.size
    if workers.is_first:
        begun, began_with = _first_state(run)
    # The optimizer is built, so its variables are there to send before the first step already.
    workers.broadcast_variables([*run.model.variables, *run.optimizer.variables])
    begun = Begun(*(workers.broadcast_number(n) for n in (begun.step, begun.examples)))
    run = _as_begun(run, workers.broadcast_number(began_with))
    length = length_from(run.planned, workers.size, run.settings.batch_size, begun)
    settings = replace(run.settings, max_steps=length.max_steps)
    return replace(run, length=length, settings=settings), begun


def _as_begun(run: Run, began_with: int) -> Run:
    """The run, with the plan that it has had since it began with so many workers."""
    planned = _length(run.settings, len(run.frames), began_with)
    identity = replace(run.identity, workers=began_with, max_steps=planned.max_steps)
    return replace(run, planned=planned, identity=identity)


def _first_state(run: Run) -> tuple[Begun, int]:
    """Have the model begin as the checkpoint says, or the parent, or from random weights.

    Returns:
        How far it is, and with how many workers it began.
    """
    model_dir, header = run.settings.model_dir, run.frames.header
    checkpoint = Checkpoint.read(model_dir)
    if checkpoint:
        began_with = checkpoint.identity.workers if checkpoint.identity else run.workers.size
        identity = _as_begun(run, began_with).identity
        checkpoint.check_same_run(header.class_list, identity, model_dir)
        try:
            run.model.set_weights(checkpoint.weights)
            for variable, value in zip(run.optimizer.variables, checkpoint.optimizer, strict=True):
                variable.assign(value)
        except ValueError as error:
            raise BadFile(
                f"checkpoint is damaged: its arrays are not those of network {NETWORK} and its "
                "optimizer; delete it",
                str(model_dir / CHECKPOINT_FILE),
            ) from error
        say(f"going on from the checkpoint of step {checkpoint.step}")
        read = checkpoint.examples
        if read is None:
            read = checkpoint.step * run.settings.batch_size * began_with
            say(
                "warning: an earlier release wrote the checkpoint, in which each worker had an "
                "order of its own: frames of this epoch may come twice, or in the next only"
            )
        return Begun(checkpoint.step, read), began_with
    if run.parent:
        run.parent.check_classes(header.classes, header.name)
        try:
            run.model.set_weights(run.parent.weights())
        except ValueError as error:
            raise InvalidInput(
                f"the model in {run.parent.dir} is of another network than {NETWORK}: train "
                "without --continue_from"
            ) from error
        say(f"beginning with the weights of {run.parent.dir}, step {run.parent.step}")
    fkeys = run.frames.frames["fkey"].to_pylist()
    write_trained_frames(model_dir, fkeys, Path(run.parent.dir) if run.parent else None)
    return Begun(), run.workers.size


def _save(run: Run, begun: Begun) -> None:
    """Write a checkpoint, if all workers hold the same weights as they must."""
    digest = hashlib.sha256(b"".join(w.tobytes() for w in run.model.get_weights())).hexdigest()
    if not run.workers.agree(digest):
        raise JobFailed("training", f"the workers' weights differ at step {begun.step}")
    if run.workers.is_first:
        Checkpoint(
            step=begun.step,
            examples=begun.examples,
            class_list=run.frames.header.class_list,
            identity=run.identity,
            weights=run.model.get_weights(),
            optimizer=[variable.numpy() for variable in run.optimizer.variables],
        ).write(run.settings.model_dir)
    # A launcher ends all workers once one has ended: none may end while the first one writes.
    run.workers.broadcast_number(begun.step)


def _about(run: Run) -> AboutModel:
    settings, header = run.settings, run.frames.header
    return AboutModel(
        sha256="",
        network=NETWORK,
        step=run.length.max_steps,
        classes=header.classes,
        class_list=header.class_list,
        height_px=settings.height_px,
        width_px=settings.width_px,
        workers=run.workers.size,
        dataset={
            "name": header.name,
            "version": header.version,
            "id": header.id,
            "split": settings.split,
            "frames": len(run.frames),
        },
        settings=settings.as_json(),
        parent=asdict(run.parent) if run.parent else None,
    )


def _finish(run: Run) -> None:
    write_model(run.model, _about(run), run.settings.model_dir)
    say(f"model of step {run.length.max_steps} written to {run.settings.model_dir}")


def _cause(error: Exception) -> FramesiftError:
    """What went wrong, told as one of our errors."""
    if "Horovod" in type(error).__name__ or "Horovod" in str(error):
        return JobFailed("training", "another worker ended; its own message says why")
    return JobFailed("training", f"TensorFlow failed: {str(error).splitlines()[0][:300]}")
