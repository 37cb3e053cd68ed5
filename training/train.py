"""The training loop.

What it takes and gives on the sample frames is in training/experiments/.
"""

import hashlib
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import tensorflow as tf

from catalog.errors import BadFile, FramesiftError, InvalidInput, JobFailed
from pipeline.cache.reading import Reading, ReadsThrough
from pipeline.cores import threads_of_process
from pipeline.datasets.chosen_split import UNDIVIDED
from pipeline.example_order import examples
from pipeline.manifest import Manifest
from pipeline.runs.augmentations import augmentations_in
from pipeline.runs.class_map import chosen_classes, classes_in
from pipeline.runs.exchange import Exchange
from pipeline.runs.precision import MIXED
from pipeline.runs.run_length import Begun, RunLength, run_length
from training.command import Interrupted, say
from training.input.batches import Batches
from training.input.class_weights import catalogued_pixels, class_weights
from training.input.dataset import open_reader, open_split
from training.input.frame_reader import FrameReader
from training.input.label_classes import LabelClasses
from training.network.about_model import ABOUT_FILE
from training.network.draws import layers_with_generators, stateful_draws
from training.network.learning_rate import COURSE, learning_rate_at
from training.network.loss import weight_of_class_id
from training.network.loss_scale import LossScale
from training.network.model_files import write_model
from training.network.networks import build_network
from training.network.precision import chosen_precision, layers_in
from training.network.xla import compile_for_gpus
from training.run.checkpoint import checkpoints_bytes
from training.run.code_version import code_version
from training.run.evaluation import Evaluations
from training.run.keep import diverged, ended, list_bad, save
from training.run.memory import need_memory
from training.run.metrics_log import MetricsLog
from training.run.minutes import Minutes
from training.run.mlflow_log import MlflowLog, ending, mlflow_log
from training.run.mlperf_log import MlperfLog
from training.run.parent import Parent, read_parent
from training.run.restore import restore
from training.run.room import need_room
from training.run.run_identity import RunIdentity
from training.run.run_record import RECORD_FILE, begin_record, finish_record
from training.run.score import (
    evaluate,
    evaluations_of,
    is_evaluated,
    lacks_score,
    scoring_of,
    skipped_of,
)
from training.run.stop_signal import noted_signals
from training.run.train_step import train_step
from training.run.training_run import Run, cannot_go_on
from training.run.workers import Workers, join_workers, use_threads
from training.run_settings import RunSettings

CLIP_NORM = 1.0

