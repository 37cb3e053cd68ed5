"""A shard in pieces: its worker and idle ones score them at once, and each counts once.

    shard-00003-of-00008.pieces/
        worker.lock              locked by the shard's worker as long as it lives
        00000128-00000256.lock   locked by the worker that scores these positions of its rows
        00000128-00000256.fsv    their result, in the format of a shard's

The shard's worker takes pieces from the front, idle workers from the back. Two results of one piece
are the same file, so locks save work and no score depends on them. A shard's result holds each of
its rows once, and is byte by byte that of a worker that scored all of them.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from catalog.errors import BadFile, StorageError
from catalog.storage.file_lock import is_locked, open_locked
from training.validation.frame_cells import FrameCells, FrameScore
from training.validation.frame_pictures import FramePictures, PictureSelection
from training.validation.metrics.table import METRICS
from training.validation.scene_sums import added
from training.validation.shard_file import ShardResult, shard_path, trained_frames_of
from training.validation.small_copies import SmallCopies

PIECE_FRAMES = 128
"""Frames that a late worker does alone at its end, and that a killed one does again."""

_WORKER = "worker"


@dataclass(frozen=True)
class Piece:
    """Positions ``begin`` to ``end`` - 1 of a shard's rows."""

    begin: int
    end: int

    def __str__(self) -> str:
        return f"{self.begin:08d}-{self.end:08d}"


def pieces_of(frames: int) -> list[Piece]:
    """The pieces of a shard of so many frames, in order: one at least."""
    begins = range(0, max(frames, 1), PIECE_FRAMES)
    return [Piece(begin, min(begin + PIECE_FRAMES, frames)) for begin in begins]


def piece_path(results_dir: Path, shard: int, shards: int, piece: Piece) -> Path:
    """The file of a piece's result."""
    return _folder(results_dir, shard, shards) / f"{piece}.fsv"


def remove_pieces(results_dir: Path, shard: int, shards: int) -> None:
    """Remove a shard's pieces, where some are there."""
    shutil.rmtree(_folder(results_dir, shard, shards), ignore_errors=True)


def _folder(results_dir: Path, shard: int, shards: int) -> Path:
    return shard_path(results_dir, shard, shards).with_suffix(".pieces")


class ShardLocks:
    """The locks of one shard's worker and pieces. A file system without locks has no helpers."""

    def __init__(self, results_dir: Path, shard: int, shards: int) -> None:
        """Lock nothing yet."""
        self._folder = _folder(results_dir, shard, shards)

    @contextmanager
    def worker(self) -> Iterator[None]:
        """Be the shard's worker for the block; wait for the end of an earlier one.

        Raises:
            StorageError: The folder cannot be written.
        """
        try:
            file = self._worker_lock()
        except OSError as error:
            raise StorageError(f"{self._folder}: {error.strerror}", str(self._folder)) from error
        try:
            yield
        finally:
            if file is not None:
                os.close(file)
            with suppress(OSError):  # other files are left: the worker did not remove them
                self._folder.rmdir()

    def _worker_lock(self) -> int | None:
        while True:
            with suppress(FileNotFoundError):  # an earlier worker removes the folder at its end
                self._folder.mkdir(parents=True, exist_ok=True)
                return open_locked(self._path(_WORKER), is_optional=True)

    def has_worker(self) -> bool:
        """Return whether a process is the shard's worker now."""
        return is_locked(self._path(_WORKER))

    @contextmanager
    def claim(self, piece: Piece) -> Iterator[bool]:
        """Hold a piece for the block; False where another worker holds it, or the shard is done."""
        try:
            file = open_locked(self._path(str(piece)), wait_s=0, is_optional=True)
        except OSError:
            file = None
        try:
            yield file is not None
        finally:
            if file is not None:
                os.close(file)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.lock"


def joined_pieces(pieces: Sequence[ShardResult], rows: Sequence[int], path: Path) -> ShardResult:
    """The result of a shard, of the results of its pieces.

    Args:
        pieces: In the order of their rows, at least one.
        rows: The shard's, each of which must be in one piece.
        path: Folder of the pieces, for the error.

    Raises:
        BadFile: A row is missing, or there twice.
    """
    scored = [[frame.row for frame in one.frames] for one in pieces]
    left_out = [frame["row"] for one in pieces for frame in one.skipped]
    if sorted([*(row for rows in scored for row in rows), *left_out]) != list(rows):
        raise BadFile(
            "its pieces are not the shard's rows; remove it and validate again", str(path)
        )
    number = len(pieces[0].about.classes)
    metrics = {name: metric.empty(number) for name, metric in METRICS.items()}
    for one in pieces:
        for name, metric in metrics.items():
            metric.merge(one.metrics[name])
    before = np.cumsum([0, *map(len, scored)]).astype(np.int32)
    cells = [one.cells for one in pieces]
    frames = [frame for one in pieces for frame in one.frames]
    return ShardResult(
        pieces[0].about,
        metrics,
        frames,
        FrameCells(
            np.concatenate([of.frame + n for of, n in zip(cells, before[:-1], strict=True)]),
            np.concatenate([of.cell for of in cells]),
            np.concatenate([of.pixels for of in cells]),
        ),
        trained_frames_of(pieces),
        sum(one.frames_of_trained_scenes for one in pieces),
        [frame for one in pieces for frame in one.skipped],
        _selected_pictures(frames, {one.row: one for piece in pieces for one in piece.pictures}),
        added(one.scenes for one in pieces),
        SmallCopies.joined([one.small for one in pieces]),
    )


def _selected_pictures(
    frames: Sequence[FrameScore], pictures: dict[int, FramePictures]
) -> Sequence[FramePictures]:
    """Choose a shard's pictures from those of its pieces."""
    selection = PictureSelection()
    for frame in frames:
        if (one := pictures.get(frame.row)) is not None:
            selection.add(frame.row, frame.miou, frame.uncertainty, lambda one=one: one)  # type: ignore[misc]
    return selection.pictures()
