"""The training loop.

What it takes and gives on the sample frames is in training/experiments/.
"""

import hashlib
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from catalog.errors import BadFile, FramesiftError, InvalidInput, JobFailed
from pipeline.cache.reading import Reading, ReadsThrough
from pipeline.cores import threads_of_process
from pipeline.datasets.chosen_split import UNDIVIDED
from pipeline.example_order import examples
from pipeline.manifest import Manifest
from pipeline.prepared.form import PreparedRows
from pipeline.runs.augmentations import augmentations_in
from pipeline.runs.bad_frames import BadFrames
from pipeline.runs.class_map import chosen_classes, classes_in
from pipeline.runs.exchange import Exchange
from pipeline.runs.precision import MIXED
from pipeline.runs.run_length import Begun, RunLength, length_from, run_length
from training.command import Interrupted, say
from training.input.batches import Batches
from training.input.class_weights import catalogued_pixels, class_weights
from training.input.dataset import open_reader, open_split
from training.input.frame_reader import FrameReader
from training.input.label_classes import LabelClasses
from training.input.skipped_frames import (
    SkippedFrames,
    read_skipped_frames,
    write_skipped_frames,
)
from training.input.trained_frames import (
    ABOUT_TRAINED,
    write_trained_frames,
    write_trained_scenes,
)
from training.network.about_model import ABOUT_FILE, AboutModel
from training.network.deeplab import load_backbone
from training.network.draws import layers_with_generators, stateful_draws
from training.network.learning_rate import COURSE, learning_rate_at
from training.network.loss import weight_of_class_id
from training.network.model_files import write_model
from training.network.networks import build_network
from training.network.parent import Parent, read_parent
from training.network.precision import LossScale, chosen_precision, compile_for_gpus, layers_in
from training.run.checkpoint import CHECKPOINT_FILE, Checkpoint, checkpoints_bytes
from training.run.code_version import code_version
from training.run.evaluation import Evaluations, Scoring, keep_best, scored
from training.run.memory import need_memory
from training.run.metrics_log import MetricsLog
from training.run.minutes import Minutes
from training.run.mlflow_log import MlflowLog, ending, mlflow_log
from training.run.mlperf_log import MlperfLog
from training.run.room import need_room
from training.run.run_identity import RunIdentity
from training.run.run_record import RECORD_FILE, begin_record, finish_record
from training.run.stop_signal import StopSignal, noted_signals
from training.run.train_step import train_step
from training.run.workers import Workers, join_workers, use_threads
from training.run_settings import RunSettings

CLIP_NORM = 1.0

Fetch = Callable[[], tuple[Any, FramesiftError | None]]
"""Gives the next batch, or why there is none."""


@dataclass(frozen=True)
class Run:
    """The parts that a training run works with.

    Attributes:
        settings: As they are, nothing left open.
        length: With the workers that it has now.
        planned: With those that it began with, whose number is in its identity.
        frames: Of the split.
        classes: That the network learns.
        prepared: Their prepared form, where there is one.
        workers: This one among all.
        parent: The model that it began with.
        identity: By which it is told from other runs.
        model: Keras model.
        optimizer: Keras optimizer.
        scoring: Of this worker's share of the split to validate on; None without one.
        bad: Frames that it goes on without; None where one ends it.
        scale: Of the loss, where layers compute in halves.
    """

    settings: RunSettings
    length: RunLength
    planned: RunLength
    frames: Manifest
    classes: LabelClasses
    prepared: PreparedRows | None
    workers: Workers
    parent: Parent | None
    identity: RunIdentity
    model: Any
    optimizer: Any
    scoring: Scoring | None = None
    bad: SkippedFrames | None = None
    scale: LossScale | None = None

    @property
    def skipped(self) -> list[SkippedFrames]:
        """The bad frames of the split trained on, and of that scored on the way."""
        every = (self.bad, self.scoring.bad if self.scoring else None)
        return [bad for bad in every if bad is not None]

    @property
    def state(self) -> list[Any]:
        """The variables beside the model's that a checkpoint keeps, in its order."""
        return [*self.optimizer.variables, *(self.scale.variables if self.scale else ())]


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
    length = _length(settings, len(frames), workers.size)
    precision = chosen_precision(settings.precision)
    if not workers.agree(precision):
        raise InvalidInput(
            f"this worker would compute in {precision}, and others would not: give --precision "
            "float32 or mixed_float16"
        )
    # From here on the settings are those that the run has, and not those that were left open.
    settings = replace(settings, split=split, threads=threads, precision=precision)
    bad = _skipped(settings, frames, len(frames), split)
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
        _scoring(settings, frames, through.manifest, classes, workers, model),
        bad,
        LossScale() if precision == MIXED else None,
    )
    _about(run).check()  # before the first step, and not after the last
    _look_for_all(run, reader)

    run, begun = _restore(run)
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


