"""The frames behind a cell of a validation's confusion matrix, from the run's own report.

A validation leaves the cells of each frame beside its report (training.merge_scores), so nothing
has to be in the catalog but the frames themselves.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from api.workspace import Workspace
from catalog.errors import StorageError, UnknownName
from catalog.lake.schema import FILES
from ingest.labels.class_list import tag_name
from query.frames.frame_place import FramePlace
from query.frames.select_frames import select_frames
from query.question.question import Question
from query.question.tag_value import quoted
from query.run.run_sql import execute

_COLUMNS = ("fkey", "scene", "camera", "frame_number")

_OF_CELL = "frames_of_cell"

_BESIDE = 48
"""Frames on each side of one that are asked for: some may be closed to the caller."""


@dataclass(frozen=True)
class ConfusedFrames:
    """Some of the frames in which a model took a class for a class, most pixels first."""

    classes: tuple[str, str]
    """Names of the true class and of the predicted one."""
    tags: tuple[str, str]
    """Their tags."""
    frames: Sequence[Mapping[str, Any]]
    """fkey, scene, camera, frame_number and pixels of each that the caller may see."""
    missing: int
    """How many of this range the catalog lacks, or the caller may not see."""
    count: int
    """Frames of the cell in all."""
    pixels: int
    """Pixels of the cell in all."""
    follows: int | None
    """Where the next range begins; None after the last frame."""


def confused_frames(
    workspace: Workspace,
    file: Path,
    classes: Mapping[str, str],
    cell: tuple[str, str],
    begin: int,
    most: int,
) -> ConfusedFrames:
    """A range of a cell's frames.

    Args:
        workspace: The home, as the caller may see it.
        file: The validation's frame_cells.parquet.
        classes: Tag and name of each of the validation's classes.
        cell: The true class and the one that the model took it for, by name or tag.
        begin: The first frame, from 0.
        most: At most this many.

    Raises:
        UnknownName: The validation has no such class.
        StorageError: The file cannot be read.
    """
    truth, predicted = (_tag(classes, each) for each in cell)
    rows = _rows(file, truth, predicted)
    pixels = {row["fkey"]: row["pixels"] for row in rows.slice(begin, most).to_pylist()}
    known = known_frames(workspace, pixels)
    end = begin + len(pixels)
    return ConfusedFrames(
        classes=(classes[truth], classes[predicted]),
        tags=(truth, predicted),
        frames=[{**known[fkey], "pixels": pixels[fkey]} for fkey in pixels if fkey in known],
        missing=len(pixels) - len(known),
        count=rows.num_rows,
        pixels=int(pc.sum(rows["pixels"]).as_py() or 0),
        follows=end if end < rows.num_rows else None,
    )


def place_in_cell(
    workspace: Workspace, file: Path, classes: Mapping[str, str], cell: tuple[str, str], fkey: str
) -> FramePlace | None:
    """A frame's place among a cell's frames in the order of `confused_frames`; None of others.

    The frames beside it are the nearest that the caller may see, of the 48 on each side.

    Args:
        fkey: Of a frame that the caller may see; others as of `confused_frames`.
    """
    truth, predicted = (_tag(classes, each) for each in cell)
    fkeys = _rows(file, truth, predicted)["fkey"]
    index = pc.index(fkeys, fkey).as_py()
    if index < 0:
        return None
    before = fkeys.slice(max(0, index - _BESIDE), min(index, _BESIDE)).to_pylist()[::-1]
    behind = fkeys.slice(index + 1, _BESIDE).to_pylist()
    known = known_frames(workspace, [*before, *behind])
    previous, following = (
        next((one for one in side if one in known), None) for side in (before, behind)
    )
    return FramePlace(index + 1, len(fkeys), previous, following)


def cell_fkeys(
    workspace: Workspace, file: Path, classes: Mapping[str, str], cell: tuple[str, str]
) -> list[str]:
    """Every frame of a cell that the catalog has, in the order of `confused_frames`."""
    truth, predicted = (_tag(classes, each) for each in cell)
    fkeys = _rows(file, truth, predicted)["fkey"]
    with (
        workspace.catalog.reading() as snapshot,
        snapshot.with_table(_OF_CELL, pa.table({"fkey": fkeys})),
    ):
        within = f"fkey IN (SELECT fkey FROM {_OF_CELL})"
        rows = execute(snapshot, f"SELECT fkey FROM main.{FILES} WHERE {within}")
    known = {*rows["fkey"].to_pylist()}
    return [fkey for fkey in fkeys.to_pylist() if fkey in known]


def _rows(file: Path, truth: str, predicted: str) -> pa.Table:
    """The fkey and pixels of a cell's frames, most pixels first.

    Raises:
        StorageError: The file cannot be read.
    """
    filters = [("truth", "=", truth), ("predicted", "=", predicted)]
    try:
        rows = pq.read_table(file, columns=["fkey", "pixels"], filters=filters)
    except (OSError, pa.ArrowException) as error:
        raise StorageError(f"{file.name}: it cannot be read: {error}") from error
    rows = rows.set_column(0, "fkey", rows["fkey"].cast(pa.string()))
    return rows.sort_by([("pixels", "descending"), ("fkey", "ascending")])


def _tag(classes: Mapping[str, str], name: str) -> str:
    """The tag of a class by its tag or name, as the keys of ``classes`` are."""
    if name in classes:
        return name
    of_name = {tag_name(each): tag for tag, each in classes.items()}
    if tag_name(name) not in of_name:
        raise UnknownName("class", name, classes)
    return of_name[tag_name(name)]


def known_frames(workspace: Workspace, fkeys: Collection[str]) -> dict[str, dict[str, Any]]:
    """The rows of those frames that the catalog has for the caller, by fkey."""
    if not fkeys:
        return {}
    where = f"fkey in ({', '.join(map(quoted, fkeys))})"
    frames = select_frames(workspace.catalog, Question(where=where)).frames
    return {row["fkey"]: row for row in frames.select([*_COLUMNS]).to_pylist()}
