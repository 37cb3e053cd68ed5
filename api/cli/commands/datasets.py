"""framesift dataset."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from api.cli import destination
from api.cli.exit_codes import ExitCode, StrictFlag, end
from api.cli.options.common import AtOption
from api.cli.options.grouped_options import with_options
from api.cli.options.question_options import QuestionOptions, question_of, with_question
from api.cli.options.set_options import (
    ApartOptions,
    DivisionOptions,
    SetOptions,
    SplitOption,
    division_of,
    method_of,
)
from api.cli.progress_bar import progress_bar
from api.cli.tables.datasets import SHOWN_FRAMES, show_dataset, show_diff, splits_text
from api.cli.tables.table import emit_table
from api.cli.target import Record, home_session, target
from api.cli.terminal import JsonFlag, emit_json, emit_text, stdout
from catalog.errors import InvalidInput, StorageError
from catalog.text.visible_text import visible
from pipeline.datasets.export_formats import TEXTS, ExportFormat
from pipeline.exports.formats import TRAINING_FORMATS, TrainingFormat

if TYPE_CHECKING:  # imported where it is used: short commands do without
    from pydantic import BaseModel

_MOST_FRAMES = 1_000_000
"""Frames of each kind that are listed of a difference, as many as a server gives."""

_SHOWN = 100
"""Frames left out of an export that are listed."""

AnyFormat = Literal[ExportFormat, TrainingFormat]

dataset_app = typer.Typer(no_args_is_help=True, help="Saved, versioned selections.")


@dataset_app.command("create")
@with_question
@with_options("how", SetOptions)
@with_options("division", DivisionOptions)
def create(
    name: Annotated[str, typer.Argument(help="Its name.")],
    options: QuestionOptions,
    how: SetOptions,
    division: DivisionOptions,
    split: SplitOption = None,
    split_given: Annotated[
        bool,
        typer.Option(
            "--split-given",
            help="Keep the splits of the data set's makers (the tag given_split) as train, "
            "validation and test.",
        ),
    ] = False,
    disjoint_from: Annotated[
        list[str] | None,
        typer.Option(
            "--disjoint-from",
            help="Share no scene, drive or moment with this dataset; repeatable.",
        ),
    ] = None,
    at: AtOption = None,
    strict: StrictFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Choose frames and save them as a dataset's new version, divided into splits."""
    from api.schemas.new_datasets import NewDataset
    from query.question.wrong_value import checked

    method, conditions = method_of(how, options)
    question = question_of(conditions)
    body = checked(
        NewDataset,
        name=name,
        question=question,
        method=method,
        split=split,
        split_given=split_given,
        disjoint_from=tuple(disjoint_from or ()),
        seed=question.seed,
        **division_of(division),
    )
    data = _data(body)
    if method is not None:  # which one it is, is a default of its class
        data["method"]["method"] = method.method
    dataset = target().datasets.create(data.pop("name"), at=at, **data)
    _show(dataset, as_json)
    end(ExitCode.TARGETS_NOT_MET, when=strict and _is_short(dataset["report"]))


