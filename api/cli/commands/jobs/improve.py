"""framesift improve."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer

from api.cli.commands.jobs.again import training_again, validation_again
from api.cli.commands.jobs.follow import check_scores, followed, show_job
from api.cli.options.common import AtOption
from api.cli.tables.table import emit_table
from api.cli.target import Record, Target, target
from api.cli.terminal import JsonFlag, document, emit_json, stdout
from catalog.errors import InvalidInput
from catalog.storage.atomic_write import atomic_write


def improve(
    model: Annotated[str, typer.Argument(help="A training job's name.")],
    frames: Annotated[
        int, typer.Option(min=0, help="Labelled frames to add; 0 with --label.")
    ] = 100,
    label: Annotated[
        int, typer.Option(min=0, help="Unlabelled frames to list that are most worth a label.")
    ] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Write the fkeys of --label to this file, one a line.")
    ] = None,
    for_classes: Annotated[
        str | None,
        typer.Option(
            "--for", help="Classes to choose frames for, by comma; all that it is weak in."
        ),
    ] = None,
    per_scene: Annotated[int | None, typer.Option(min=1, help="Most of one scene.")] = None,
    min_gap: Annotated[
        float | None,
        typer.Option(min=0, help="At least so far from frames that are validated with [s]."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of equally good choices.")] = 0,
    drop: Annotated[
        list[str] | None,
        typer.Option(
            help="fkey of a frame to leave out of those chosen; several times: several. No other "
            "takes its place."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say which frames and why, and save nothing.")
    ] = False,
    train: Annotated[
        bool, typer.Option("--train", help="Then train on it, beginning with the model.")
    ] = False,
    validate: Annotated[
        bool,
        typer.Option("--validate", help="Then validate what was trained, on what the model was."),
    ] = False,
    at: AtOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Add the frames that a model lacks to what it was trained on, as a new version.

    They cover the classes in which its newest validation finds it weak, or those of --for, by
    labels; those of --label by what its imported predictions let expect. Weak slices and unsure
    frames count more; never is one of a scene, a drive or a moment that it is validated with.
    """
    if validate and not train:
        raise InvalidInput("--validate: goes with --train, which makes the model to validate")
    if train and (dry_run or not frames):
        raise InvalidInput(
            "--train: goes without --dry-run, which makes nothing to train on"
            if dry_run
            else "--train: goes with --frames, which it trains on; give 1 or more"
        )
    if out is not None and not label:
        raise InvalidInput(f"--out {out}: goes with --label, which lists frames")
    here = _target_of(model, train=train)
    improved = here.models.improve(
        model,
        frames=frames,
        label=label,
        per_scene=per_scene,
        min_gap_s=min_gap,
        seed=seed,
        classes=[name.strip() for name in (for_classes or "").split(",") if name.strip()],
        drop=drop or [],
        dry_run=dry_run,
        at=at,
    )
    if out is not None:
        atomic_write(out, "".join(f"{fkey}\n" for fkey in improved["to_label"]))
    if not as_json:
        _show(improved, label, out)
    ended: dict[str, Record] = {}
    try:
        for name, job in _round(improved, validate=validate, as_json=as_json) if train else ():
            ended[name] = job
            if not as_json:
                show_job(job, as_json)
    finally:
        if as_json:
            emit_json(document(improved) | ended)
    for job in ended.values():
        check_scores(job)


def _target_of(model: str, *, train: bool) -> Target:
    """The home or server, where a training repeats one that it has.

    Raises:
        NotFound: Another program trained the model: there is no training to repeat.
    """
    here = target()
    if train:
        here.jobs.get(model)
    return here


def _show(improved: Record, label: int, out: Path | None) -> None:
    dataset, unsaved = improved["dataset"], improved.get("unsaved")
    if dataset is not None or unsaved is not None:
        report = unsaved if dataset is None else dataset["report"]
        what = (
            f"{improved['trained_on']} would get"
            if dataset is None
            else f"dataset {dataset['name']}@{dataset['version']}:"
        )
        stdout.print(
            f"{what} {report['added']:,} frames more of "
            f"{report['pool']:,} that could be added, of {report['scenes']:,} scenes; "
            f"{report['left_out_as_too_near']:,} are too near to what is validated with"
        )
        columns = ("class", "weakness", "frames", "added")
        emit_table(columns, [[row[name] for name in columns] for row in report["expects"]])
        stdout.print(f"weakness is by the report of {improved['validation']}")
        if dataset is None:
            _show_reasons(improved, "to_add", "to add")
    elif reason := improved.get("nothing_added"):
        stdout.print(f"no frame was added: {reason}")
    listed = improved["to_label"]
    if out is not None:
        stdout.print(f"{len(listed):,} frames to label are listed in {out}")
    elif listed:
        _show_reasons(improved, "to_label", "to label")
    if label and not listed:
        stdout.print(
            "no frame to label: the catalog has none without a label that is neither in the "
            "dataset nor too near to what is validated with"
        )


def _show_reasons(improved: Record, name: str, title: str) -> None:
    reasons = {row["fkey"]: row["reason"] for row in improved["reasons"]}
    emit_table((title, "reason"), [[fkey, reasons[fkey]] for fkey in improved[name]])


def _round(
    improved: Record, *, validate: bool, as_json: bool
) -> Iterator[tuple[Literal["training", "validated"], Record]]:
    """Train on the new version, beginning with the model, and validate that; each job at its end.

    Raises:
        InvalidInput: There is no new version to train on.
        JobFailed: One did not succeed.
    """
    if improved["dataset"] is None:
        raise InvalidInput(f"--train: {improved.get('nothing_added')}")
    jobs, dataset, model = target().jobs, improved["dataset"], improved["model"]
    name = f"{dataset['name']}@{dataset['version']}"
    training = jobs.submit(training_again(jobs.get(model), name, model))
    yield "training", followed(jobs, training, as_json)
    if validate:
        before = jobs.get(improved["validation"])
        validation = jobs.submit(validation_again(before, training["name"]))
        yield "validated", followed(jobs, validation, as_json)
