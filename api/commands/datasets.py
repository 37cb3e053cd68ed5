"""framesift dataset, stage."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from pydantic import BaseModel

from api import bodies
from api.commands.common import open_workspace
from api.commands.dataset_tables import show_dataset, show_diff, splits_text
from api.commands.query import AtOption
from api.grouped_options import with_options
from api.new_dataset import (
    NewDataset,
    NewExtension,
    NewSplit,
    class_tags,
    divide_dataset,
    grow_dataset,
    make_dataset,
)
from api.question_options import QuestionOptions, question_of, with_question
from api.set_options import (
    ApartOptions,
    DivisionOptions,
    SetOptions,
    SplitOption,
    demands_of,
    method_of,
)
from api.terminal import JsonFlag, emit_json, emit_table, progress_bar, size, stdout
from catalog.errors import InvalidInput
from catalog.tables import Dataset
from pipeline.dataset_diff import diff_datasets, diff_to_json
from pipeline.dataset_export import TEXTS, ExportFormat, export_text, write_export
from pipeline.manifest import Manifest
from pipeline.stage import stage_dataset
from query.label_range import validation_message
from query.sets.strata import parse_stratifiers

dataset_app = typer.Typer(no_args_is_help=True, help="Saved, versioned selections.")


def register(app: typer.Typer) -> None:
    """Add this subject's commands."""
    app.add_typer(dataset_app, name="dataset")
    app.command("stage")(stage)