@dataset_app.command("split")
@with_options("division", DivisionOptions)
def split_(
    name: Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")],
    division: DivisionOptions,
    split: Annotated[str, typer.Option(help="Shares, such as train=0.8,validation=0.2.")],
    seed: Annotated[
        int, typer.Option(min=0, help="Seed that decides between equally good divisions.")
    ] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Divide a dataset's frames again, as a new version of it."""
    from api.schemas.new_datasets import NewSplit
    from query.question.wrong_value import checked

    body = checked(NewSplit, split=split, seed=seed, **division_of(division))
    data = _data(body)
    _show(target().datasets.divide(name, data.pop("split"), **data), as_json)


@dataset_app.command("extend")
@with_options("apart", ApartOptions)
def extend(
    name: Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")],
    apart: ApartOptions,
    gap: Annotated[
        list[str] | None,
        typer.Option(
            "--gap",
            help="How many frames a class should be in: bicycle=50, bicycle:5000=50 (pixels).",
        ),
    ] = None,
    gap_where: Annotated[
        list[str] | None,
        typer.Option("--gap-where", help="The same of a condition: \"weather = 'fog'=30\"."),
    ] = None,
    grow: Annotated[
        str | None, typer.Option(help="Split that lacks them; the only one by default.")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed that decides between equally good divisions.")
    ] = 0,
    at: AtOption = None,
    strict: StrictFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Add as few frames as close a gap, as a new version; lists what stays open."""
    from api.schemas.new_datasets import NewExtension
    from query.question.wrong_value import checked
    from query.sets.as_written import parse_demands

    demands = parse_demands(gap or (), gap_where or ())
    if not demands:
        raise InvalidInput("dataset extend: say with --gap or --gap-where what is missing")
    body = checked(NewExtension, demands=demands, split=grow, seed=seed, **asdict(apart))
    data = _data(body)
    dataset = target().datasets.extend(name, *data.pop("demands"), at=at, **data)
    _show(dataset, as_json)
    end(ExitCode.TARGETS_NOT_MET, when=strict and _is_short(dataset["report"]))


@dataset_app.command("reduce")
def reduce(
    name: Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")],
    frames: Annotated[int, typer.Option(min=1, help="How many frames the split keeps.")],
    model: Annotated[
        str | None,
        typer.Option(help="A training job: what its newest validation finds weak is kept first."),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Split that is made smaller; train, or the only one.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of equally good choices.")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Keep the most informative frames of a training split, as a new version."""
    from api.schemas.new_datasets import NewReduction
    from query.question.wrong_value import checked

    data = _data(checked(NewReduction, frames=frames, model=model, split=split, seed=seed))
    _show(target().datasets.reduce(name, data.pop("frames"), **data), as_json)


def _is_short(report: Mapping[str, Any]) -> bool:
    """Return whether a dataset lacks what was asked for."""
    return bool(report.get("unmet")) or report.get("tolerance_met") is False


@dataset_app.command("rebuild")
def rebuild(
    name: Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")],
    as_json: JsonFlag = False,
) -> None:
    """Rebuild a lost or damaged manifest from question, snapshot and seed; its id is checked."""
    rebuilt = target().datasets.rebuild(name)
    if as_json:
        emit_json(rebuilt)
    else:
        stdout.print(
            f"rebuilt {rebuilt['name']}@{rebuilt['version']}: {rebuilt['frames']:,} frames, equal "
            f"to those of then by its id {rebuilt['id'][:12]}"
        )


@dataset_app.command("rename")
def rename(
    name: Annotated[str, typer.Argument(help="NAME of a dataset.")],
    new_name: Annotated[str, typer.Argument(help="Its other name, for all its versions.")],
    as_json: JsonFlag = False,
) -> None:
    """Rename a dataset with all its versions; jobs and their results follow."""
    _show(target().datasets.change(name, rename=new_name), as_json)


@dataset_app.command("describe")
def describe(
    name: Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")],
    description: Annotated[str, typer.Argument(help='What is to be said of it; "" for nothing.')],
    as_json: JsonFlag = False,
) -> None:
    """Describe a dataset's version."""
    _show(target().datasets.change(name, description=description), as_json)


@dataset_app.command("remove")
def remove(
    name: Annotated[str, typer.Argument(help="NAME for all versions, or NAME@VERSION.")],
    as_json: JsonFlag = False,
) -> None:
    """Remove a dataset, or one version of it; jobs keep their results."""
    removed = target().datasets.remove(name)
    if as_json:
        emit_json(removed)
    else:
        stdout.print(f"removed {', '.join(removed['removed'])}")


@dataset_app.command("diff")
def diff(
    before: Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")],
    after: Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")],
    as_json: JsonFlag = False,
) -> None:
    """Compare two datasets: frames, splits, and distributions with their distances."""
    if not as_json:
        show_diff(target().datasets.diff(before, after, limit=SHOWN_FRAMES))
    else:
        for piece in target().datasets.diff_text(before, after, limit=_MOST_FRAMES):
            emit_text(piece)
        emit_text("\n")


@dataset_app.command("export")
def export(
    name: Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")],
    format_: Annotated[
        AnyFormat,
        typer.Option(
            "--format",
            help="files is a path or URI per line, fiftyone a folder; mmseg, ultralytics, hf, "
            "webdataset and coco are folders with images and masks for other trainers.",
        ),
    ] = "csv",
    split: Annotated[str | None, typer.Option(help="Only this split.")] = None,
    with_labels: Annotated[
        bool, typer.Option("--with-labels", help="With files: the label's path after a tab.")
    ] = False,
    classes: Annotated[
        str | None,
        typer.Option(
            help="For other trainers: merge label classes by a map's name, its JSON or its file.",
        ),
    ] = None,
    shard_bytes: Annotated[
        int,
        typer.Option(min=0, help="With hf and webdataset: bytes of a shard's files; 0 for 500 MB."),
    ] = 0,
    out: Annotated[Path | None, typer.Option(help="File or folder to write.")] = None,
    strict: StrictFlag = False,
) -> None:
    """Write a dataset for other programs.

    An export for another trainer that is begun again writes what is missing.
    """
    if format_ in TRAINING_FORMATS:
        if with_labels:
            raise InvalidInput(f"--with-labels: format {format_} has its masks; leave it out")
        _export_for_training(name, format_, classes, shard_bytes, split, out, strict)
        return
    if classes is not None or shard_bytes or strict:
        raise InvalidInput(
            f"format {format_} has neither masks nor shards: --classes, --shard-bytes and --strict "
            f"are for {', '.join(TRAINING_FORMATS)}"
        )
    form = cast("ExportFormat", format_)
    datasets = target().datasets
    if out is not None:
        try:
            datasets.export(name, out, form, split=split, with_labels=with_labels)
        except OSError as error:  # of a file that a server sends
            reason = error.strerror or error
            raise StorageError(f"{out}: cannot be written: {reason}", str(out)) from error
        return
    if form not in TEXTS:
        raise InvalidInput(f"format {form} is no text: give a file or folder with --out")
    rest = b""
    for chunk in datasets.exported(name, form, split=split, with_labels=with_labels):
        lines, newline, rest = (rest + chunk).rpartition(b"\n")
        emit_text(lines + newline)
    emit_text(rest)


def _export_for_training(
    name: str,
    format_: TrainingFormat,
    classes: str | None,
    shard_bytes: int,
    split: str | None,
    out: Path | None,
    strict: bool,
) -> None:
    from pipeline.exports.export import TrainingExport
    from pipeline.runs.class_map import chosen_classes, classes_in

    if destination.server() is not None:
        raise InvalidInput(
            f"format {format_} writes images: run the command on the machine of the home, without "
            "--server; a client reads a staged dataset by framesift.data"
        )
    if out is None:
        raise InvalidInput(f"format {format_} is a folder: give one with --out")
    chosen = None if classes is None else chosen_classes(classes_in(classes))
    export = TrainingExport(format_, chosen, shard_bytes)
    with progress_bar(f"export {name}", quiet=False) as bar:
        done = home_session().datasets.export_for_training(
            name,
            out,
            export,
            split=split,
            report=lambda done: bar.show(
                done.done, done.expected, f"{done.done:,} of {done.expected:,} frames"
            ),
        )
    stdout.print(
        f"{done.expected:,} frames: {done.written:,} written, {done.unchanged:,} were there already"
    )
    if done.problems:
        stdout.print(f"{len(done.problems):,} frames left out, for what is wrong with them:")
        for problem in done.problems[:_SHOWN]:
            stdout.print(visible(f"  {problem.key}: {problem.reason}"))
    end(ExitCode.BAD_FILES, when=strict and bool(done.problems))


@dataset_app.command("list")
def list_(as_json: JsonFlag = False) -> None:
    """List every version of every dataset."""
    datasets: list[Record] = list(target().datasets.list())
    if as_json:
        emit_json(datasets)
        return
    emit_table(
        ("name", "version", "frames", "splits", "snapshot"),
        [
            (one["name"], one["version"], one["frames"], splits_text(one), one["snapshot"])
            for one in datasets
        ],
    )


@dataset_app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")], as_json: JsonFlag = False
) -> None:
    """Show a dataset: its question, snapshot, splits and classes."""
    _show(target().datasets.get(name), as_json)


def _data(body: "BaseModel") -> dict[str, Any]:
    """The fields that differ from the defaults."""
    return body.model_dump(mode="json", exclude_defaults=True)


def _show(dataset: Record, as_json: bool) -> None:
    if as_json:
        emit_json(dataset)
    else:
        show_dataset(dataset)
