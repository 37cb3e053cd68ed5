"""The logs of a run: console, run.json, metrics, MLPerf's, MLflow's."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import tensorflow as tf

from catalog.errors import FramesiftError, JobFailed
from training.command import Interrupted, say
from training.network.about_model import ABOUT_FILE
from training.run.code_version import code_version
from training.run.evaluation import Evaluations
from training.run.metrics_log import MetricsLog
from training.run.mlflow_log import MlflowLog, ending, mlflow_log
from training.run.mlperf_log import MlperfLog
from training.run.run_record import RECORD_FILE, begin_record
from training.run.training_run import Run


@dataclass(frozen=True)
class Logs:
    """The logs of a run, on its first worker."""

    metrics: MetricsLog
    """For people, and for programs that watch the run."""
    mlperf: MlperfLog
    """MLPerf's."""
    evaluations: Evaluations | None
    """Scores on the way; None without validation."""


@contextmanager
def open_logs(run: Run) -> Iterator[Logs | None]:
    """The logs of a run that starts; None on all workers but the first.

    What TensorFlow and Horovod raise in the block becomes an error of our tree; MLflow gets it.
    """
    if not run.workers.is_first:
        with _tensorflow_errors():
            yield None
        return
    model_dir, step = run.settings.model_dir, run.start.step
    _say_start(run)
    devices = [device.name for device in tf.config.get_visible_devices()]
    about = asdict(run.about)
    begin_record(model_dir, run.frames.header, about, run.workers.size, devices, step)
    mlperf, mlflow = _mlperf(run), _mlflow(run)
    files = (model_dir / name for name in (ABOUT_FILE, RECORD_FILE))
    with ending(mlflow, *files), _tensorflow_errors():
        evaluations = Evaluations(model_dir, step) if run.scoring else None
        yield Logs(_metrics(run, evaluations, mlperf, mlflow), mlperf, evaluations)


def _say_start(run: Run) -> None:
    settings, header = run.settings, run.frames.header
    dataset = f"{header.name} v{header.version}"
    say(
        f"training on {len(run.frames)} frames of {dataset} ({settings.split}), "
        f"{run.workers.size} worker(s) x {settings.batch_size} frames, {settings.threads} "
        f"thread(s) each, step {run.start.step} to {run.length.max_steps}: {run.length}"
    )
    if run.scale:
        say(f"computing in {settings.precision}; weights, logits and loss in float32")
    if run.classes.map is not None:
        say(f"classes of {run.classes.map.name}: {', '.join(run.classes.names)}")
    if run.prepared is not None:
        say(f"reading frames from the prepared form {run.prepared.form.folder}")
    else:
        say("decoding each frame: no prepared form of this size (framesift stage --prepare)")
    for warning in run.warnings:
        say(f"warning: {warning}")


def _mlperf(run: Run) -> MlperfLog:
    settings, workers = run.settings, run.workers.size
    log = MlperfLog(settings.model_dir, run.start.step, settings.target_miou)
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


def _mlflow(run: Run) -> MlflowLog | None:
    header = run.frames.header
    tags = {
        "dataset": f"{header.name}@{header.version}",
        "dataset_id": header.id,
        "snapshot": header.snapshot,
        "question": json.dumps(header.question),
        "network": run.settings.model,
        "workers": run.workers.size,
        **code_version(),
    }
    return mlflow_log(run.settings.model_dir, run.start.step, run.settings.as_json(), tags)


def _metrics(
    run: Run, evaluations: Evaluations | None, mlperf: MlperfLog, mlflow: MlflowLog | None
) -> MetricsLog:
    prepared = run.prepared.form.folder.name if run.prepared else None
    report = mlflow.metrics if mlflow else lambda *_: None
    model_dir = run.settings.model_dir
    log = MetricsLog(model_dir, run.length, run.warnings, run.start, prepared, report)
    if evaluations and evaluations.last and evaluations.best:
        log.note_scores(evaluations.last, evaluations.best, mlperf.seconds_to_target)
    return log


@contextmanager
def _tensorflow_errors() -> Iterator[None]:
    """TensorFlow's and Horovod's errors in the block become errors of our tree."""
    try:
        yield
    except (tf.errors.OpError, RuntimeError) as error:  # HorovodInternalError is a RuntimeError
        raise _translated(error) from error


def _translated(error: Exception) -> FramesiftError:
    if "Horovod" in type(error).__name__ or "Horovod" in str(error):
        return Interrupted("training", "another worker ended; its own message says why")
    if isinstance(error, tf.errors.ResourceExhaustedError):
        return JobFailed(
            "training", "its device is out of memory: lower --batch_size, --height and --width"
        )
    return JobFailed("training", f"TensorFlow failed: {str(error).splitlines()[0][:300]}")
