"""framesift.data.Scores: what an evaluation loop adds, by ranks, killed, and what it refuses."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import framesift
from framesift.data import Scores, open_frames
from framesift.data.scores import JOB_FOLDER
from pipeline.jobs.program import rank
from pipeline.runs.prediction_set import (
    confidence_names,
    job_or_folder,
    prediction_name,
    scores_in,
    written_scores,
)
from tests.training.drawn_frames import CLASSES, HEIGHT_PX, WIDTH_PX, draw_frames, write_manifest

FRAMES, SIZE = 6, (HEIGHT_PX, WIDTH_PX)


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    """The folder of a manifest of drawn frames."""
    files = draw_frames(tmp_path, FRAMES)
    write_manifest(tmp_path / "manifest", tmp_path, {"train": files[:2], "validation": files[2:]})
    return tmp_path / "manifest"


def softmax(ids: Any, seed: int = 0) -> Any:
    """Probabilities (classes, H, W) float32 whose largest are those of the ids."""
    logits = np.random.default_rng(seed).normal(size=(len(CLASSES), *ids.shape))
    np.put_along_axis(logits, ids[None].astype(int), 6.0, axis=0)
    shares = np.exp(logits)
    return (shares / shares.sum(axis=0)).astype(np.float32)


def pixels(number: int) -> Any:
    """Class ids (H, W) of a frame, int64 as PyTorch's argmax has them."""
    return np.random.default_rng(number).integers(0, len(CLASSES), SIZE)


def test_what_is_added_is_kept_as_predictions_are_named(manifest: Path, tmp_path: Path) -> None:
    """Proves files, names, the description, what is counted, and a frame added twice."""
    frames = open_frames(manifest, "validation")
    scores = Scores(tmp_path / "scores", frames)
    first, second = frames.names[:2]
    scores.add(first, pixels(0), softmax(pixels(0)))
    scores.add(second, pixels(1))
    assert (len(scores), first in scores, frames.names[2] in scores) == (2, True, False)
    assert ("train-000" in scores, 7 in scores) == (False, False)
    assert written_scores(scores.folder) == CLASSES.classes
    png, npz = scores.folder / prediction_name(first), confidence_names(prediction_name(first))[0]
    assert (np.asarray(Image.open(png)) == pixels(0)).all()
    with np.load(scores.folder / npz) as stored:
        units = stored["probabilities"]
    assert (units.dtype, units.shape) == (np.uint16, (len(CLASSES), *SIZE))
    assert np.abs(units / 65_535 - softmax(pixels(0))).max() < 1 / 65_535
    scores.add(first, pixels(2))  # again, without probabilities
    assert (np.asarray(Image.open(png)) == pixels(2)).all()
    assert sorted(path.name for path in scores.folder.iterdir()) == [
        "scores.json", *(prediction_name(name) for name in (first, second)),
    ]  # fmt: skip
    again = Scores(scores.folder, manifest)
    assert (len(again), second in again) == (2, True)


RANK = """
import sys
from framesift.data import Scores, open_frames
import numpy as np

frames = open_frames(sys.argv[1])
rank, ranks, last = map(int, sys.argv[3:])
scores = Scores(sys.argv[2], frames)
for number, name in [*enumerate(frames.names)][rank::ranks]:
    if name in scores:
        continue
    shape = frames[number][1].shape
    scores.add(name, np.full(shape, number % 4))
    print(name, flush=True)
    if number == last:
        sys.stdin.read()
"""


@pytest.mark.wide
def test_killed_ranks_begin_again_and_no_frame_counts_twice(manifest: Path, tmp_path: Path) -> None:
    """Proves it of a rank killed by SIGKILL, and of another number of ranks afterwards."""
    folder = tmp_path / "scores"

    def started(index: int, ranks: int, last: int = -1) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", RANK, manifest, folder, index, ranks, last]
        pipe = subprocess.PIPE
        return subprocess.Popen([*map(str, command)], stdin=pipe, stdout=pipe, text=True)

    whole, killed = started(1, 2), started(0, 2, last=2)
    assert killed.stdout is not None
    lines = [killed.stdout.readline().strip() for _ in range(2)]
    os.kill(killed.pid, signal.SIGKILL)
    assert (killed.wait(), whole.wait()) == (-signal.SIGKILL, 0)
    killed.communicate()
    names = open_frames(manifest).names
    assert lines == [names[0], names[2]]
    (folder / f".{prediction_name(names[4])}.1.part").write_bytes(b"half a file")
    assert sorted(name for name in names if name in Scores(folder, manifest)) == sorted(
        [names[0], *names[1::2], names[2]]
    )
    begun = [started(index, 3) for index in range(3)]
    assert [line for one in begun for line in one.communicate()[0].split()] == [names[4]]
    assert len(Scores(folder, manifest)) == FRAMES
    kept = [np.asarray(Image.open(folder / prediction_name(name))) for name in names]
    assert [int(ids[0, 0]) for ids in kept] == [number % 4 for number in range(FRAMES)]


def _nan(shares: Any) -> Any:
    shares[1, 5, 5] = np.nan
    return shares


def _other(shares: Any) -> Any:
    best = int(shares[:, 3, 4].argmax())
    shares[[best, (best + 1) % 4], 3, 4] = shares[[(best + 1) % 4, best], 3, 4]
    return shares


