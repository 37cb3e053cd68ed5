"""Adding up shards, and the report."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.training.commands import run
from training.merge_scores import FRAME_SCORES_SCHEMA
from training.validation.scores import Int64, confusion_matrix, mean_iou, pixel_accuracy
from training.validation.shard_file import About, FrameScore, ShardResult, shard_path

CLASSES = ("Sky", "Street <&>", "Car", "Bicycle")
FRAMES = 7


def about(shard: int, shards: int) -> About:
    """What a shard of the made-up validation is of."""
    return About(
        "a" * 64,
        "runs/night",
        300,
        CLASSES,
        "munich",
        2,
        "d-17",
        "validation",
        FRAMES,
        shard,
        shards,
    )


def write_shards(folder: Path, shards: int) -> Int64:
    """Made-up results in ``shards`` pieces; the matrix of all frames."""
    random = np.random.default_rng(1)
    whole = np.zeros((4, 4), np.int64)
    matrices = np.zeros((shards, 4, 4), np.int64)
    frames = np.zeros((shards, 4), np.int64)
    scores: list[list[FrameScore]] = [[] for _ in range(shards)]
    for row in range(FRAMES):
        truth = random.integers(0, 3, (20, 30), dtype=np.uint8)
        truth[0, : row + 1] = 255
        guess = np.where(random.random(truth.shape) < 0.7, truth, 1).astype(np.uint8)
        matrix, ignored = confusion_matrix(truth, guess, 4)
        whole += matrix
        matrices[row % shards] += matrix
        frames[row % shards] += matrix.any(axis=1)
        accuracy, miou = pixel_accuracy(matrix), mean_iou(matrix)
        scores[row % shards].append(
            FrameScore(f"f{row}", row, int(matrix.sum()), ignored, accuracy, 0.5, 0.1, miou)
        )
    for shard in range(shards):
        ShardResult(about(shard, shards), matrices[shard], frames[shard], scores[shard]).write(
            folder
        )
    return whole


def merge(folder: Path, shards: int, out: Path) -> list[str]:
    """The command line of the merge."""
    return [
        "-m",
        "training.merge_scores",
        "--results_dir",
        str(folder),
        "--shards",
        str(shards),
        "--out",
        str(out),
    ]


@pytest.mark.parametrize("shards", [1, 2, 3, 10])
def test_any_number_of_shards_is_one_matrix(tmp_path: Path, shards: int) -> None:
    """Proves sharded results add up exactly, empty shards included, and frames keep their order."""
    whole = write_shards(tmp_path, shards)
    ended = run(*merge(tmp_path, shards, tmp_path / "out"))
    assert ended.status == 0, ended.err
    report = json.loads((tmp_path / "out/report.json").read_text())
    assert report["confusion_matrix"] == whole.tolist()
    assert report["frames"] == FRAMES
    assert report["ignored_pixels"] == sum(range(1, FRAMES + 1))
    assert report["miou"] == pytest.approx(mean_iou(whole))
    assert report["absent_classes"] == ["Bicycle"]
    assert report["per_class"][2]["truth_pixels"] == int(whole[2].sum())
    assert report["per_class"][2]["frames"] == FRAMES
    assert report["per_class"][3] == {
        "class": "Bicycle",
        "tag": "bicycle",
        "truth_pixels": 0,
        "predicted_pixels": 0,
        "iou": None,
        "recall": None,
        "precision": None,
        "frames": 0,
    }
    assert report["baseline"]["miou"] < report["miou"]
    assert report["dataset"] == {
        "name": "munich",
        "version": 2,
        "id": "d-17",
        "split": "validation",
    }
    table = pq.read_table(tmp_path / "out/frame_scores.parquet")
    assert table.schema.equals(FRAME_SCORES_SCHEMA)
    assert table["fkey"].to_pylist() == [f"f{row}" for row in range(FRAMES)]
    headline = json.loads((tmp_path / "out/metrics.json").read_text())
    assert headline["miou"] == report["miou"]


def test_merging_needs_no_tensorflow(tmp_path: Path) -> None:
    """Proves a report can be made where TensorFlow is not installed."""
    write_shards(tmp_path, 1)
    program = (
        "import sys; from pathlib import Path; from training.merge_scores import merge; "
        "merge(Path(sys.argv[1]), 1, Path(sys.argv[1]) / 'out'); "
        "print([n for n in ('tensorflow', 'keras', 'horovod', 'duckdb') if n in sys.modules])"
    )
    ended = run("-c", program, tmp_path)
    assert ended.out == "[]\n", ended.err


def test_missing_shards_are_named(tmp_path: Path) -> None:
    """Proves nothing is reported of half a validation."""
    write_shards(tmp_path, 4)
    for shard in (1, 3):
        shard_path(tmp_path, shard, 4).unlink()
    ended = run(*merge(tmp_path, 4, tmp_path / "out"))
    assert ended.status == 1
    assert "of 4 shards, missing: 1, 3" in ended.error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"model_sha256": "b" * 64}, "another model"),
        ({"dataset_id": "d-18"}, "another dataset"),
        ({"classes": ("Sky", "Street", "Car", "Bicycle")}, "other classes"),
        ({"split": "test"}, "another split"),
    ],
)
def test_shards_that_do_not_belong_together(
    tmp_path: Path, change: dict[str, object], expected: str
) -> None:
    """Proves a shard of another model, dataset, split or class list is refused by number."""
    write_shards(tmp_path, 2)
    other = replace(about(1, 2), **change)  # type: ignore[arg-type]
    zeros = np.zeros((4, 4), np.int64), np.zeros(4, np.int64)
    ShardResult(other, *zeros, []).write(tmp_path)
    ended = run(*merge(tmp_path, 2, tmp_path / "out"))
    assert ended.status == 1
    assert f"shard 1 is of {expected} than shard 0" in ended.error


def test_incomplete_and_damaged_shards(tmp_path: Path) -> None:
    """Proves a shard with too few frames, or a cut file, is refused by name."""
    write_shards(tmp_path, 2)
    path = shard_path(tmp_path, 1, 2)
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    ended = run(*merge(tmp_path, 2, tmp_path / "out"))
    assert ended.status == 1
    assert "shard-00001-of-00002.npz: is damaged" in ended.error
    zeros = np.zeros((4, 4), np.int64), np.zeros(4, np.int64)
    ShardResult(about(1, 2), *zeros, []).write(tmp_path)
    ended = run(*merge(tmp_path, 2, tmp_path / "out"))
    assert ended.status == 1
    assert "holds 0 frames of a split of 7" in ended.error


def test_wrong_flags_end_with_2(tmp_path: Path) -> None:
    """Proves a wrong flag is told apart from a failed merge."""
    ended = run("-m", "training.merge_scores", "--results_dir", tmp_path, "--shards", "0")
    assert ended.status == 2
    assert "--shards" in ended.error


class _Links(HTMLParser):
    """Collects what a page would load, and whether its tags close."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the tag."""
        self.loads += [v or "" for k, v in attrs if k in ("src", "href", "srcset")]
        if tag not in ("meta", "img", "line", "polyline"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag that closes itself."""

    def handle_endtag(self, tag: str) -> None:
        """Check that it closes the last one."""
        assert self.open.pop() == tag


def test_page_and_picture(tmp_path: Path) -> None:
    """Proves the page is whole, names what the data lacks, escapes names and loads nothing."""
    write_shards(tmp_path, 2)
    assert run(*merge(tmp_path, 2, tmp_path / "out")).status == 0
    page = (tmp_path / "out/report.html").read_text(encoding="utf-8")
    links = _Links()
    links.feed(page)
    assert not links.open
    assert all(link.startswith("data:image/png;base64,") for link in links.loads)
    assert not re.search(r"https?://(?!www\.w3\.org)", page)
    assert "Street &lt;&amp;&gt;" in page
    assert "Street <&>" not in page
    assert "no pixel of 1 class" in page
    with Image.open(tmp_path / "out/confusion_matrix.png") as picture:
        assert min(picture.size) > 500
