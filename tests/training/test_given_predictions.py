"""Validations of predictions that another program made: no network, no TensorFlow."""

import csv
import json
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from catalog.storage.atomic_write import atomic_write
from ingest.labels.class_list import UNKNOWN_CLASS
from ingest.labels.label_image import decode_label
from pipeline.runs.prediction_set import PREDICTIONS_FILE, PredictionSet
from tests.training.commands import Ended, run_forked
from tests.training.drawn_frames import (
    CLASS_LIST,
    CLASSES,
    HEIGHT_PX,
    FrameFiles,
    draw_frames,
    write_manifest,
)

pytestmark = pytest.mark.wide

FRAMES = 5
SKY, STREET, CAR, BICYCLE = range(4)
UNKNOWN_AT = (HEIGHT_PX - 1, 0)
"""A pixel whose label is unknown in each frame."""

Ids = Any
"""(H, W) uint8 [class id]."""


class Drawn:
    """A dataset of drawn frames, predictions of it, and the commands of a validation."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = draw_frames(root, FRAMES, unknown=True)
        other = draw_frames(root / "more", 1, seed=9)
        moved = [FrameFiles("scene", f"more/{f.image}", f"more/{f.label}") for f in other]
        write_manifest(root / "manifest", root, {"train": moved, "validation": self.files})
        self.truths = [decode_label((root / f.label).read_bytes(), CLASSES) for f in self.files]
        self.predicted = [_predicted(truth, n) for n, truth in enumerate(self.truths)]

    def write(self, place: str = "out", encode: Callable[[Ids], Ids] = lambda ids: ids) -> Path:
        """The predictions as PNG files under the images' own names."""
        for file, ids in zip(self.files, self.predicted, strict=True):
            self.write_one(file.image, encode(ids), place)
        return self.root / place

    def write_one(self, name: str, pixels: Ids, place: str = "out") -> Path:
        """One prediction; its path."""
        path = self.root / place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
        return path

    def describe(self, model: str = "torch-1", place: Path | None = None, **more: Any) -> Path:
        """Write predictions.json of these; its folder."""
        given = PredictionSet(
            model=model,
            place=str(place or self.root / "out"),
            **{"classes": CLASSES.classes, "info": {"commit": "4f2a91c"}, **more},
        )
        folder = self.root / "predictions" / model
        atomic_write(folder / PREDICTIONS_FILE, json.dumps(given.as_json()), parents=True)
        return folder

    def match(self, folder: Path) -> Ended:
        """Find the predictions of the split."""
        return run_forked(
            "-m", "training.match_predictions", "--predictions_dir", folder,
            "--manifest", self.root / "manifest",
        )  # fmt: skip

    def evaluate(self, folder: Path, shards: int = 1, *more: str | Path) -> list[Ended]:
        """Score each shard, one after the other."""
        results = self.root / f"results-{shards}"
        return [
            run_forked(
                "-m", "training.main", "--exec_mode", "evaluate",
                "--manifest", self.root / "manifest", "--model_dir", folder,
                "--results_dir", results, "--threads", "1", "--shard", str(shard),
                "--shards", str(shards), *more,
            )
            for shard in range(shards)
        ]  # fmt: skip

    def merge(self, shards: int = 1, *more: str) -> Ended:
        """Make the report of so many shards."""
        return run_forked(
            "-m", "training.merge_scores", "--results_dir", self.root / f"results-{shards}",
            "--shards", str(shards), "--out", self.root / f"report-{shards}", *more,
        )  # fmt: skip

    def validate(self, folder: Path, shards: int = 1, *more: str | Path) -> dict[str, Any]:
        """The report of a validation that ends well."""
        ended = [self.match(folder), *self.evaluate(folder, shards, *more)]
        compared = ["--compared"] if "--compare_dir" in more else []
        ended.append(self.merge(shards, *compared))
        for one in ended:
            assert one.status == 0, one.err
        return self.report(shards)

    def report(self, shards: int = 1) -> dict[str, Any]:
        """What `merge` wrote."""
        report: dict[str, Any] = json.loads(
            (self.root / f"report-{shards}" / "report.json").read_text()
        )
        return report

    def matrix(self, rows: range = range(FRAMES)) -> list[list[int]]:
        """The confusion matrix of some frames, pixel by pixel."""
        matrix = np.zeros((len(CLASSES), len(CLASSES)), int)
        for row in rows:
            known = self.truths[row] != UNKNOWN_CLASS
            np.add.at(matrix, (self.truths[row][known], self.predicted[row][known]), 1)
        return [[int(pixels) for pixels in line] for line in matrix]


def _predicted(truth: Ids, number: int) -> Ids:
    """A prediction: cars are seen a pixel further right, and a bicycle where there is none."""
    ids = np.where(truth == UNKNOWN_CLASS, STREET, truth).astype(np.uint8)
    ids = np.roll(ids, 1, axis=1)
    ids[: number + 1, :7] = BICYCLE
    return ids


@pytest.fixture
def drawn(tmp_path: Path) -> Drawn:
    return Drawn(tmp_path)