@pytest.mark.parametrize(
    ("name", "ids", "shares", "message"),
    [
        ("other-7", pixels(0), None, "frame other-7: is none of the 6 of drawn@1"),
        (None, pixels(0)[:-1], None, "class ids of 96x63 pixels, and the label .* has 96x64"),
        (None, pixels(0)[None], None, r"class ids of shape \(1, 64, 96\)"),
        (None, pixels(0) + 1, None, r"1,\d+ pixels are of no class, such as 4; expected 0 to 3"),
        (None, pixels(0) - 1, None, "such as -1"),
        (None, pixels(0) * np.nan, None, "NaN or infinite"),
        (None, pixels(0) * 1.0, None, "type float64; expected whole numbers"),
        (None, pixels(0), lambda p: p[:3], r"shape \(3, 64, 96\); expected \(4, h, w\)"),
        (None, pixels(0), lambda p: p * 255, "whose sum at a pixel is 255 to 255"),
        (None, pixels(0), lambda p: (p * 255).astype(np.uint8), "type uint8; expected floats"),
        (None, pixels(0), _nan, "probabilities that are no numbers"),
        (None, pixels(0), _other, "another class .* at 1 of 6,144 pixels: at row 3, column 4"),
    ],
)
def test_what_cannot_be_scored_is_refused_and_leaves_nothing(
    manifest: Path, tmp_path: Path, name: str | None, ids: Any,
    shares: Callable[[Any], Any] | None, message: str,
) -> None:  # fmt: skip
    """Proves each error, which names the frame, and that no file of it is there."""
    scores = Scores(tmp_path / "scores", manifest)
    frame = name or "validation-001"
    kind = framesift.UnknownName if name else framesift.BadFile
    with pytest.raises(kind, match=message) as refused:
        scores.add(frame, ids, None if shares is None else shares(softmax(pixels(0))))
    assert f"frame {frame}" in str(refused.value)
    assert [path.name for path in scores.folder.iterdir()] == ["scores.json"]


def test_probabilities_of_another_size_may_be_those_that_were_enlarged(
    manifest: Path, tmp_path: Path
) -> None:
    """Proves quarter-size probabilities enlarged bilinearly; those of another frame fail."""
    scores = Scores(tmp_path / "scores", manifest)
    areas = np.kron(np.random.default_rng(3).integers(0, 4, (4, 6)), np.ones((4, 4), int))
    small = softmax(areas)
    layers = [Image.fromarray(layer).resize((96, 64), Image.Resampling.BILINEAR) for layer in small]
    scores.add(
        "validation-000", np.stack([np.asarray(one) for one in layers]).argmax(axis=0), small
    )
    with pytest.raises(framesift.BadFile, match="say another class than the class ids at"):
        scores.add("validation-001", np.kron((areas + 1) % 4, np.ones((4, 4), int)), small)
    large = np.kron(softmax(pixels(0)), np.ones((1, 3, 3), np.float32))
    scores.add("validation-001", pixels(0), large)
    with np.load(scores.folder / "validation-001.npz") as stored:  # no more than is looked at
        assert stored["probabilities"].shape == (4, 152, 240)


def test_where_scores_lie(manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proves a job's folder by its path and by the environment, other classes, and what is none."""
    job = tmp_path / "jobs" / "run-1"
    (job / "input").mkdir(parents=True)
    (job / "input" / "manifest").symlink_to(manifest)
    (job / "request.json").write_text("{}")
    assert Scores(job, manifest).folder == job / "scores" == scores_in(job)
    assert scores_in(tmp_path) == tmp_path
    monkeypatch.delenv(JOB_FOLDER, raising=False)
    with pytest.raises(framesift.BadFile, match="give a folder"):
        Scores(dataset=manifest)
    assert rank.JOB_FOLDER == JOB_FOLDER
    monkeypatch.setenv(JOB_FOLDER, str(job))
    mine = Scores()
    assert (mine.folder, mine.classes) == (job / "scores", CLASSES.classes)
    with pytest.raises(framesift.BadFile, match="its scores are of other classes"):
        Scores(job, manifest, classes=["Road", "Rest"])
    merged = Scores(tmp_path / "merged", manifest, classes=["Road", "Rest"])
    with pytest.raises(framesift.BadFile, match="such as 2; expected 0 to 1"):
        merged.add("train-000", np.full(SIZE, 2))
    with pytest.raises(framesift.BadFile, match="give the dataset"):
        Scores(tmp_path / "none")
    listed = tmp_path / "list.txt"
    listed.write_text("a.png\n")
    (tmp_path / "classes.json").write_text(
        json.dumps({"classes": [{"id": 0, "name": "a", "colour": "#000000", "colours": []}]})
    )
    with pytest.raises(framesift.BadFile, match="does not know the names of its frames"):
        Scores(tmp_path / "none", listed)
    (merged.folder / "scores.json").write_text("{")
    with pytest.raises(framesift.BadFile, match="is damaged"):
        Scores(merged.folder, manifest)
    monkeypatch.chdir(tmp_path)
    assert [job_or_folder(text) for text in ("merged", "run-1", "a/b")] == [
        str(tmp_path / "merged"), "run-1", str(tmp_path / "a/b"),
    ]  # fmt: skip
