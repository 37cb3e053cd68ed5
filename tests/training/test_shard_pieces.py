"""A shard in pieces: two workers on one, killed workers, and what is put together of pieces."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from catalog.errors import BadFile
from pipeline.manifest import Manifest
from tests.training.commands import (
    NETWORK,
    ONE_THREAD,
    REPOSITORY,
    TINY,
    run_several,
    run_tensorflow,
    start,
)
from tests.training.drawn_frames import draw_frames, write_manifest
from training import merge_predictions
from training.prediction_scores import shard_scores
from training.validation.frame_cells import FrameCells, FrameScore
from training.validation.frame_pictures import FramePictures, PictureSelection
from training.validation.metrics.confusion import Confusion
from training.validation.metrics.table import METRICS
from training.validation.shard_file import About, ShardResult, open_shard, read_shard, shard_path
from training.validation.shard_pieces import (
    Piece,
    ShardLocks,
    joined_pieces,
    piece_path,
    pieces_of,
    remove_pieces,
)
from training.validation.small_copies import SmallCopies

CLASSES = ("Sky", "Street", "Car")
TAGS = ("sky", "street", "car")
LABEL_TAGS = tuple((tag,) for tag in TAGS)
ABOUT = About(
    "a" * 64,
    "runs/night",
    300,
    CLASSES,
    TAGS,
    LABEL_TAGS,
    "munich",
    2,
    "d",
    "validation",
    400,
    1,
    2,
)
ROWS = list(range(1, 400, 2))

_WORKER = """
import sys, time
from pathlib import Path
from training.validation.shard_pieces import Piece, ShardLocks
locks = ShardLocks(Path(sys.argv[1]), 1, 2)
with locks.worker(), locks.claim(Piece(0, 128)) as is_free:
    print(is_free, flush=True)
    time.sleep(600)
"""

PIECE_FRAMES = 8
"""Of the processes below, whose pieces are so small that few frames are several."""

_IN_PIECES = f"""
import sys
import training.validation.shard_pieces
from training.main import main
training.validation.shard_pieces.PIECE_FRAMES = {PIECE_FRAMES}
sys.exit(main(sys.argv[1:]))
"""

_STOPS_IN_SECOND = f"""
import os, signal
import training.validation.shard_work
read = training.validation.shard_work._read
def read_or_stop(index, scorings):
    if index == {PIECE_FRAMES + 2}:
        os.kill(os.getpid(), signal.SIGSTOP)
    return read(index, scorings)