Fetch = Callable[[], tuple[Any, FramesiftError | None]]
"""Gives the next batch, or why there is none."""


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
    through = ReadsThrough.at(settings.manifest, settings.staging)
    frames, split, palette = open_split(through.manifest, settings.split, "train")
    frames.need_labels()
    if not len(frames):
        raise InvalidInput(f"split '{split}' of {frames.header.name} has no frames")
    header = frames.header
    classes = LabelClasses.of(
        header.class_list, chosen_classes(classes_in(settings.classes)), header.name
    )
    workers = join_workers(settings.num_workers, settings.exchange)
    use_threads(threads := threads_of_process(settings.threads, workers.local_size))
    length = run_length(
        len(frames), workers.size, settings.batch_size, settings.max_steps, settings.epochs
    )
    precision = chosen_precision(settings.precision)
    if not workers.agree(precision):
        raise InvalidInput(
            f"this worker would compute in {precision}, and others would not: give --precision "
            "float32 or mixed_float16"
        )
    # From here on the settings are those that the run has, and not those that were left open.
    settings = replace(settings, split=split, threads=threads, precision=precision)
    bad = skipped_of(settings, frames, len(frames), split)
    reader, prepared = open_reader(
        frames,
        palette,
        settings.height_px,
        settings.width_px,
        settings.cache_bytes,
        wait_for=through.wait_for,
        classes=classes,
        bad=bad,
    )
    parent = read_parent(settings.continue_from) if settings.continue_from else None
    tf.keras.utils.set_random_seed(settings.seed)
    compile_for_gpus()
    with layers_in(precision), layers_with_generators():
        model = build_network(
            settings.model,
            settings.height_px,
            settings.width_px,
            len(classes),
            trusted=settings.model,
        )
    optimizer = tf.keras.optimizers.Adam(settings.learning_rate, global_clipnorm=CLIP_NORM)
    optimizer.build(model.trainable_variables)
    identity = _identity(settings, split, length, frames, classes, workers, parent)
    run = Run(
        settings,
        length,
        length,
        frames,
        classes,
        prepared,
        workers,
        parent,
        identity,
        model,
        optimizer,
        scoring_of(settings, frames, through.manifest, classes, workers, model),
        bad,
        LossScale() if precision == MIXED else None,
    )
    run.about.check()  # before the first step, and not after the last
    _look_for_all(run, reader)

    run, begun = restore(run)
    order = examples(
        len(frames),
        settings.seed,
        settings.batch_size,
        rank=workers.rank,
        ranks=workers.size,
        begin=begun.examples,
    )
    through.begin(_reading(run, begun))
    batches = Batches(
        reader,
        order,
        batch_size=settings.batch_size,
        seed=settings.seed,
        threads=threads,
        has_read=through.has_read,
        augment=augmentations_in(settings.augment),
    )
    if workers.is_first:
        _say_start(run, begun.step)
        _begin_record(run, begun.step)
    mlperf, mlflow = _mlperf(run, begun.step), _mlflow(run, begun.step)
    with ending(mlflow, *(settings.model_dir / name for name in (ABOUT_FILE, RECORD_FILE))):
        try:
            _loop(run, _fetching(batches), begun, mlperf, mlflow)
        except (tf.errors.OpError, RuntimeError) as error:
            # HorovodInternalError is a RuntimeError.
            raise _cause(error) from error
        finally:
            batches.close()
            through.close()
        if mlperf:
            _finish(run, mlperf)


def _look_for_all(run: Run, reader: FrameReader) -> None:
    """Go on where disk and memory have room and each file is there that is read; all workers do.

    Raises:
        StorageError: The disk of the model's folder has not.
        JobFailed: A step has not in one worker's memory, or another worker cannot go on.
        BadFile: One is missing that this worker looked for.
    """
    failure: FramesiftError | None = None
    try:
        if run.workers.is_first:
            _check_room(run)
        need_memory(run.model, run.settings.batch_size, run.workers.local_size)
        if run.settings.staging is None:  # else files come while the run reads
            reader.look_for_files()
        if run.scoring:
            run.scoring.look_for_files()
    except FramesiftError as error:
        failure = error
    if cannot := cannot_go_on(run.workers, failure):
        raise cannot