def _skipped(
    settings: RunSettings, frames: Manifest, of_split: int, split: str
) -> SkippedFrames | None:
    """The bad frames among those that a worker reads, of so many in the split; None to fail."""
    bad = BadFrames.parse(settings.bad_frames)
    if not bad.skips:
        return None
    return SkippedFrames(frames.frames["fkey"].to_pylist(), bad.limit(of_split), split)


def _scoring(
    settings: RunSettings,
    frames: Manifest,
    manifest: Path,
    classes: LabelClasses,
    workers: Workers,
    model: Any,
) -> Scoring | None:
    """The validation in between, where that was asked for."""
    if settings.exec_mode != "train_and_evaluate":
        return None
    split, _, palette = open_split(manifest, settings.evaluate_split, "validation")
    if not len(split.need_labels()) or split.frames.equals(frames.frames):
        raise InvalidInput(
            f"--evaluate_split {settings.evaluate_split} of {frames.header.name}: expected a split "
            "with frames that are not those trained on"
        )
    share = split.shard(workers.rank, workers.size)
    bad = _skipped(settings, share, len(split), settings.evaluate_split)
    reader, _ = open_reader(
        share,
        palette,
        settings.height_px,
        settings.width_px,
        settings.cache_bytes // 4,
        classes=classes,
        bad=bad,
    )
    return Scoring(model, reader, len(share), len(classes), settings.threads, bad)


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
    if cannot := _cannot_go_on(run.workers, failure):
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


def _length(settings: RunSettings, frames: int, workers: int) -> RunLength:
    return run_length(frames, workers, settings.batch_size, settings.max_steps, settings.epochs)


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
    each_step = _examples_of_step(run)
    read = begun.examples
    metrics = _metrics_log(run, begun, mlflow)
    evaluations = _evaluations(run, step)
    one_step = _train_step(run)
    losses: list[float] = []
    failure: FramesiftError | None = None
    if batch := _first_batch(run, fetch, step):
        _compile(run, one_step, batch)
    began_s = time.perf_counter()
    saving = Minutes(run.settings.checkpoint_minutes)
    with noted_signals() as stop:
        if _lacks_score(run, evaluations, begun):
            began_s += _evaluate(run, evaluations, metrics, mlperf, begun, stop)
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
                raise _diverged(run, "the loss", step, rate)
            if step == 1 or step % run.settings.log_every_steps == 0 or step == last:
                now_s = time.perf_counter()
                _log(run, metrics, Begun(step, read), rate, losses, now_s - began_s)
                began_s, losses = now_s, []
            ends = leaves and step < last
            evaluates = not ends and _is_evaluated(run, Begun(step, read))
            due = due or step % run.settings.checkpoint_every_steps == 0
            if ends or evaluates or due or step == last:
                _save(run, Begun(step, read), rate)
                _list_bad(run, metrics)
                saving.is_done()
                stop.asks_checkpoint = False
            if ends:
                raise _ended(run, failure, stop.received, step)
            if evaluates:  # after the checkpoint: whatever ends it costs no step
                began_s += _evaluate(run, evaluations, metrics, mlperf, Begun(step, read), stop)


def _first_batch(run: Run, fetch: Fetch, step: int) -> Any:
    """The first batch of a run that has steps to make."""
    batch, failure = fetch() if step < run.length.max_steps else (None, None)
    if unread := _cannot_go_on(run.workers, failure):
        raise unread
    return batch


def _metrics_log(run: Run, begun: Begun, mlflow: MlflowLog | None) -> MetricsLog | None:
    """The log of metrics, on the first worker."""
    if not run.workers.is_first:
        return None
    prepared = run.prepared.form.folder.name if run.prepared else None
    tell = mlflow.metrics if mlflow else lambda *_: None
    return MetricsLog(run.settings.model_dir, run.length, _warnings(run), begun, prepared, tell)


