"""Validations of predictions that another program made: no network, no TensorFlow."""

import csv
import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from api.services.jobs.orders import encoding_of
from catalog.errors import InvalidInput, UnknownName
from catalog.storage.atomic_write import atomic_write
from framesift.data import Scores
from ingest.labels.class_list import UNKNOWN_CLASS
from ingest.labels.dataset_classes import DatasetClasses
from ingest.labels.label_image import decode_label
from ingest.layouts.read_layout import preset
from pipeline.manifest import Manifest
from pipeline.manifest_rows import FRAMES_SCHEMA
from pipeline.prepared.label_classes import LabelClasses
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
from training.input.given_predictions import PredictionDecoder

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
        "none has probabilities beside it: calibration, uncertainty and loss stay unknown",
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
        (
            {"named_by": "fkey"},
            (
                "none of its 5 files is named as a frame of drawn@1, split validation: expected "
                "names such as validation-000.png, and found scene/camera/000.png; they are named "
                "by name: give --named-by name"
            ),
        ),
        ({"place": Path("/nowhere/at/all")}, "/nowhere/at/all"),
        ({"named_by": "/nowhere.csv"}, "/nowhere.csv: cannot be read"),
    ],
)
def test_what_cannot_be_matched_is_refused(
    drawn: Drawn, more: Mapping[str, Any], message: str
) -> None:
    """Proves the errors of predictions of other names, and of places that are not there."""
    drawn.write()
    ended = drawn.match(drawn.describe(**more))
    assert ended.status == 1
    assert message in ended.error


def test_predictions_of_another_dataset_are_told(drawn: Drawn) -> None:
    """Proves that names of neither kind are said to be another dataset's, with one of each."""
    other = drawn.root / "other"
    other.mkdir()
    Image.new("L", (96, 64)).save(other / "scene-1.png")
    ended = drawn.match(drawn.describe(place=other))
    assert ended.status == 1
    assert (
        "none of its 1 files is named as a frame of drawn@1, split validation: expected names such "
        "as scene/camera/000.png, and found scene-1.png; they may be another dataset's"
    ) in ended.error


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


def _shares(ids: Ids, seed: int) -> Any:
    """Probabilities (classes, H, W) float32 whose largest are those of the ids."""
    logits = np.random.default_rng(seed).uniform(-2, 2, (len(CLASSES), *ids.shape))
    np.put_along_axis(logits, ids[None].astype(int), 4.0, axis=0)
    shares = np.exp(logits)
    return (shares / shares.sum(axis=0)).astype(np.float32)


def test_scores_of_a_loop_are_predictions_of_a_folder(drawn: Drawn) -> None:
    """Proves that a report of framesift.data.Scores is that of the same class ids in a folder."""
    drawn.write()
    scores = Scores(drawn.root / "scores", drawn.root / "manifest")
    for number, ids in enumerate(drawn.predicted):
        scores.add(f"validation-{number:03d}", ids)
    of_folder = drawn.validate(drawn.describe())
    tables = [
        (drawn.root / "report-1" / f"{name}.parquet").read_bytes()
        for name in ("frame_scores", "frame_cells")
    ]
    (drawn.root / "results-1" / "shard-00000-of-00001.fsv").unlink()
    of_scores = drawn.validate(drawn.describe(place=scores.folder, named_by="fkey"))
    for report in (of_folder, of_scores):
        predictions = report["lineage"].pop("predictions")
        assert (predictions["missing"], predictions["with_confidence"]) == (0, 0)
    assert of_folder == of_scores
    assert of_folder["confusion_matrix"] == drawn.matrix()
    assert tables == [
        (drawn.root / "report-1" / f"{name}.parquet").read_bytes()
        for name in ("frame_scores", "frame_cells")
    ]


