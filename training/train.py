"""The training loop.

What it takes and gives on the sample frames is in training/experiments/.
"""

import hashlib
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from catalog.errors import FramesiftError, InvalidInput, JobFailed
from pipeline.manifest import Manifest
from training.checkpoint import Checkpoint
from training.class_weights import catalogued_pixels, class_weights
from training.command import say
from training.dataset import open_split, training_batches
from training.frame_reader import FrameReader
from training.learning_rate import learning_rate_at
from training.loss import weight_of_class_id, weighted_cross_entropy
from training.metrics_log import MetricsLog
from training.model import build_model
from training.model_files import AboutModel, write_model
from training.run_settings import RunSettings
from training.workers import Workers, join_workers

CLIP_NORM = 1.0


@dataclass(frozen=True)
class Run:
    """What a training run works with."""

    settings: RunSettings
    frames: Manifest
    workers: Workers
    model: Any
    optimizer: Any


def train(settings: RunSettings) -> None:
    """Train a model until step ``max_steps``, going on from the last checkpoint if there is one.

    Raises:
        BadFile: The manifest, an image, a label or the checkpoint cannot be used.
        InvalidInput: The number of workers, the dataset or the checkpoint is not what was asked.
        JobFailed: The loss is no number any more, another worker ended, or workers disagree.
        StorageError: The disk refuses.
    """
    frames, palette = open_split(settings.manifest, settings.split)
    frames.need_labels()
    workers = join_workers(settings.num_workers)
    tf.keras.utils.set_random_seed(settings.seed)
    model = build_model(settings.height_px, settings.width_px, len(palette))
    optimizer = tf.keras.optimizers.Adam(settings.learning_rate, global_clipnorm=CLIP_NORM)
    optimizer.build(model.trainable_variables)
    run = Run(settings, frames, workers, model, optimizer)

    step = _restore(run)
    reader = FrameReader(
        frames, palette, settings.height_px, settings.width_px, settings.cache_bytes
    )
    batches = iter(training_batches(frames, reader, settings, workers, step))
    if workers.is_first:
        say(
            f"training on {len(frames)} frames of {frames.header.name} "
            f"v{frames.header.version} ({settings.split}), {workers.size} worker(s) x "
            f"{settings.batch_size} frames, step {step} to {settings.max_steps}"
        )
    try:
        _loop(run, batches, step)
    except (tf.errors.OpError, RuntimeError) as error:
        # HorovodInternalError is a RuntimeError; a reader's error arrives as an OpError.
        raise _cause(error, reader) from error
    if workers.is_first:
        _finish(run)


def _loop(run: Run, batches: Iterator[tuple[Any, Any]], step: int) -> None:
    settings, workers, optimizer = run.settings, run.workers, run.optimizer
    metrics = MetricsLog(settings.model_dir, settings.max_steps, step) if workers.is_first else None
    train_step = _train_step(run)
    losses: list[float] = []
    began_s = time.perf_counter()
    while step < settings.max_steps:
        step += 1
        rate = learning_rate_at(step, settings.max_steps, settings.learning_rate, workers.size)
        optimizer.learning_rate.assign(rate)
        losses.append(float(train_step(*next(batches))))

        last = step == settings.max_steps
        if step == 1 or step % settings.log_every_steps == 0 or last:
            loss = workers.mean(sum(losses) / len(losses))
            if not math.isfinite(loss):
                raise JobFailed("training", f"loss is {loss} at step {step}: lower --learning_rate")
            now_s = time.perf_counter()
            images = len(losses) * settings.batch_size * workers.size
            images_per_s = images / (now_s - began_s)
            began_s, losses = now_s, []
            if metrics:
                metrics.record(step, loss, rate, images_per_s)
                say(
                    f"step {step}/{settings.max_steps} loss {loss:.4f} "
                    f"learning_rate {rate:.2g} {images_per_s:.1f} images/s"
                )
        if step % settings.checkpoint_every_steps == 0 or last:
            _save(run, step)


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


def _restore(run: Run) -> int:
    """The step of the last checkpoint, its state now on all workers; 0 without one."""
    step = 0
    if run.workers.is_first:
        checkpoint = Checkpoint.read(run.settings.model_dir)
        if checkpoint:
            checkpoint.check_fits(run.frames.header.class_list, run.settings)
            if checkpoint.step > run.settings.max_steps:
                raise InvalidInput(
                    f"{run.settings.model_dir} is trained to step {checkpoint.step} already, "
                    f"past --max_steps {run.settings.max_steps}; take another --model_dir"
                )
            run.model.set_weights(checkpoint.weights)
            for variable, value in zip(run.optimizer.variables, checkpoint.optimizer, strict=True):
                variable.assign(value)
            step = checkpoint.step
            say(f"going on from the checkpoint of step {step}")
    # The optimizer is built, so its variables are there to send before the first step already.
    run.workers.broadcast_variables([*run.model.variables, *run.optimizer.variables])
    return int(run.workers.broadcast_object(step))


def _save(run: Run, step: int) -> None:
    """Write a checkpoint, if all workers hold the same weights as they must."""
    digest = hashlib.sha256(b"".join(w.tobytes() for w in run.model.get_weights())).hexdigest()
    if not run.workers.agree(digest):
        raise JobFailed("training", f"the workers' weights differ at step {step}")
    if not run.workers.is_first:
        return
    Checkpoint(
        step=step,
        class_list=run.frames.header.class_list,
        settings=run.settings.as_json(),
        weights=run.model.get_weights(),
        optimizer=[variable.numpy() for variable in run.optimizer.variables],
    ).write(run.settings.model_dir)


def _finish(run: Run) -> None:
    settings, header = run.settings, run.frames.header
    about = AboutModel(
        sha256="",
        step=settings.max_steps,
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
    )
    write_model(run.model, about, settings.model_dir)
    say(f"model of step {settings.max_steps} written to {settings.model_dir}")


def _cause(error: Exception, reader: FrameReader) -> FramesiftError:
    """What went wrong, told as one of our errors."""
    if reader.failure:
        return reader.failure
    if "Horovod" in type(error).__name__ or "Horovod" in str(error):
        return JobFailed("training", "another worker ended; its own message says why")
    return JobFailed("training", f"TensorFlow failed: {str(error).splitlines()[0][:300]}")