def _begin_record(run: Run, step: int) -> None:
    devices = [device.name for device in tf.config.get_visible_devices()]
    about = asdict(_about(run))
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


def _evaluations(run: Run, step: int) -> Evaluations | None:
    if run.scoring is None or not run.workers.is_first:
        return None
    return Evaluations(run.settings.model_dir, step)


def _is_evaluated(run: Run, begun: Begun) -> bool:
    """Return whether the model of now is scored on the split to validate on.

    That is after the last step, and where a step ended so many epochs.
    """
    each, each_step = len(run.frames) * run.settings.evaluate_every, _examples_of_step(run)
    ended = begun.examples // each > (begun.examples - each_step) // each
    return run.scoring is not None and (ended or begun.step == run.length.max_steps)


def _lacks_score(run: Run, evaluations: Evaluations | None, begun: Begun) -> bool:
    """Return whether a run goes on from a step whose scoring was ended before its end."""
    if not begun.step or not _is_evaluated(run, begun):
        return False
    return run.workers.any(evaluations is not None and not evaluations.has(begun.step))


def _evaluate(
    run: Run,
    evaluations: Evaluations | None,
    metrics: MetricsLog | None,
    mlperf: MlperfLog | None,
    begun: Begun,
    stop: StopSignal,
) -> float:
    """Score the model of now, whose checkpoint is written; keep it if it is the best.

    Returns:
        The time that it took [s].

    Raises:
        BadFile: A frame cannot be read.
        JobFailed: One of another worker cannot, or the run was told to end.
    """
    scoring, step = run.scoring, begun.step
    assert scoring is not None  # or the model of now is not scored
    began_s = time.perf_counter()
    failure: FramesiftError | None = None
    matrix = None
    try:
        matrix = scoring.matrix(run.settings.batch_size, lambda: bool(stop.received))
    except FramesiftError as error:
        failure = error
    if run.workers.any(matrix is None) or matrix is None:
        raise _ended(run, failure, stop.received, step)
    _list_bad(run, metrics)
    now = scored(step, run.workers.sum(matrix))
    if evaluations and metrics and mlperf:
        if best := evaluations.is_best(now):
            about = replace(_about(run), step=step)
            keep_best(
                lambda folder: write_model(run.model, about, folder),
                run.settings.model_dir,
                ABOUT_TRAINED,
            )
        # After the model: a run that is killed between them scores this step again.
        evaluations.record(now)
        mlperf.evaluated(step, begun.examples / len(run.frames), now.miou)
        metrics.evaluated(now, evaluations.best or now, mlperf.seconds_to_target)
        say(
            f"step {step}: mean IoU {100 * now.miou:.1f} % on {run.settings.evaluate_split}, pixel "
            f"accuracy {100 * now.pixel_accuracy:.1f} %{', the best so far' if best else ''}"
        )
    run.workers.broadcast_number(step)  # none goes on, or ends, while the first one writes
    return time.perf_counter() - began_s


def _examples_of_step(run: Run) -> int:
    return run.settings.batch_size * run.workers.size


def _ended(run: Run, failure: FramesiftError | None, received: str, step: int) -> FramesiftError:
    """Why the run ends here, on this worker; its checkpoint is written."""
    unread = _cannot_go_on(run.workers, failure)
    if unread and run.workers.is_first:
        say(f"the checkpoint of step {step} is kept")
    return unread or Interrupted(
        "training",
        f"ended by {received or 'another worker'} after step {step} of {run.length.max_steps}: "
        "its checkpoint is kept, and the same command goes on from it",
    )


def _cannot_go_on(workers: Workers, failure: FramesiftError | None) -> FramesiftError | None:
    """The failure of one worker at least, on all of them: whichever ends the log names it."""
    texts = workers.texts("" if failure is None else str(failure))
    return failure or next((JobFailed("training", text) for text in texts if text), None)


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


def _restore(run: Run) -> tuple[Run, Begun]:
    """Progress of the last checkpoint, its state now on all workers; and the run as it goes on."""
    workers = run.workers
    begun, began_with = Begun(), workers.size
    failure: FramesiftError | None = None
    if workers.is_first:
        try:
            begun, began_with = _first_state(run)
        except FramesiftError as error:
            failure = error
    if cannot := _cannot_go_on(workers, failure):
        raise cannot
    # The optimizer is built, so its variables are there to send before the first step already.
    workers.broadcast_variables([*run.model.variables, *run.state])
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
    checkpoint = Checkpoint.restore_newest(model_dir, lambda one: _take(run, one), say)
    if checkpoint:
        began_with = _began_with(run, checkpoint)
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
    write_trained_frames(model_dir, fkeys, parent)
    write_trained_scenes(model_dir, run.frames.frames["scene"].to_pylist(), parent)
    return Begun(), run.workers.size


