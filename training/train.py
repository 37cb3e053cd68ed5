"""The training loop.

What it takes and gives on the sample frames is in training/experiments/.
"""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from pipeline.cache.reading import Reading
from pipeline.example_order import examples
from pipeline.runs.run_length import Progress
from training.command import say
from training.input.batches import Batches
from training.input.class_weights import catalogued_pixels, class_weights
from training.network.draws import stateful_draws
from training.network.learning_rate import learning_rate_at
from training.network.loss import weight_of_class_id
from training.network.model_files import write_model
from training.run.keep import CheckpointTimer, diverged, ended, list_bad, save
from training.run.logs import Logs, open_logs
from training.run.prepare import prepare
from training.run.run_record import finish_record
from training.run.score import evaluate, is_evaluated, lacks_score
from training.run.stop_signal import noted_signals
from training.run.train_step import train_step
from training.run.training_run import Run, cannot_go_on
from training.run_settings import RunSettings


def train(settings: RunSettings) -> None:
    """Train a model to its last step, from the run's last checkpoint if there is one."""
    run = prepare(settings)
    with open_logs(run) as logs:
        with _open_batches(run) as batches:
            _train_steps(run, batches, logs)
        if logs:
            _finish(run, logs)


def _train_steps(run: Run, batches: Batches, logs: Logs | None) -> None:
    workers, settings, last = run.workers, run.settings, run.length.max_steps
    progress = run.start
    one_step = _step_function(run)
    losses: list[float] = []
    if batch := _first_batch(run, batches):
        _build_graph(run, one_step, batch)
    since_s = time.perf_counter()
    timer = CheckpointTimer(settings.checkpoint_minutes)
    with noted_signals() as stop:
        if lacks_score(run, logs):
            since_s += evaluate(run, logs, progress, stop)
        while (step := progress.step + 1) <= last:
            progress = Progress(step, progress.examples + run.examples_of_step)
            rate = _set_rate(run, progress)
            losses.append(loss := float(one_step(*batch)))
            batch, failure = batches.fetch() if step < last else (None, None)
            # All leave at the same step, whichever got a signal, or cannot go on.
            is_finite = math.isfinite(loss)
            leaves, is_due = workers.any_of(
                failure is not None or bool(stop.received) or not is_finite,
                stop.asks_checkpoint or (workers.is_first and timer.is_due),
            )
            if leaves and workers.any(not is_finite):
                raise diverged(run, "the loss", step, rate)
            if step in (1, last) or step % settings.log_every_steps == 0:
                now_s = time.perf_counter()
                _log(run, logs, progress, rate, losses, now_s - since_s)
                since_s, losses = now_s, []
            ends = leaves and step < last
            evaluates = not ends and is_evaluated(run, progress)
            is_due = is_due or step % settings.checkpoint_every == 0
            if ends or evaluates or is_due or step == last:
                save(run, progress, rate)
                list_bad(run, logs)
                timer.restart()
                stop.asks_checkpoint = False
            if ends:
                raise ended(run, failure, stop.received, step)
            if evaluates:  # after the checkpoint: whatever ends it costs no step
                since_s += evaluate(run, logs, progress, stop)


@contextmanager
def _open_batches(run: Run) -> Iterator[Batches]:
    settings, workers, start = run.settings, run.workers, run.start
    order = examples(
        len(run.frames),
        settings.seed,
        settings.batch_size,
        rank=workers.rank,
        ranks=workers.size,
        begin=start.examples,
    )
    end = start.examples + (run.length.max_steps - start.step) * run.examples_of_step
    through = run.through
    through.begin(Reading(workers.rank, workers.size, settings.batch_size, start.examples, end))
    batches = Batches(
        run.reader,
        order,
        batch_size=settings.batch_size,
        seed=settings.seed,
        threads=settings.threads,
        has_read=through.has_read,
        augment=settings.augment,
    )
    try:
        yield batches
    finally:
        batches.close()
        through.close()


def _first_batch(run: Run, batches: Batches) -> Any:
    """The first batch of a run that has steps to make."""
    has_steps = run.start.step < run.length.max_steps
    batch, failure = batches.fetch() if has_steps else (None, None)
    if unread := cannot_go_on(run.workers, failure):
        raise unread
    return batch


def _step_function(run: Run) -> Any:
    pixels = run.classes.merged_pixels(catalogued_pixels(run.frames))
    weights = weight_of_class_id(class_weights(pixels))
    seed, smoothing = run.settings.seed, run.settings.label_smoothing
    return train_step(run.model, run.optimizer, run.workers, weights, run.scale, seed, smoothing)


def _build_graph(run: Run, one_step: Any, batch: Any) -> None:
    """Have the step's graph built, which the first step's speed is then without."""
    graph = one_step.get_concrete_function(*map(tf.convert_to_tensor, batch))
    if run.workers.is_first and (draws := stateful_draws(graph)):
        say(
            f"warning: network {run.settings.model} draws by {', '.join(draws)}: a run that goes "
            "on draws other numbers than one without a break; use Keras' layers or a "
            "tf.random.Generator of a layer"
        )


def _set_rate(run: Run, progress: Progress) -> float:
    """Set the learning rate of the step that ends at this progress."""
    planned, settings = run.planned, run.settings
    # The step that a run with the workers of its beginning would make: its own, if they are these.
    step = -(-progress.examples // (settings.batch_size * run.identity.workers))
    rate = learning_rate_at(
        min(step, planned.max_steps),
        planned.max_steps,
        settings.learning_rate,
        run.workers.rate_factor,
    )
    run.optimizer.learning_rate.assign(rate)
    return rate


def _log(
    run: Run,
    logs: Logs | None,
    progress: Progress,
    rate: float,
    losses: Sequence[float],
    seconds: float,
) -> None:
    """Have the mean loss of the last steps written by the first worker; all take part in it."""
    loss = run.workers.mean(sum(losses) / len(losses))
    images_per_s = len(losses) * run.examples_of_step / seconds
    if logs:
        say(logs.metrics.record(progress.step, progress.examples, loss, rate, images_per_s))


def _finish(run: Run, logs: Logs) -> None:
    last, model_dir = run.length.max_steps, run.settings.model_dir
    logs.mlperf.finish(last)
    finish_record(model_dir, write_model(run.model, run.about, model_dir))
    say(f"model of step {last} written to {model_dir}")