def _small(layers: Any) -> Any:
    """Layers (n, H, W) at the size at which frames are compared, 240x152, as (h, w, n)."""
    rows, columns = ((np.arange(n) * 2 + 1) * of // (2 * n) for n, of in ((152, 64), (240, 96)))
    return np.moveaxis(layers[:, rows[:, None], columns], 0, -1).astype(np.float64)


def test_probabilities_give_calibration_uncertainty_and_loss(drawn: Drawn) -> None:
    """Proves each score by a bare computation, of npz files and of Scores; one frame has none."""
    out = drawn.write()
    scores = Scores(drawn.root / "scores", drawn.root / "manifest")
    expected: list[dict[str, float]] = []
    sure, right = [], []
    for number, ids in enumerate(drawn.predicted):
        shares = _shares(ids, number) if number else None
        scores.add(f"validation-{number:03d}", ids, shares)
        if shares is None:
            continue
        name = out / drawn.files[number].image
        np.savez_compressed(name.with_suffix(".npz"), shares)
        small, truth = _small(shares), _small(drawn.truths[number][None])[..., 0].astype(int)
        known = truth < len(CLASSES)
        two = np.sort(small, axis=-1)[..., -2:]
        of_truth = np.take_along_axis(small, np.where(known, truth, 0)[..., None], -1)[..., 0]
        expected.append(
            {
                "uncertainty": float(-(small * np.log(small)).sum(-1).mean() / np.log(4)),
                "margin": float((two[..., 1] - two[..., 0]).mean()),
                "loss": float(-np.log(of_truth[known]).mean()),
            }
        )
        own = _small(ids[None])[..., 0].astype(int)
        sure.append(np.take_along_axis(small, own[..., None], -1)[..., 0][known])
        right.append((own == truth)[known])
    probability, hit = np.concatenate(sure), np.concatenate(right)
    bins = np.ceil(probability * 15).astype(int)
    ece = sum(
        abs(probability[bins == n].mean() - hit[bins == n].mean()) * (bins == n).mean()
        for n in np.unique(bins)
    )
    for folder in (drawn.describe(), drawn.describe(place=scores.folder, named_by="fkey")):
        report = drawn.validate(folder)
        assert report["lineage"]["predictions"]["with_confidence"] == FRAMES - 1
        assert report["calibration"]["ece"] == pytest.approx(ece, abs=1e-5)
        assert sum(one["pixels"] for one in report["calibration"]["bins"]) == len(probability)
        table = pq.read_table(drawn.root / "report-1" / "frame_scores.parquet").to_pylist()
        assert [table[0][name] for name in expected[0]] == [None] * 3
        for row, values in zip(table[1:], expected, strict=True):
            assert {name: row[name] for name in values} == pytest.approx(values, abs=1e-4)
        page = (drawn.root / "report-1" / "report.html").read_text()
        assert ("needs probabilities" in page, "Most uncertain frames" in page) == (False, True)
        (drawn.root / "results-1" / "shard-00000-of-00001.fsv").unlink()


@pytest.mark.parametrize("bits", [8, 16])
def test_a_picture_of_the_confidence_gives_calibration_alone(drawn: Drawn, bits: int) -> None:
    """Proves grey PNG files of both depths at half the size, in a tar; entropy stays unknown."""
    out, largest = drawn.write("unpacked"), (1 << bits) - 1
    levels = np.random.default_rng(4).integers(0, largest + 1, (FRAMES, 32, 48))
    for number, file in enumerate(drawn.files):
        grey = levels[number].astype(np.uint8 if bits == 8 else np.uint16)
        Image.fromarray(grey).save((out / file.image).with_suffix(".confidence.png"))
    with tarfile.open(drawn.root / "out.tar", "w") as archive:
        archive.add(out, ".")
    folder = drawn.describe(place=drawn.root / "out.tar")
    assert drawn.match(folder).out.splitlines() == [
        "predictions of torch-1: 5 of the 5 frames of split validation, 0 missing, 0 of no frame",
        "5 of them have probabilities or a confidence beside them",
    ]
    report = drawn.validate(folder)
    total = 0.0
    for number, truth in enumerate(drawn.truths):
        rows, columns = ((np.arange(n) * 2 + 1) * of // (2 * n) for n, of in ((152, 32), (240, 48)))
        known = _small(truth[None])[..., 0] < len(CLASSES)
        total += (levels[number][rows[:, None], columns] / largest)[known].sum()
    bins = report["calibration"]["bins"]
    units = sum(one["confidence"] * one["pixels"] for one in bins if one["pixels"])
    assert units == pytest.approx(total, rel=1e-6)
    assert report["calibration"]["ece"] > 0
    assert (report["uncertainty"], report["margin"]) == (None, None)
    page = (drawn.root / "report-1" / "report.html").read_text()
    assert "needs probabilities" not in page


def test_bad_probabilities_are_named(drawn: Drawn) -> None:
    """Proves each fault of a file beside a prediction, which names it; the others are scored."""
    out = drawn.write()
    beside = [(out / file.image).with_suffix(".npz") for file in drawn.files]
    shares = [_shares(ids, number) for number, ids in enumerate(drawn.predicted)]
    np.savez_compressed(beside[0], np.roll(shares[0], 1, axis=0))
    shares[1][2, 7, 9] = np.nan
    np.savez_compressed(beside[1], shares[1])
    np.savez_compressed(beside[2], shares[2][:3])
    beside[3].write_bytes(b"PK no zip")
    np.savez(beside[4], probabilities=shares[4], other=shares[4])
    folder = drawn.describe()
    assert drawn.match(folder).status == 0
    assert drawn.evaluate(folder)[0].status == 0
    lines = drawn.merge().out.splitlines()
    for line, number, reason in zip(
        lines,
        range(4),
        (
            "probabilities say another class than the class ids at 6,144 of 6,144 pixels: at row 0",
            "probabilities that are no numbers (NaN or infinite)",
            "has probabilities of shape (3, 64, 96); expected (4, h, w), a layer for each class id",
            "is no npz file of one array, probabilities: File is not a zip file",
        ),
        strict=True,
    ):
        assert line.startswith(f"left out: validation-{number:03d}: {beside[number]}: {reason}")
    grey = drawn.write_one("scene/camera/000.confidence.png", drawn.predicted[0].astype(np.uint8))
    beside[0].unlink()
    Image.open(grey).convert("RGB").save(grey)
    assert drawn.match(folder).status == 0
    assert drawn.evaluate(folder)[0].status == 0
    assert drawn.merge().out.splitlines()[0] == (
        f"left out: validation-000: {grey}: has 8 bits of colour type 2; expected a grey PNG of 8 "
        "or 16 bits, whose largest value is 1"
    )


def test_large_probabilities_are_refused_before_they_are_unpacked(drawn: Drawn) -> None:
    """Proves that a small file of many gigabytes, and pickled objects, cost nothing."""
    out = drawn.write()
    path = (out / drawn.files[0].image).with_suffix(".npz")
    header = {"descr": "<f4", "fortran_order": False, "shape": (4, 100_000, 100_000)}
    for described, reason in (
        (header, "has 160,000,000,000 bytes of probabilities"),
        ({**header, "descr": "|O"}, "has numbers of type object"),
    ):
        with zipfile.ZipFile(path, "w") as archive, archive.open("p.npy", "w") as file:
            form: Any = np.lib.format
            form.write_array_header_2_0(file, described)
            file.write(bytes(1000))
        folder = drawn.describe()
        assert drawn.match(folder).status == 0
        assert drawn.evaluate(folder)[0].status == 0
        assert reason in drawn.merge().out.splitlines()[0]


def test_two_fkeys_of_one_prediction_are_refused(drawn: Drawn) -> None:
    """Proves that no prediction counts for two frames whose fkeys differ in their ending alone."""
    drawn.write_one("a.png", drawn.predicted[0])
    manifest = Manifest.read(drawn.root / "manifest")
    rows = manifest.frames.to_pylist()
    names = iter(["a.png", "a.jpg", "b.png", "c", "d"])
    for row in rows:
        row["fkey"] = next(names) if row["split"] == "validation" else row["fkey"]
    table = pa.Table.from_pylist(rows, FRAMES_SCHEMA)
    Manifest(manifest.header, table).write(drawn.root / "manifest")
    ended = drawn.match(drawn.describe(named_by="fkey"))
    assert "a.png is the name of frames a.png and a.jpg: expected a list" in ended.error


def test_a_layout_s_name_is_its_class_list() -> None:
    """Proves train ids of Cityscapes for labels with its other ids; what is no class is named."""
    of_labels, of_ids = (preset(name).classes for name in ("cityscapes", "cityscapes-trainids"))
    assert of_labels is not None
    assert of_ids is not None
    labels = DatasetClasses.of(of_labels)
    classes = LabelClasses.of(labels, None, "city")
    assert encoding_of("labels") == "labels"
    encoding = encoding_of("cityscapes-trainids")
    assert encoding == {"layout": "cityscapes-trainids", **of_ids.to_json()}
    given = PredictionSet(model="m", place="/p", classes=classes.names, encoding=encoding or "")
    decoder = PredictionDecoder(given, classes, labels, "city")
    truth = np.array([[classes.names.index(name) for name in ("road", "car", "bicycle")]], np.uint8)
    key_of = {key.name: key.key for key in of_ids.keys}
    file = io.BytesIO()
    keys = [[key_of[name] for name in ("car", "car", "bicycle")]]
    Image.fromarray(np.array(keys, np.uint8)).save(file, "PNG")
    ids = decoder.ids(file.getvalue(), truth)
    assert [classes.names[n] for n in ids[0]] == ["car", "car", "bicycle"]
    with pytest.raises(UnknownName, match="did you mean cityscapes"):
        encoding_of("cityscape")
    with pytest.raises(InvalidInput, match="leaves its classes to a file"):
        encoding_of("a2d2")