def _began_with(run: Run, checkpoint: Checkpoint) -> int:
    """The number of workers that the run of a checkpoint began with."""
    return checkpoint.identity.workers if checkpoint.identity else run.workers.size


def _take(run: Run, checkpoint: Checkpoint) -> None:
    """Have the model and its optimizer be as a checkpoint says.

    Raises:
        InvalidInput: It is another run's.
        BadFile: Its arrays are not the run's.
    """
    model_dir = run.settings.model_dir
    identity = _as_begun(run, _began_with(run, checkpoint)).identity
    checkpoint.check_same_run(run.frames.header.class_list, identity, model_dir)
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


def _diverged(run: Run, what: str, step: int, rate: float) -> JobFailed:
    """Why a run ends whose numbers are no use any more, and what is kept of it."""
    checkpoint = Checkpoint.read(run.settings.model_dir)
    hint = f"the checkpoint of step {checkpoint.step} is kept, " if checkpoint else ""
    return JobFailed(
        "training",
        f"{what} is not finite at step {step}, with learning rate {rate:.3g}: {hint}begin a new "
        "run with a lower --learning_rate",
    )


def _save(run: Run, begun: Begun, rate: float) -> None:
    """Write a checkpoint, if all workers hold the same weights as they must.

    Raises:
        JobFailed: They do not, or the weights are not finite: the last checkpoint stays.
        StorageError: The disk refuses.
    """
    weights = run.model.get_weights()
    digest = hashlib.sha256(b"".join(w.tobytes() for w in weights)).hexdigest()
    if not run.workers.agree(digest):
        raise JobFailed("training", f"the workers' weights differ at step {begun.step}")
    if not all(np.isfinite(each).all() for each in weights):
        raise _diverged(run, "a weight", begun.step, rate)
    if run.workers.is_first:
        Checkpoint(
            step=begun.step,
            examples=begun.examples,
            class_list=run.frames.header.class_list,
            class_map=run.classes.map,
            identity=run.identity,
            weights=weights,
            optimizer=[variable.numpy() for variable in run.state],
        ).write(run.settings.model_dir, run.settings.keep_checkpoints)
    # A launcher ends all workers once one has ended: none may end while the first one writes.
    run.workers.broadcast_number(begun.step)


def _list_bad(run: Run, metrics: MetricsLog | None) -> None:
    """Have every worker know the bad frames of all, and the first one keep the list.

    Raises:
        BadFile: All together they are more than may be.
    """
    kept = read_skipped_frames(run.settings.model_dir) if metrics and run.skipped else []
    for bad in run.skipped:
        bad.add(one for one in kept if (one["split"] or run.settings.split) == bad.split)
        for text in run.workers.texts(json.dumps(bad.listed())):
            bad.add(json.loads(text))
    if metrics and run.skipped:
        listed = [one for bad in run.skipped for one in bad.listed()]
        write_skipped_frames(run.settings.model_dir, listed)
        metrics.skips(len(listed))
    for bad in run.skipped:
        bad.check()


def _about(run: Run) -> AboutModel:
    settings, header = run.settings, run.frames.header
    return AboutModel(
        sha256="",
        network=settings.model,
        step=run.length.max_steps,
        classes=run.classes.names,
        class_list=header.class_list,
        class_map=run.classes.map.as_json() if run.classes.map else None,
        height_px=settings.height_px,
        width_px=settings.width_px,
        workers=run.workers.size,
        dataset={
            "name": header.name,
            "version": header.version,
            "id": header.id,
            "split": settings.split,
            "frames": len(run.frames),
            "bad_frames": len(run.bad.listed()) if run.bad else 0,
        },
        settings=settings.as_json(),
        parent=asdict(run.parent) if run.parent else None,
    )


def _finish(run: Run, mlperf: MlperfLog) -> None:
    mlperf.finish(run.length.max_steps)
    sha256 = write_model(run.model, _about(run), run.settings.model_dir)
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
