"""framesift train, validate, jobs."""

from codecs import getincrementaldecoder
from dataclasses import asdict
from typing import Annotated, Any

import typer

from api.cli import chosen
from api.cli.going_on import going_on
from api.cli.shapes.jobs import Jobs
from api.cli.shapes.record import Record
from api.cli.target import target
from api.cli.terminal import (
    JsonFlag,
    emit_json,
    emit_table,
    emit_text,
    progress_bar,
    stdout,
)
from catalog.errors import InvalidInput
from pipeline.jobs.state import FINISHED
from pipeline.jobs.train_settings import TrainSettings

jobs_app = typer.Typer(no_args_is_help=True, help="Training and validation jobs.")

NameOption = Annotated[str | None, typer.Option(help="The job's name; made up by default.")]
BackendOption = Annotated[str, typer.Option(help="Where it runs.")]
DetachFlag = Annotated[
    bool, typer.Option("--detach", help="Return when it is submitted; see framesift jobs wait.")
]


def train(
    dataset: Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")],
    workers: Annotated[int, typer.Option(min=1, help="Horovod processes.")] = 2,
    batch_size: Annotated[int, typer.Option(min=1, help="Frames per worker and step.")] = 4,
    max_steps: Annotated[
        int | None,
        typer.Option(min=1, help="Steps; 300 by default, or one epoch where that is more."),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="The length in epochs, instead of steps.")
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Of one worker.")] = None,
    height: Annotated[int | None, typer.Option(help="Network input height [pixels].")] = None,
    width: Annotated[int | None, typer.Option(help="Network input width [pixels].")] = None,
    seed: Annotated[int, typer.Option(help="Seed of weights and order.")] = 0,
    split: Annotated[
        str | None,
        typer.Option(help="Split to train on; train, or all frames of a dataset not divided."),
    ] = None,
    continue_from: Annotated[
        str | None,
        typer.Option(help="Begin with the weights of a model: a training job's name, or a folder."),
    ] = None,
    name: NameOption = None,
    backend: BackendOption = "local",
    detach: DetachFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Train a segmentation network on a dataset's split, data-parallel over Horovod."""
    settings = TrainSettings(
        workers=workers,
        batch_size=batch_size,
        max_steps=max_steps,
        epochs=epochs,
        learning_rate=learning_rate,
        height=height,
        width=width,
        seed=seed,
        split=split,
        continue_from=continue_from,
    )
    options = _given(**asdict(settings), name=name, backend=backend)
    jobs = target().jobs
    _follow(jobs, jobs.train(dataset, **options), detach, as_json)


def validate(
    model: Annotated[str, typer.Argument(help="A training job's name, or a model folder.")],
    dataset: Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")],
    workers: Annotated[int, typer.Option(min=1, help="Shards, each a process.")] = 2,
    split: Annotated[
        str | None,
        typer.Option(
            help="Split to validate on; validation, or all frames of a dataset not divided."
        ),
    ] = None,
    trust_model: Annotated[
        bool,
        typer.Option(
            "--trust-model",
            help="Load a foreign model.keras, which runs what its author put into it.",
        ),
    ] = False,
    name: NameOption = None,
    backend: BackendOption = "local",
    detach: DetachFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Validate a model: the split fanned out over workers, one report merged from all."""
    options = _given(workers=workers, split=split, name=name, backend=backend)
    if trust_model:
        refuse_foreign_model()
        options["trust_model"] = True
    jobs = target().jobs
    _follow(jobs, jobs.validate(model, dataset, **options), detach, as_json)


def refuse_foreign_model() -> None:
    """Refuse --trust-model where a server would load the model.

    Raises:
        InvalidInput: A server was chosen.
    """
    if chosen.server() is not None:
        raise InvalidInput(
            "--trust-model: a server loads no foreign models; validate it where it lies, on a "
            "home of that machine"
        )


def _given(**options: Any) -> dict[str, Any]:
    """What was given, and nothing that was left open: an older server may not know its name."""
    return {name: value for name, value in options.items() if value is not None}


@jobs_app.command("list")
def list_(as_json: JsonFlag = False) -> None:
    """List the jobs, newest first."""
    listed = list(target().jobs.list())
    if as_json:
        emit_json(listed)
    else:
        columns = ("name", "kind", "dataset", "split", "state", "attempt", "created", "error")
        emit_table(columns, [[job.get(column) for column in columns] for job in listed])


@jobs_app.command("show")
def show(name: Annotated[str, typer.Argument(help="The job.")], as_json: JsonFlag = False) -> None:
    """Show a job: state, metrics, where its files are."""
    _show(target().jobs.get(name), as_json)


@jobs_app.command("logs")
def logs(name: Annotated[str, typer.Argument(help="The job.")]) -> None:
    """Print what the job's commands printed."""
    decoder = getincrementaldecoder("utf-8")("replace")
    for chunk in target().jobs.log_chunks(name):
        emit_text(decoder.decode(chunk))


@jobs_app.command("wait")
def wait(name: Annotated[str, typer.Argument(help="The job.")], as_json: JsonFlag = False) -> None:
    """Wait until a job has ended; exit code 1 when it did not succeed."""
    jobs = target().jobs
    _follow(jobs, jobs.get(name), False, as_json)


@jobs_app.command("cancel")
def cancel(
    name: Annotated[str, typer.Argument(help="The job.")], as_json: JsonFlag = False
) -> None:
    """Ask a job to end."""
    jobs = target().jobs
    before = jobs.get(name)["state"]
    job = jobs.cancel(name)
    if as_json:
        emit_json(job)
    elif before in FINISHED:
        stdout.print(f"job {name} had ended already: {before}")
    else:
        stdout.print(f"asked job {name} to end; framesift jobs show {name}")


@jobs_app.command("resume")
def resume(
    name: Annotated[str, typer.Argument(help="The job.")],
    detach: DetachFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Start the next attempt of a job that failed or was cancelled, and follow it.

    It goes on where the last one ended: a training from its checkpoint, a validation with the
    shards that are missing, scans and stagings with the rest.
    """
    jobs = target().jobs
    _follow(jobs, jobs.resume(name), detach, as_json)


def _follow(jobs: Jobs, job: Record, detach: bool, as_json: bool) -> None:
    if detach:
        _show(job, as_json)
        return
    with progress_bar(f"{job['kind']} {job['name']}", quiet=as_json) as bar:

        def show_progress(now: Record) -> None:
            metrics = now["metrics"]
            if metrics.get("loss") is not None:
                note = f"step {metrics['step']:,} loss {metrics['loss']:.3f}"
                frames, seen = metrics.get("frames", 0), metrics.get("frames_seen", 0)
                if seen < frames:
                    note += f", of {frames:,} frames it will see {seen:,}"
                bar.show(metrics["step"], metrics.get("max_steps"), note)
            else:
                bar.show(0, None, f"{now['state']} {now.get('waits') or ''}".strip())

        with going_on(job["name"]):
            job = jobs.wait(job["name"], progress=show_progress)
    _show(job, as_json)


def _show(job: Record, as_json: bool) -> None:
    if as_json:
        emit_json(job)
        return
    seconds = f" in {job['seconds']:.1f} s" if job["seconds"] is not None else ""
    stdout.print(f"job {job['name']}: {job['state']}{seconds}")
    # What is asked by get, servers of the first releases do not tell.
    for line in (job["error"], f"waits {job['waits']}" if job.get("waits") else ""):
        if line:
            stdout.print(line)
    for warning in job["metrics"].get("warnings", ()):
        stdout.print(f"warning: {warning}")
    if job["state"] in ("failed", "cancelled") and job["kind"] != "policy":
        stdout.print(f"framesift jobs resume {job['name']} goes on where it ended")
    asked = {name: job.get(name) for name in ("dataset", "attempt")} | (job.get("settings") or {})
    told = [(key, _plain(value)) for key, value in asked.items() if value is not None]
    emit_table(("asked for", ""), told)
    shown = job["metrics"].items()
    metrics = {key: value for key, value in shown if not isinstance(value, dict | list)}
    if metrics:
        emit_table(("metric", "value"), list(metrics.items()))
    emit_table(("", ""), list(job["paths"].items()))


def _plain(value: object) -> object:
    """As it is given on a command line."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else value