def test_every_pixel_is_counted_whatever_the_number_of_shards(drawn: Drawn) -> None:
    """Proves matrix, scores, cells, pictures and what is missing; 1 and 3 shards say the same."""
    drawn.write()
    folder = drawn.describe()
    report, in_three = (drawn.validate(folder, shards) for shards in (1, 3))
    assert report["confusion_matrix"] == drawn.matrix()
    assert {**report, "shards": 3} == in_three
    assert (report["model"]["name"], report["model"]["step"]) == ("torch-1", 0)
    assert report["lineage"]["info"] == {"commit": "4f2a91c"}
    assert report["boundary_iou"] is not None
    assert (report["uncertainty"], report["margin"], report["calibration"]["ece"]) == (None,) * 3
    assert (len(report["worst_frames"]), report["most_uncertain_frames"]) == (FRAMES, [])
    assert report["trained_frames"] is None
    for name in ("frame_scores", "frame_cells"):
        paths = [drawn.root / f"report-{n}" / f"{name}.parquet" for n in (1, 3)]
        one, three = (sorted(map(repr, pq.read_table(path).to_pylist())) for path in paths)
        assert one == three
    scores = pq.read_table(drawn.root / "report-1" / "frame_scores.parquet")
    for name in ("loss", "uncertainty", "margin", "disagreement"):
        assert scores[name].null_count == FRAMES
    page = (drawn.root / "report-1" / "report.html").read_text()
    assert "commit 4f2a91c" in page
    assert "needs probabilities" in page
    assert "Most uncertain frames" not in page


@pytest.mark.parametrize("encoding", ["labels", "own"])
def test_colours_and_lists_of_their_own_are_the_same_classes(drawn: Drawn, encoding: str) -> None:
    """Proves predictions in the labels' colours, and by ids of another order, with names."""
    names = [*CLASSES.classes[::-1]]
    if encoding == "labels":
        drawn.write(encode=lambda ids: CLASSES.class_colours[ids])
        given: Any = "labels"
    else:
        drawn.write(encode=lambda ids: (13 - ids).astype(np.uint8))
        rows = [{"key": 10 + n, "name": name} for n, name in enumerate(names)]
        given = {"encoding": "index", "classes": rows}
    report = drawn.validate(drawn.describe(encoding=given))
    assert report["confusion_matrix"] == drawn.matrix()


def test_merged_classes_are_those_of_the_map(drawn: Drawn) -> None:
    """Proves a class map: ids are the map's, and ignored label classes count nowhere."""
    merged = {"Road user": ["Car", "Bicycle"], "Ground": ["RD normal street"]}
    class_map = {"name": "own", "classes": merged, "ignored": ["Sky"]}
    of_map = np.array([255, 1, 0, 0], np.uint8)
    drawn.write(encode=lambda ids: np.where(of_map[ids] == 255, 1, of_map[ids]).astype(np.uint8))
    folder = drawn.describe(class_map=class_map, classes=tuple(merged))
    report = drawn.validate(folder)
    full = np.array(drawn.matrix())
    ground = full[STREET, [SKY, STREET]].sum()
    assert report["classes"] == [*merged]
    assert report["confusion_matrix"] == [
        [int(full[2:, 2:].sum()), int(full[2:, :2].sum())],
        [int(full[STREET, 2:].sum()), int(ground)],
    ]


def _by_fkey(drawn: Drawn) -> dict[str, Any]:
    for number, ids in enumerate(drawn.predicted):
        drawn.write_one(f"validation-{number:03d}.png", ids)
    return {"named_by": "fkey"}


def _by_list(drawn: Drawn) -> dict[str, Any]:
    path = drawn.root / "list.csv"
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["frame", "prediction"])
        for number, ids in enumerate(drawn.predicted):
            frame = f"validation-{number:03d}" if number % 2 else drawn.files[number].image
            lines.writerow([frame, f"p/{number}.png"])
            drawn.write_one(f"p/{number}.png", ids)
    return {"named_by": str(path)}


def _by_source(drawn: Drawn) -> dict[str, Any]:
    drawn.write("out/drawn")
    return {}


def _in_tar(drawn: Drawn) -> dict[str, Any]:
    with tarfile.open(drawn.root / "out.tar", "w") as archive:
        archive.add(drawn.write("unpacked"), ".")
    return {"place": drawn.root / "out.tar"}


@pytest.mark.parametrize("named", [_by_fkey, _by_list, _by_source, _in_tar])
def test_predictions_are_found_by_each_of_their_names(
    drawn: Drawn, named: Callable[[Drawn], Mapping[str, Any]]
) -> None:
    """Proves fkeys, a list, a folder for each source, and the members of a tar."""
    assert drawn.validate(drawn.describe(**named(drawn)))["confusion_matrix"] == drawn.matrix()


