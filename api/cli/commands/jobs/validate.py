"""framesift validate."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from api.cli import destination
from api.cli.commands.jobs.follow import check_scores, follow, followed, told_regressions
from api.cli.commands.jobs.frame_options import (
    FrameOptions,
    dataset_or_question,
    with_frame_options,
)
from api.cli.commands.jobs.options import (
    AttemptsOption,
    BackendOption,
    BadFramesOption,
    DetachFlag,
    NameOption,
    NoStageFlag,
    StartAfterOption,
    percent_of,
    present,
)
from api.cli.commands.jobs.resources import (
    DryRunFlag,
    OptionOption,
    ResourceOption,
    begun,
    resources_of,
)
from api.cli.sigint import leave_driven
from api.cli.tables.table import emit_table
from api.cli.target import Jobs, Record, target
from api.cli.terminal import JsonFlag, emit_json, stdout
from catalog.errors import InvalidInput
from framesift.progress import count_of, list_of, number_of
from pipeline.jobs.attempts import ATTEMPTS
from pipeline.jobs.state import FINISHED
from pipeline.runs.score_thresholds import parse_thresholds


@with_frame_options
def validate(
    frame_options: FrameOptions,
    model_name: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A training job's name, or a model folder; with @STEP a checkpoint, "
            "with @best the best one.",
        ),
    ],
    datasets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DATASET]...",
            help="NAME, or NAME@VERSION; of several, one table is shown. Else options such as "
            "--range choose frames.",
        ),
    ] = None,
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
            help="Build a foreign network, of model.keras or the MODULE:FUNCTION that "
            "model.json names; this runs its author's code.",
        ),
    ] = False,
    fail_below: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=SCORE,...",
            help="Exit with 1 where a score is lower: miou=0.4,pedestrian=0.3 (a class: its IoU).",
        ),
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL2",
            help="Put the same frames through this model, too, and say where MODEL is worse.",
        ),
    ] = None,
    slices: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TAG",
            help="Score the parts of the split by this tag's values, too; repeatable. all: by each "
            "tag that has few.",
        ),
    ] = None,
    augment_test: Annotated[
        str | None,
        typer.Option(
            metavar="mirror",
            help="Put each image through the model mirrored, too: how many pixels change.",
        ),
    ] = None,
    bad_frames: BadFramesOption = None,
    name: NameOption = None,
    backend: BackendOption = "local",
    resource: ResourceOption = None,
    option: OptionOption = None,
    dry_run: DryRunFlag = False,
    no_stage: NoStageFlag = False,
    start_after: StartAfterOption = None,
    attempts: AttemptsOption = ATTEMPTS,
    detach: DetachFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Validate a model: the split fanned out over workers, one report merged from all.

    On several datasets, one after another: a job and a report for each, and one table of all.
    """
    each_of: Sequence[str | None] = datasets or [None]
    if name is not None and len(each_of) > 1:
        raise InvalidInput(f"--name {name}: names one job, and {len(each_of)} datasets are given")
    options = present(
        workers=workers,
        split=split,
        bad_frames=bad_frames,
        compare=compare,
        slices=slices or None,
        augment_test=augment_test,
        name=name,
        backend=backend,
        resources=resources_of(backend, resource, option),
        start_after=percent_of(start_after),
    )
    if attempts != ATTEMPTS:
        options["attempts"] = attempts
    if no_stage:
        options["stage"] = False
    if fail_below is not None:
        options["fail_below"] = parse_thresholds(fail_below)
    if trust_model:
        refuse_foreign_model()
        options["trust_model"] = True
    jobs = target().jobs
    if dry_run and len(each_of) > 1:
        raise InvalidInput(f"--dry-run: describes one job, and {len(each_of)} datasets are given")
    options["model"] = model_name
    submissions = [{**options, **dataset_or_question(each, frame_options)} for each in each_of]
    if len(submissions) > 1:  # all can begin, or none does
        for submission in submissions:
            jobs.dry_run("validate", **submission)
    started = [begun(jobs, "validate", dry_run, each, as_json) for each in submissions]
    if len(started) == 1:
        follow(jobs, started[0], detach, as_json)
    else:
        follow_all(jobs, started, detach=detach, as_json=as_json)


def follow_all(jobs: Jobs, started: Sequence[Record], *, detach: bool, as_json: bool) -> None:
    """Follow validations of one model to their ends, and show their scores as one table.

    Raises:
        JobFailed: One did not succeed, or its scores are below what was asked for; the first,
            after the table of all.
    """
    if detach:
        leave_driven()
    failures: list[Exception] = []
    ended = [job if detach else _ended(jobs, job, as_json, failures) for job in started]
    if as_json:
        emit_json(ended)
    else:
        _show_table(ended)
    if failures:
        raise failures[0]
    for job in ended:
        check_scores(job)


def _ended(jobs: Jobs, job: Record, quiet: bool, failures: list[Exception]) -> Record:
    """A job at its end; where that is no success, its error is added to the failures."""
    try:
        return followed(jobs, job, quiet)
    except Exception as error:  # a home's JobFailed, or that of the client
        now = jobs.get(job["name"])
        if now["state"] not in FINISHED:
            raise
        failures.append(error)
        return now


def _show_table(ended: Sequence[Record]) -> None:
    """Print validations of one model, a row each, and what is to be said of them."""
    compares = any(job["metrics"].get("compared_with") for job in ended)
    columns = (*_COLUMNS, *(_OF_COMPARISON if compares else ()))
    emit_table(columns, [_row(job, compares) for job in ended])
    for job in ended:
        if regressed := told_regressions(job):
            stdout.print(f"{job['dataset']}: {regressed}")
        for warning in list_of(job["metrics"], "warnings"):
            stdout.print(f"warning: {job['dataset']}: {warning}")
        if job["error"]:
            stdout.print(f"{job['state']}: {job['dataset']}: {job['error']}")


_COLUMNS = (
    "dataset", "split", "frames", "mIoU", "of 95 %", "pixel accuracy", "boundary IoU", "ECE", "job",
    "state",
)  # fmt: skip


_OF_COMPARISON = ("difference", "its 95 %")


def _row(job: Record, compares: bool) -> list[object]:
    metrics = job["metrics"]
    low, high = (_share(metrics, f"miou_{end}") for end in ("low", "high"))
    scores = [_share(metrics, name) for name in ("pixel_accuracy", "boundary_iou", "ece")]
    within = f"{low} to {high}" if low else ""
    frames, miou = count_of(metrics, "frames"), _share(metrics, "miou")
    row = [
        job["dataset"], job["split"], frames, miou, within, *scores, job["name"], job["state"],
    ]  # fmt: skip
    return [*row, *_difference(metrics)] if compares else row


def _difference(metrics: Mapping[str, Any]) -> tuple[str, str]:
    """Mean IoU less that of the model compared with, and its interval."""
    apart, low, high = (
        _share(metrics, f"miou_difference{end}", "+") for end in ("", "_low", "_high")
    )
    return apart, f"{low} to {high}" if low else ""


def _share(metrics: Mapping[str, Any], name: str, sign: str = "") -> str:
    """A score for people; empty where there is none."""
    value = number_of(metrics, name)
    return "" if value is None else f"{value:{sign}.4f}"


def refuse_foreign_model() -> None:
    """Refuse --trust-model where a server would load the model.

    Raises:
        InvalidInput: A server was chosen.
    """
    if destination.server() is not None:
        raise InvalidInput(
            "--trust-model: a server loads no foreign models; validate it where it lies, on a "
            "home of that machine"
        )