@dataset_app.command("create")
@with_question
@with_options("how", SetOptions)
@with_options("division", DivisionOptions)
def create(
    name: Annotated[str, typer.Argument(help="What to call it.")],
    options: QuestionOptions,
    how: SetOptions,
    division: DivisionOptions,
    split: SplitOption = None,
    disjoint_from: Annotated[
        list[str] | None,
        typer.Option(
            "--disjoint-from",
            help="Dataset to share no scene, drive or moment with; repeatable.",
        ),
    ] = None,
    at: AtOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Choose frames and save them as a dataset's new version, divided into splits."""
    method, asked = method_of(how, options)
    question = question_of(asked)
    wanted = _checked(
        NewDataset,
        name=name,
        question=question,
        method=method,
        split=split,
        disjoint_from=tuple(disjoint_from or ()),
        seed=question.seed,
        **_divided(division),
    )
    _show(make_dataset(open_workspace(), wanted, at), as_json)


@dataset_app.command("split")
@with_options("division", DivisionOptions)
def split_(
    name: Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")],
    division: DivisionOptions,
    split: Annotated[str, typer.Option(help="Shares, such as train=0.8,validation=0.2.")],
    seed: Annotated[int, typer.Option(min=0, help="Decides between equally good ones.")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Divide a dataset's frames anew, as a new version of it."""
    wanted = _checked(NewSplit, split=split, seed=seed, **_divided(division))
    _show(divide_dataset(open_workspace(), name, wanted), as_json)


@dataset_app.command("extend")
@with_options("apart", ApartOptions)
def extend(
    name: Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")],
    apart: ApartOptions,
    gap: Annotated[
        list[str] | None,
        typer.Option(
            "--gap",
            help="In how many frames a class should be: bicycle=50, bicycle:5000=50 (pixels).",
        ),
    ] = None,
    gap_where: Annotated[
        list[str] | None,
        typer.Option("--gap-where", help="The same of a condition: \"weather = 'fog'=30\"."),
    ] = None,
    grow: Annotated[
        str | None, typer.Option(help="Split that lacks them; the only one by default.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides between equally good ones.")] = 0,
    at: AtOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Add as few frames as close a gap, as a new version; what stays open is told."""
    demands = demands_of(gap, gap_where)
    if not demands:
        raise InvalidInput("dataset extend: say with --gap or --gap-where what is missing")
    wanted = _checked(NewExtension, demands=demands, split=grow, seed=seed, **asdict(apart))
    _show(grow_dataset(open_workspace(), name, wanted, at), as_json)


@dataset_app.command("diff")
def diff(
    before: Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")],
    after: Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")],
    as_json: JsonFlag = False,
) -> None:
    """Compare two datasets: frames, splits, and distributions with their distances."""
    find = open_workspace().records.dataset
    found = diff_datasets(find(before), find(after))
    if as_json:
        emit_json(diff_to_json(found))
    else:
        show_diff(found)


@dataset_app.command("export")
def export(
    name: Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")],
    format_: Annotated[
        ExportFormat,
        typer.Option("--format", help="files is a path or URI per line, fiftyone a folder."),
    ] = "csv",
    split: Annotated[str | None, typer.Option(help="Only this split.")] = None,
    with_labels: Annotated[
        bool, typer.Option("--with-labels", help="With files: the label's path after a tab.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="File or folder to write.")] = None,
) -> None:
    """Write a dataset for other programs."""
    workspace = open_workspace()
    manifest = Manifest.read(Path(workspace.records.dataset(name).manifest)).split(split)
    tags = class_tags(workspace, manifest)
    if out is not None:
        write_export(manifest, tags, format_, out, with_labels=with_labels)
        return
    if format_ not in TEXTS:
        raise InvalidInput(f"format {format_} is no text: give a file or folder with --out")
    for lines in export_text(manifest, tags, format_, with_labels=with_labels):
        typer.echo(lines, nl=False)


@dataset_app.command("list")
def list_(as_json: JsonFlag = False) -> None:
    """List every version of every dataset."""
    found = open_workspace().records.datasets()
    if as_json:
        emit_json([bodies.of_dataset(dataset) for dataset in found])
    else:
        emit_table(
            ("name", "version", "frames", "splits", "snapshot"),
            [(d.name, d.version, d.frames, splits_text(d), d.snapshot) for d in found],
        )


@dataset_app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")], as_json: JsonFlag = False
) -> None:
    """Show a dataset: its question, snapshot, splits and classes."""
    _show(open_workspace().records.dataset(name), as_json)


def stage(
    dataset: Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")],
    cache: Annotated[
        Path | None, typer.Option(help="Folder to stage into; FRAMESIFT_CACHE by default.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Files copied at once.")] = 4,
    as_json: JsonFlag = False,
) -> None:
    """Copy a dataset's images and labels into a cache near the job."""
    workspace = open_workspace()
    found = workspace.records.dataset(dataset)
    place = (cache or workspace.cache).expanduser().absolute()
    with progress_bar(f"stage {dataset}", quiet=as_json) as bar:
        staging = stage_dataset(
            workspace.records,
            found,
            place,
            workers=workers,
            progress=lambda files, copied: bar.show(files, 2 * found.frames, size(copied)),
        )
    if as_json:
        keys = ("cache", "manifest", "files", "files_copied", "bytes", "bytes_copied")
        emit_json(
            {"dataset": found.name, "version": found.version}
            | {key: getattr(staging, key) for key in keys}
        )
    else:
        stdout.print(
            f"staged {found.name} version {found.version}: {staging.files:,} files, "
            f"{size(staging.bytes)}; copied {staging.files_copied:,} "
            f"({size(staging.bytes_copied)}) into {staging.cache}"
        )


_Wanted = TypeVar("_Wanted", bound=BaseModel)


def _checked(kind: type[_Wanted], **given: Any) -> _Wanted:
    """What is wanted; an option's value that cannot be used is the user's mistake."""
    try:
        return kind(**given)
    except ValueError as error:
        raise InvalidInput(validation_message(error)) from error


def _divided(given: DivisionOptions) -> dict[str, Any]:
    stratifiers = parse_stratifiers(given.stratify_splits) if given.stratify_splits else ()
    return {**asdict(given), "stratify_splits": tuple(one.to_text() for one in stratifiers)}


def _show(dataset: Dataset, as_json: bool) -> None:
    if as_json:
        emit_json(bodies.of_dataset(dataset))
    else:
        show_dataset(dataset)