def test_bad_predictions_are_named_and_counted(drawn: Drawn) -> None:
    """Proves that each kind of fault is named with its file, that all are, and skipping leaves out.

    Missing, of another size, ids beyond the classes, no class where the label has one.
    """
    out = drawn.write()
    names = [file.image for file in drawn.files]
    (out / names[0]).unlink()
    drawn.write_one(names[1], drawn.predicted[1][:-2])
    off = drawn.predicted[2].copy()
    off[0, :3], off[5, 5] = 9, 200
    drawn.write_one(names[2], off)
    without = drawn.predicted[3].copy()
    without[0, :2], without[UNKNOWN_AT] = 255, 255
    drawn.write_one(names[3], without)
    allowed = drawn.predicted[4].copy()
    allowed[UNKNOWN_AT] = 255  # where the label says nothing, a prediction may, too
    drawn.write_one(names[4], allowed)
    drawn.write_one("scene/camera/other.png", off)
    (out / "notes.txt").write_text("no prediction")
    folder = drawn.describe()
    matched = drawn.match(folder)
    assert matched.out.splitlines() == [
        "predictions of torch-1: 4 of the 5 frames of split validation, 1 missing, 1 of no frame",
        "of no frame: scene/camera/other.png",
    ]
    size = "has 96x62 pixels, and the label 96x64: write predictions at the label's size"
    ids = "4 pixels of 2 values are no class: 9 (3), 200 (1); expected 0 to 3"
    nothing = (
        "2 pixels have no class, and the label has one there: every pixel that the label knows "
        "needs a class that scores count"
    )
    reasons = [f"validation-000: {out}: has no prediction"]
    for number, reason in enumerate((size, ids, nothing), start=1):
        reasons.append(f"validation-{number:03d}: {out}/{names[number]}: {reason}")
    assert [one.status for one in drawn.evaluate(folder, 2)] == [0, 0]
    refused = drawn.merge(2)
    assert refused.out.splitlines() == [f"left out: {reason}" for reason in reasons]
    assert refused.status == 1
    assert refused.error == (
        "4 of 5 frames cannot be read, and --bad-frames allows 0: put their files back, or allow "
        f"more (skip:N); the first is {reasons[0]}"
    )
    assert not (drawn.root / "report-2").exists()
    skipping = drawn.evaluate(folder, 1, "--bad_frames", "skip:4")
    assert [one.status for one in skipping] == [0]
    assert drawn.merge(1, "--bad_frames", "skip:4").status == 0
    report = drawn.report()
    assert report["confusion_matrix"] == drawn.matrix(range(4, 5))
    assert [f"{row['fkey']}: {row['reason']}" for row in report["skipped_frames"]] == reasons
    assert report["lineage"]["predictions"]["extra_names"] == ["scene/camera/other.png"]


def test_predictions_that_are_mended_are_scored_again(drawn: Drawn) -> None:
    """Proves that a result of other predictions is not kept, and one of the same is."""
    out = drawn.write()
    folder = drawn.describe()
    first = drawn.validate(folder)["confusion_matrix"]
    assert "is there already" in drawn.evaluate(folder)[0].out
    drawn.predicted[0] = np.zeros_like(drawn.predicted[0])
    path = drawn.write_one(drawn.files[0].image, drawn.predicted[0])
    assert path.is_relative_to(out)
    second = drawn.validate(folder)["confusion_matrix"]
    assert (first == second, second) == (False, drawn.matrix())


def test_two_sets_of_predictions_are_compared(drawn: Drawn) -> None:
    """Proves the comparison; a frame that one of the two lacks is in neither's scores."""
    drawn.write("other", lambda ids: np.where(ids == CAR, STREET, ids).astype(np.uint8))
    drawn.write()
    other = drawn.describe("torch-2", drawn.root / "other")
    assert drawn.match(other).status == 0
    report = drawn.validate(drawn.describe(), 2, "--compare_dir", other)
    comparison = report["comparison"]
    assert (comparison["model"]["name"], comparison["scores"][0]["score"]) == ("torch-2", "miou")
    car = next(row for row in comparison["scores"] if row["score"] == "car")
    assert (car["other"], car["difference"]) == (0.0, car["value"])
    assert car["value"] == next(r["iou"] for r in report["per_class"] if r["tag"] == "car")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"named_by": "fkey"}, "none of its 5 files is named as a frame of drawn@1"),
        ({"place": Path("/nowhere/at/all")}, "/nowhere/at/all"),
        ({"named_by": "/nowhere.csv"}, "/nowhere.csv: cannot be read"),
    ],
)
def test_what_cannot_be_matched_is_refused(
    drawn: Drawn, more: Mapping[str, Any], message: str
) -> None:
    """Proves the errors of another dataset's predictions, and of places that are not there."""
    drawn.write()
    ended = drawn.match(drawn.describe(**more))
    assert ended.status == 1
    assert message in ended.error


def test_lists_of_other_classes_are_refused(drawn: Drawn) -> None:
    """Proves that a class without a place, and another number of classes, are errors."""
    drawn.write()
    rows = [{"key": n, "name": name} for n, name in enumerate([*CLASS_LIST.values(), "Moon"])]
    for more, message in (
        ({"encoding": {"encoding": "index", "classes": rows}}, "Car 1 is no class of dataset"),
        ({"classes": CLASSES.classes[:3]}, "model torch-1 knows 3 classes, dataset drawn has 4"),
    ):
        folder = drawn.describe(**more)
        assert drawn.match(folder).status == 0
        assert message in drawn.evaluate(folder)[0].error
