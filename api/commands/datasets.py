"""framesift dataset, stage."""

from pathlib import Path
from typing import Annotated

import typer

from api import bodies
from api.commands.common import open_workspace
from api.commands.query import (
    AtOption,
    CameraOption,
    LimitOption,
    OrderOption,
    RangeOption,
    SampleOption,
    SceneOption,
    SeedOption,
    WhereOption,
    question_of,
)
from api.new_dataset import NewDataset, make_dataset
from api.terminal import JsonFlag, emit_json, emit_table, progress_bar, size, stdout
from catalog.tables import Dataset
from pipeline.stage import stage_dataset

dataset_app = typer.Typer(no_args_is_help=True, help="Saved, versioned selections.")


def register(app: typer.Typer) -> None:
    """Add this subject's commands."""
    app.add_typer(dataset_app, name="dataset")
    app.command("stage")(stage)


@dataset_app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="What to call it.")],
    ranges: RangeOption = None,
    where: WhereOption = None,
    camera: CameraOption = None,
    scene: SceneOption = None,
    order: OrderOption = None,
    limit: LimitOption = None,
    sample: SampleOption = None,
    seed: SeedOption = 0,
    split: Annotated[
        str | None, typer.Option(help="Shares, such as train=0.8,validation=0.2.")
    ] = None,
    split_by: Annotated[
        str, typer.Option(help="What stays on one side: scene, camera or frame.")
    ] = "scene",
    at: AtOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Select frames and save them as a dataset's new version, divided into splits."""
    question = question_of(ranges, where, camera, scene, order, limit, sample, seed)
    wanted = NewDataset(name=name, question=question, split=split, split_by=split_by, seed=seed)
    _show(make_dataset(open_workspace(), wanted, at), as_json)


@dataset_app.command("list")
def list_(as_json: JsonFlag = False) -> None:
    """List every version of every dataset."""
    found = open_workspace().records.datasets()
    if as_json:
        emit_json([bodies.of_dataset(dataset) for dataset in found])
    else:
        emit_table(
            ("name", "version", "frames", "splits", "snapshot"),
            [(d.name, d.version, d.frames, _splits(d), d.snapshot) for d in found],
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


def _show(dataset: Dataset, as_json: bool) -> None:
    if as_json:
        emit_json(bodies.of_dataset(dataset))
        return
    stdout.print(
        f"dataset {dataset.name} version {dataset.version}: {dataset.frames:,} frames "
        f"({_splits(dataset)}), snapshot {dataset.snapshot}"
    )
    stdout.print(f"id {dataset.content_id}")
    stdout.print(f"manifest {dataset.manifest}")
    absent = [tag for tag, pixels in dataset.class_pixels.items() if not pixels]
    if absent:
        stdout.print(f"classes without a pixel in it: {', '.join(absent)}")


def _splits(dataset: Dataset) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in dataset.splits.items())
