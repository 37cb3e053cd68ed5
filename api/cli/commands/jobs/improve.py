"""framesift improve."""

from pathlib import Path
from typing import Annotated

import typer

from api.cli.commands.jobs.follow import follow
from api.cli.options.common import AtOption
from api.cli.shapes.record import Record
from api.cli.target import target
from api.cli.terminal import JsonFlag, emit_json, emit_table, stdout
from catalog.errors import InvalidInput
from catalog.storage.atomic_write import atomic_write


def improve(
    model: Annotated[str, typer.Argument(help="A training job's name.")],
    frames: Annotated[int, typer.Option(min=1, help="Labelled frames to add.")] = 100,
    label: Annotated[
        int, typer.Option(min=0, help="Unlabelled frames to list that are most worth a label.")
    ] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Write the fkeys of --label to this file, one a line.")
    ] = None,
    per_scene: Annotated[int | None, typer.Option(min=1, help="Most of one scene.")] = None,
    min_gap: Annotated[
        float | None,
        typer.Option(min=0, help="At least so far from frames that are validated with [s]."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of equally good choices.")] = 0,
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

    Chosen by the classes and cameras in which its newest validation finds it weak, by how unsure it
    is where its scores were imported, and unlike each other; never of a scene, a drive or a moment
    that it is validated with.
    """
    if validate and not train:
        raise InvalidInput("--validate: goes with --train, which makes the model to validate")
    if out is not None and not label:
        raise InvalidInput(f"--out {out}: goes with --label, which lists frames")
    here = target()
    improved = here.models.improve(
        model,
        frames=frames,
        label=label,
        per_scene=per_scene,
        min_gap_s=min_gap,
        seed=seed,
        at=at,
    )
    if out is not None:
        atomic_write(out, "".join(f"{fkey}\n" for fkey in improved["to_label"]))
    if as_json:
        emit_json(improved)
    else:
        _show(improved, out)
    if train:
        _round(improved, validate=validate, as_json=as_json)


def _show(improved: Record, out: Path | None) -> None:
    dataset = improved["dataset"]
    report = dataset["report"]
    stdout.print(
        f"dataset {dataset['name']}@{dataset['version']}: {report['added']:,} frames more of "
        f"{report['pool']:,} that could be added, of {report['scenes']:,} scenes; "
        f"{report['left_out_as_too_near']:,} are too near to what is validated with"
    )
    columns = ("class", "weakness", "frames", "added")
    emit_table(columns, [[row[name] for name in columns] for row in report["expects"]])
    listed = improved["to_label"]
    if out is not None:
        stdout.print(f"{len(listed):,} frames to label are listed in {out}")
    elif listed:
        emit_table(("to label",), [[fkey] for fkey in listed])


def _round(improved: Record, *, validate: bool, as_json: bool) -> None:
    """Train on the new version, beginning with the model; and validate that."""
    jobs, dataset = target().jobs, improved["dataset"]
    old = jobs.get(improved["model"])
    told = ("workers", "batch_size", "max_steps", "epochs", "learning_rate", "height", "width")
    settings = {
        name: old["settings"][name]
        for name in (*told, "seed", "split")
        if old["settings"].get(name) is not None
    }
    name = f"{dataset['name']}@{dataset['version']}"
    trained = jobs.train(name, continue_from=improved["model"], **settings)
    follow(jobs, trained, False, as_json)
    if validate:
        before = jobs.get(improved["validation"])
        inherited = {"workers": before["settings"]["workers"], "split": before["split"]}
        follow(jobs, jobs.validate(trained["name"], before["dataset"], **inherited), False, as_json)