def _check_room(run: Run) -> None:
    """Go on where all that the run keeps at once has room beside what is there."""
    weights, state = (
        sum(variable.numpy().nbytes for variable in of) for of in (run.model.variables, run.state)
    )
    models = 2 if run.scoring else 1
    copies = run.settings.keep_checkpoints + 1  # one is written beside those that are kept
    taken = copies * (weights + state) + models * weights
    need_room(run.settings.model_dir, taken - checkpoints_bytes(run.settings.model_dir))


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
    return RunIdentity(
        dataset_id=frames.header.id,
        split=split,
        height_px=settings.height_px,
        width_px=settings.width_px,
        network=settings.model,
        seed=settings.seed,
        batch_size=settings.batch_size,
        workers=workers.size,
        learning_rate=settings.learning_rate,
        max_steps=length.max_steps,
        schedule=", ".join(filter(None, (f"Adam, norm {CLIP_NORM}, {COURSE}", reduced))),
        parent_sha256=parent.sha256 if parent else "",
        augment=settings.augment,
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


def _reading(run: Run, begun: Begun) -> Reading:
    """The progress of this worker, for the staging that fetches its frames."""
    workers, batch_size = run.workers, run.settings.batch_size
    left = (run.length.max_steps - begun.step) * batch_size * workers.size
    return Reading(workers.rank, workers.size, batch_size, begun.examples, begun.examples + left)


def _say_start(run: Run, step: int) -> None:
    settings, header = run.settings, run.frames.header
    dataset = f"{header.name} v{header.version}"
    say(
        f"training on {len(run.frames)} frames of {dataset} ({settings.split}), "
        f"{run.workers.size} worker(s) x {settings.batch_size} frames, {settings.threads} "
        f"thread(s) each, step {step} to {run.length.max_steps}: {run.length}"
    )
    if run.scale:
        say(f"computing in {settings.precision}; weights, logits and loss in float32")
    if run.classes.map is not None:
        say(f"classes of {run.classes.map.name}: {', '.join(run.classes.names)}")
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


def _loop(
    run: Run, fetch: Fetch, begun: Begun, mlperf: MlperfLog | None, mlflow: MlflowLog | None
) -> None:
    workers, step, last = run.workers, begun.step, run.length.max_steps
    each_step = run.examples_of_step
    read = begun.examples
    evaluations = evaluations_of(run, step)
    metrics = _metrics_log(run, begun, evaluations, mlperf, mlflow)
    one_step = _train_step(run)
    losses: list[float] = []
    failure: FramesiftError | None = None
    if batch := _first_batch(run, fetch, step):
        _compile(run, one_step, batch)
    began_s = time.perf_counter()
    saving = Minutes(run.settings.checkpoint_minutes)
    with noted_signals() as stop:
        if lacks_score(run, evaluations, begun):
            began_s += evaluate(run, evaluations, metrics, mlperf, begun, stop)
        while step < last:
            step, read = step + 1, read + each_step
            rate = _set_rate(run, read)
            loss = float(one_step(*batch))
            losses.append(loss)
            if step < last:
                batch, failure = fetch()
            # All leave at the same step, whichever was told to, or cannot go on.
            finite = math.isfinite(loss)
            leaves, due = workers.any_of(
                failure is not None or bool(stop.received) or not finite,
                stop.asks_checkpoint or (workers.is_first and saving.is_due),
            )
            if leaves and workers.any(not finite):
                raise diverged(run, "the loss", step, rate)
            if step == 1 or step % run.settings.log_every_steps == 0 or step == last:
                now_s = time.perf_counter()
                _log(run, metrics, Begun(step, read), rate, losses, now_s - began_s)
                began_s, losses = now_s, []
            ends = leaves and step < last
            evaluates = not ends and is_evaluated(run, Begun(step, read))
            due = due or step % run.settings.checkpoint_every_steps == 0
            if ends or evaluates or due or step == last:
                save(run, Begun(step, read), rate)
                list_bad(run, metrics)
                saving.is_done()
                stop.asks_checkpoint = False
            if ends:
                raise ended(run, failure, stop.received, step)
            if evaluates:  # after the checkpoint: whatever ends it costs no step
                began_s += evaluate(run, evaluations, metrics, mlperf, Begun(step, read), stop)


def _first_batch(run: Run, fetch: Fetch, step: int) -> Any:
    """The first batch of a run that has steps to make."""
    batch, failure = fetch() if step < run.length.max_steps else (None, None)
    if unread := cannot_go_on(run.workers, failure):
        raise unread
    return batch


def _metrics_log(
    run: Run,
    begun: Begun,
    evaluations: Evaluations | None,
    mlperf: MlperfLog | None,
    mlflow: MlflowLog | None,
) -> MetricsLog | None:
    """The log of metrics, on the first worker."""
    if not run.workers.is_first:
        return None
    prepared = run.prepared.form.folder.name if run.prepared else None
    tell = mlflow.metrics if mlflow else lambda *_: None
    log = MetricsLog(run.settings.model_dir, run.length, _warnings(run), begun, prepared, tell)
    if mlperf and evaluations and evaluations.last and evaluations.best:
        log.go_on_with(evaluations.last, evaluations.best, mlperf.seconds_to_target)
    return log


def _begin_record(run: Run, step: int) -> None:
    devices = [device.name for device in tf.config.get_visible_devices()]
    about = asdict(run.about)
    size = run.workers.size
    begin_record(run.settings.model_dir, run.frames.header, about, size, devices, step)


def _mlperf(run: Run, step: int) -> MlperfLog | None:
    """MLPerf's log, on the first worker; it says what the run is."""
    if not run.workers.is_first:
        return None
    settings, workers = run.settings, run.workers.size
    log = MlperfLog(settings.model_dir, step, settings.target_miou)
    log.begin(
        submission_benchmark=settings.model,
        submission_platform=f"{workers} worker(s)",
        seed=settings.seed,
        global_batch_size=settings.batch_size * workers,
        opt_name="adam",
        opt_base_learning_rate=settings.learning_rate * run.workers.rate_factor,
        train_samples=len(run.frames),
    )
    return log


def _mlflow(run: Run, step: int) -> MlflowLog | None:
    """MLflow's log, on the first worker, where one is asked for."""
    if not run.workers.is_first:
        return None
    header, code = run.frames.header, code_version()
    tags = {
        "dataset": f"{header.name}@{header.version}",
        "dataset_id": header.id,
        "snapshot": header.snapshot,
        "question": json.dumps(header.question),
        "network": run.settings.model,
        "workers": run.workers.size,
        **code,
    }
    return mlflow_log(run.settings.model_dir, step, run.settings.as_json(), tags)


def _set_rate(run: Run, read: int) -> float:
    """Set the learning rate of the step after which so many examples have been read."""
    planned, settings = run.planned, run.settings
    # The step that a run with the workers of its beginning would make: its own, if they are these.
    step = -(-read // (settings.batch_size * run.identity.workers))
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
    metrics: MetricsLog | None,
    begun: Begun,
    rate: float,
    losses: Sequence[float],
    seconds: float,
) -> None:
    """Have the mean loss of the last steps written by the first worker; all take part in it."""
    loss = run.workers.mean(sum(losses) / len(losses))
    images_per_s = len(losses) * run.settings.batch_size * run.workers.size / seconds
    if metrics:
        say(metrics.record(begun.step, begun.examples, loss, rate, images_per_s))


def _train_step(run: Run) -> Any:
    pixels = run.classes.merged_pixels(catalogued_pixels(run.frames))
    weights = weight_of_class_id(class_weights(pixels))
    seed = run.settings.seed
    return train_step(run.model, run.optimizer, run.workers, weights, run.scale, seed)


def _compile(run: Run, one_step: Any, batch: Any) -> None:
    """Have the step's graph built, which the first step's speed is then without."""
    graph = one_step.get_concrete_function(*map(tf.convert_to_tensor, batch))
    if run.workers.is_first and (draws := stateful_draws(graph)):
        say(
            f"warning: network {run.settings.model} draws by {', '.join(draws)}: a run that goes "
            "on draws other numbers than one without a break; use Keras' layers or a "
            "tf.random.Generator of a layer"
        )


def _finish(run: Run, mlperf: MlperfLog) -> None:
    mlperf.finish(run.length.max_steps)
    sha256 = write_model(run.model, run.about, run.settings.model_dir)
    finish_record(run.settings.model_dir, sha256)
    say(f"model of step {run.length.max_steps} written to {run.settings.model_dir}")


def _cause(error: Exception) -> FramesiftError:
    """The failure, told as one of our errors."""
    if "Horovod" in type(error).__name__ or "Horovod" in str(error):
        return Interrupted("training", "another worker ended; its own message says why")
    if isinstance(error, tf.errors.ResourceExhaustedError):
        return JobFailed(
            "training", "its device is out of memory: lower --batch_size, --height and --width"
        )
    return JobFailed("training", f"TensorFlow failed: {str(error).splitlines()[0][:300]}")