training.validation.shard_work._read = read_or_stop
{_IN_PIECES}
"""


def result(piece: Piece) -> ShardResult:
    """Drawn scores of these positions of ROWS; every 50th frame was left out."""
    metrics = {name: metric.empty(len(CLASSES)) for name, metric in METRICS.items()}
    frames, cells, skipped, shown = [], [], [], PictureSelection()
    for row in ROWS[piece.begin : piece.end]:
        random = np.random.default_rng(row)
        if row % 50 == 1:
            skipped.append({"fkey": f"f{row}", "row": row, "reason": "is no PNG"})
            continue
        matrix = random.integers(0, 3, (3, 3)) * 1000
        metrics["scores"].merge(Confusion(matrix, np.ones(3, np.int64)))
        cell = np.flatnonzero(matrix)
        cells.append((cell.astype(np.int32), matrix.ravel()[cell].astype(np.int32)))
        # Of equal scores the earlier row's picture is kept: there are some.
        miou, unsure = round(random.random(), 1), round(random.random(), 1)
        frames.append(
            FrameScore(
                f"f{row}", row, f"scene-{row % 3}", "front", 9, 1, 0.5, 0.5, unsure, 0.5, miou
            )
        )
        shown.add(row, miou, unsure, lambda row=row: FramePictures(row, b"i", b"t", b"p", b"e"))  # type: ignore[misc]
    of_frames, pictures = FrameCells.of(cells), shown.pictures()
    small = SmallCopies.of([b"copy of " + frame.fkey.encode() for frame in frames])
    return ShardResult(ABOUT, metrics, frames, of_frames, 1, 2, skipped, pictures, small=small)


def test_pieces_are_put_together_as_one_worker_writes_the_shard(tmp_path: Path) -> None:
    """Byte by byte, but for sums of counts; a piece that is missing or there twice is refused."""
    pieces = pieces_of(len(ROWS))
    assert [piece.end for piece in pieces] == [128, 200]
    assert pieces_of(0) == [Piece(0, 0)]
    whole = replace(result(Piece(0, 200)), trained_frames=2, frames_of_trained_scenes=4)
    written = whole.write(tmp_path / "whole").read_bytes()
    paths = [piece_path(tmp_path, 1, 2, piece) for piece in pieces]
    parts = [
        read_shard(result(one).write_to(path)) for one, path in zip(pieces, paths, strict=True)
    ]
    joined = joined_pieces(parts, ROWS, tmp_path)
    assert joined.write(tmp_path).read_bytes() == written
    for wrong in (parts[:-1], [*parts, parts[0]]):
        with pytest.raises(BadFile, match="not the shard's rows"):
            joined_pieces(wrong, ROWS, tmp_path)
    remove_pieces(tmp_path, 1, 2)
    assert [path.name for path in tmp_path.iterdir() if path.name != "whole"] == [
        shard_path(tmp_path, 1, 2).name
    ]


def test_a_piece_of_an_earlier_release_has_no_small_copies(tmp_path: Path) -> None:
    """What goes on after an upgrade: the shard has those of the other pieces, where they lie."""
    pieces = pieces_of(len(ROWS))
    paths = [piece_path(tmp_path, 1, 2, piece) for piece in pieces]
    replace(result(pieces[0]), small=SmallCopies.none()).write_to(paths[0])
    result(pieces[1]).write_to(paths[1])
    joined = joined_pieces([read_shard(path) for path in paths], ROWS, tmp_path)
    path = joined.write(tmp_path)
    remove_pieces(tmp_path, 1, 2)
    stored, _ = open_shard(path)
    offsets, sizes = stored.small_places()
    content = path.read_bytes()
    copies = [content[at : at + size] for at, size in zip(offsets, sizes, strict=True)]
    fkeys = stored.scores()["fkey"].to_pylist()
    before = sum(frame.row in ROWS[:128] for frame in joined.frames)
    assert 0 < before < len(fkeys)
    assert copies == [b""] * before + [f"copy of {fkey}".encode() for fkey in fkeys[before:]]


@pytest.fixture
def worker(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that is the worker of shard 1 of 2 and holds its first piece."""
    command = [sys.executable, "-c", _WORKER, str(tmp_path)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        yield process
        process.kill()


def test_a_killed_worker_holds_nothing(tmp_path: Path, worker: "subprocess.Popen[str]") -> None:
    """Its pieces are claimed by others only when it has ended, however it ended."""
    locks = ShardLocks(tmp_path, 1, 2)
    assert not ShardLocks(tmp_path, 0, 2).has_worker()
    assert locks.has_worker()
    with locks.claim(Piece(0, 128)) as first, locks.claim(Piece(128, 256)) as second:
        assert (first, second) == (False, True)
    worker.kill()
    worker.wait()
    assert not locks.has_worker()
    with locks.worker():
        assert locks.has_worker()
        with locks.claim(Piece(0, 128)) as first:
            assert first
        remove_pieces(tmp_path, 1, 2)
    assert list(tmp_path.iterdir()) == []
    with locks.claim(Piece(0, 128)) as first:
        assert not first, "a shard that is done is claimed by nobody"


@pytest.mark.training
def test_an_idle_worker_scores_what_a_late_one_has_not_come_to(tmp_path: Path) -> None:
    """A stopped worker keeps the piece that it is at; killed and begun again, it lacks that alone.

    All shards are byte by byte those of workers that nobody helped.
    """
    frames = 2 * PIECE_FRAMES + 1
    files = draw_frames(tmp_path, 2 * frames)
    write_manifest(tmp_path / "manifest", tmp_path, {"validation": files, "train": files[:4]})
    base = ["--manifest", str(tmp_path / "manifest"), "--model_dir", str(tmp_path / "model")]
    base += [*ONE_THREAD, *NETWORK]

    def evaluate(results: str, shard: int) -> list[str]:
        where = ["--results_dir", str(tmp_path / results), "--shard", str(shard), "--shards", "2"]
        return ["--exec_mode", "evaluate", *base, *where]

    train = ["--exec_mode", "train", *base, *TINY, "--max_steps", "2", "--batch_size", "2"]
    alone = run_several(train, evaluate("alone", 0), evaluate("alone", 1))
    assert [one.status for one in alone] == [0, 0, 0], alone[-1].err

    with start("-c", _STOPS_IN_SECOND, *evaluate("helped", 1)) as late:
        try:
            change = os.waitid(os.P_PID, late.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            assert change is not None
            assert change.si_code == os.CLD_STOPPED, late.communicate()
            assert piece_path(tmp_path / "helped", 1, 2, Piece(0, PIECE_FRAMES)).exists()
            idle = run_tensorflow("-c", _IN_PIECES, *evaluate("helped", 0))
        finally:
            late.kill()
    assert idle.status == 0, idle.err
    assert f"shard 1 of 2: frames {frames - 1} to {frames}, as its worker is late" in idle.out
    assert not shard_path(tmp_path / "helped", 1, 2).exists()
    again = run_tensorflow("-c", _IN_PIECES, *evaluate("helped", 1))
    assert again.status == 0, again.err
    assert "as its worker is late" not in again.out
    assert f"frame {frames}/{frames}" in again.out
    for shard in range(2):
        of_both = [shard_path(tmp_path / name, shard, 2) for name in ("alone", "helped")]
        assert of_both[0].read_bytes() == of_both[1].read_bytes()
    assert sorted(path.suffix for path in (tmp_path / "helped").iterdir()) == [".fsv", ".fsv"]


@pytest.mark.training
def test_a_prediction_goes_on_with_the_pieces_that_it_lacks(tmp_path: Path) -> None:
    """One that failed in its second piece keeps the first; in the end it is as one without a break.

    The merge reads the shards in blocks, and gives the same.
    """
    files = draw_frames(tmp_path, PIECE_FRAMES + 4)
    write_manifest(tmp_path / "manifest", tmp_path, {"validation": files, "train": files[:4]})
    base = ["--manifest", str(tmp_path / "manifest"), "--model_dir", str(tmp_path / "model")]
    base += [*ONE_THREAD, *NETWORK]
    train = ["--exec_mode", "train", *base, *TINY, "--max_steps", "2", "--batch_size", "2"]

    def predict(results: str) -> list[str]:
        return ["--exec_mode", "predict", *base, "--results_dir", str(tmp_path / results)]

    trained, alone = run_several(train, predict("alone"))
    assert (trained.status, alone.status) == (0, 0), trained.err + alone.err
    manifest = Manifest.read(tmp_path / "manifest")
    image = (
        tmp_path
        / manifest.split("validation").shard(0, 1).frames["image"][PIECE_FRAMES + 2].as_py()
    )
    kept = image.read_bytes()
    image.write_bytes(kept[:100])
    broken = run_tensorflow("-c", _IN_PIECES, *predict("again"))
    assert broken.status == 1
    pieces = tmp_path / "again" / "shard-00000-of-00001.pieces"
    assert [path.name for path in pieces.glob("*.parquet")] == ["00000000-00000008.parquet"]
    image.write_bytes(kept)
    went_on = run_tensorflow("-c", _IN_PIECES, *predict("again"))
    assert went_on.status == 0, went_on.err
    assert [line.split()[1] for line in went_on.out.splitlines() if "frame" in line] == [
        f"{number}/12" for number in range(9, 13)
    ]
    assert not pieces.exists()
    scores = shard_scores(tmp_path / "again", 0, 1)
    assert scores.read_bytes() == shard_scores(tmp_path / "alone", 0, 1).read_bytes()
    for block in (262_144, 5):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(merge_predictions, "_BLOCK_FRAMES", block)
            assert merge_predictions.merge(tmp_path / "again", 1, tmp_path / f"out-{block}") == 12
    whole, blocks = (
        pq.read_table(tmp_path / name / "frame_scores.parquet") for name in ("out-262144", "out-5")
    )
    assert blocks.equals(whole)
    metrics = json.loads((tmp_path / "out-5" / "metrics.json").read_text())
    assert metrics["margin"] == pytest.approx(np.mean(whole["margin"].to_pylist()))
    assert metrics["predicted_pixels"]["car"] == sum(whole["car"].to_pylist())
