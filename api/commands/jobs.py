"""framesift train, validate, jobs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from api import bodies
from api.commands.common import open_workspace
from api.terminal import JsonFlag, emit_json, emit_table, progress_bar, stdout
from api.workspace import Workspace
from catalog.tables import Job
from pipeline.run import (
    TrainSettings,
    refresh,
    submit_training,
    submit_validation,
)
from pipeline.run import (
    cancel as cancel_job,
)
from pipeline.run import (
    wait as wait_for,
)

jobs_app = typer.Typer(no_args_is_help=True, help="Training and validation jobs.")

NameOption = Annotated[str | None, typer.Option(help="The job's name; made up by default.")]
BackendOption = Annotated[str, typer.Option(help="Where it runs.")]
DetachFlag = Annotated[
    bool, typer.Option("--detach", help="Return when it is submitted; see framesift jobs wait.")
]


def register(app: typer.Typer) -> None:
    """Add this subject's commands."""
    app.command("train")(train)
    app.command("validate")(validate)
    app.add_typer(jobs_app, name="jobs")


def train(
    dataset: Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")],
    workers: Annotated[int, typer.Option(min=1, help="Horovod processes.")] = 2,
    batch_size: Annotated[int, typer.Option(min=1, help="Frames per worker and step.")] = 4,
    max_steps: Annotated[int, typer.Option(min=1, help="Steps.")] = 300,
    learning_rate: Annotated[float | None, typer.Option(help="Of one worker.")] = None,
    height: Annotated[int | None, typer.Option(help="Network input height [pixels].")] = None,
    width: Annotated[int | None, typer.Option(help="Network input width [pixels].")] = None,
    seed: Annotated[int, typer.Option(help="Seed of weights and order.")] = 0,
    split: Annotated[str, typer.Option(help="Split to train on.")] = "train",
    name: NameOption = None,
    backend: BackendOption = "local",
    detach: DetachFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Train a segmentation network on a dataset's split, data-parallel over Horovod."""
    workspace = open_workspace()
    settings = TrainSettings(
        workers, batch_size, max_steps, learning_rate, height, width, seed, split
    )
    job = submit_training(
        workspace.records,
        workspace.jobs,
        workspace.records.dataset(dataset),
        settings,
        name=name,
        backend_name=backend,
    )
    _follow(workspace, job, detach, as_json)


def validate(
    model: Annotated[str, typer.Argument(help="A training job's name, or a model folder.")],
    dataset: Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")],
    workers: Annotated[int, typer.Option(min=1, help="Shards, each a process.")] = 2,
    batch_size: Annotated[int, typer.Option(min=1, help="Frames at once.")] = 4,
    split: Annotated[str, typer.Option(help="Split to validate on.")] = "validation",
    name: NameOption = None,
    backend: BackendOption = "local",
    detach: DetachFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Validate a model: the split fanned out over workers, one report merged from all."""
    workspace = open_workspace()
    job = submit_validation(
        workspace.records,
        workspace.jobs,
        model,
        workspace.records.dataset(dataset),
        workers=workers,
        batch_size=batch_size,
        split=split,
        name=name,
        backend_name=backend,
    )
    _follow(workspace, job, detach, as_json)


@jobs_app.command("list")
def list_(as_json: JsonFlag = False) -> None:
    """List the jobs, newest first."""
    records = open_workspace().records
    jobs = [bodies.of_job(refresh(records, job)) for job in records.jobs()]
    if as_json:
        emit_json(jobs)
    else:
        columns = ("name", "kind", "backend", "state", "created", "error")
        emit_table(columns, [[job[column] for column in columns] for job in jobs])


@jobs_app.command("show")
def show(name: Annotated[str, typer.Argument(help="The job.")], as_json: JsonFlag = False) -> None:
    """Show a job: state, metrics, where its files are."""
    records = open_workspace().records
    _show(bodies.of_job(refresh(records, records.job(name))), as_json)


@jobs_app.command("logs")
def logs(name: Annotated[str, typer.Argument(help="The job.")]) -> None:
    """Print what the job's commands printed."""
    job = open_workspace().records.job(name)
    for log in sorted(Path(job.paths["logs"]).glob("*.log")):
        stdout.print(f"==> {log.name} <==", style="bold")
        typer.echo(log.read_text(encoding="utf-8", errors="replace"), nl=False)


@jobs_app.command("wait")
def wait(name: Annotated[str, typer.Argument(help="The job.")], as_json: JsonFlag = False) -> None:
    """Wait until a job has ended; exit code 1 when it did not succeed."""
    workspace = open_workspace()
    _follow(workspace, workspace.records.job(name), False, as_json)


@jobs_app.command("cancel")
def cancel(
    name: Annotated[str, typer.Argument(help="The job.")], as_json: JsonFlag = False
) -> None:
    """Ask a job to end."""
    records = open_workspace().records
    job = cancel_job(records, records.job(name))
    if as_json:
        emit_json(bodies.of_job(job))
    else:
        stdout.print(f"asked job {name} to end; framesift jobs show {name}")


def _follow(workspace: Workspace, job: Job, detach: bool, as_json: bool) -> None:
    if detach:
        _show(bodies.of_job(job), as_json)
        return
    with progress_bar(f"{job.kind} {job.name}", quiet=as_json) as bar:

        def show_progress(now: Job) -> None:
            metrics = now.metrics
            if "loss" in metrics:
                note = f"step {metrics['step']:,} loss {metrics['loss']:.3f}"
                bar.show(metrics["step"], metrics.get("max_steps"), note)
            else:
                bar.show(0, None, now.state)

        job = wait_for(workspace.records, job, show_progress)
    _show(bodies.of_job(job), as_json)


def _show(job: dict[str, Any], as_json: bool) -> None:
    if as_json:
        emit_json(job)
        return
    seconds = f" in {job['seconds']:.1f} s" if job["seconds"] is not None else ""
    stdout.print(f"job {job['name']}: {job['state']}{seconds}")
    if job["error"]:
        stdout.print(job["error"])
    metrics = {key: value for key, value in job["metrics"].items() if not isinstance(value, dict)}
    if metrics:
        emit_table(("metric", "value"), list(metrics.items()))
    emit_table(("", ""), list(job["paths"].items()))
