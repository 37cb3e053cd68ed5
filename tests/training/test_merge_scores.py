"""Adding up shards, and the report."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from api.cli.commands.jobs.follow import told_regressions
from tests.training.commands import run, run_forked
from training.merge_scores import FRAME_SCORES_SCHEMA, open_shards
from training.validation import comparison, frame_summary
from training.validation.frame_cells import FrameCells, FrameScore, Int32, cells_of
from training.validation.frame_summary import FrameSummary, score_blocks
from training.validation.metrics.metric import Metric, ScoredFrame
from training.validation.metrics.table import METRICS
from training.validation.report_frames import confusions
from training.validation.scene_sums import sums_of
from training.validation.scores import (
    Int64,
    confusion_matrix,
    iou,
    mean_iou,
    pixel_accuracy,
)
from training.validation.shard_file import (
    About,
    ShardResult,
    compared_results,
    read_shard,
    shard_path,
)

CLASSES = ("Sky", "Street <&>", "Car", "Bicycle")
TAGS = ("sky", "street", "auto", "bicycle")
"""A layout may give a class a tag that its name does not have."""
LABEL_TAGS = (("sky",), ("street", "kerb"), ("auto",), ("bicycle",))
FRAMES = 7
NUMBERED = np.full(256, 255, np.uint8)
NUMBERED[2] = 2


def about(shard: int, shards: int) -> About:
    """What a shard of the made-up validation is of."""
    return About(
        "a" * 64,
        "runs/night",
        300,
        CLASSES,
        TAGS,
        LABEL_TAGS,
        "munich",
        2,
        "d-17",
        "validation",
        FRAMES,
        shard,
        shards,
    )


def write_shards(folder: Path, shards: int, right: float = 0.7) -> Int64:
    """Made-up results in ``shards`` pieces, such a share right; the matrix of all frames."""
    random = np.random.default_rng(1)
    whole = np.zeros((4, 4), np.int64)
    metrics = [no_metrics() for _ in range(shards)]
    scenes: list[dict[str, dict[str, Metric]]] = [{} for _ in range(shards)]
    cells: list[list[tuple[Int32, Int32]]] = [[] for _ in range(shards)]
    scores: list[list[FrameScore]] = [[] for _ in range(shards)]
    for row in range(FRAMES):
        truth = random.integers(0, 3, (20, 30), dtype=np.uint8)
        truth[0, : row + 1] = 255
        guess = np.where(random.random(truth.shape) < right, truth, 1).astype(np.uint8)
        matrix, ignored = confusion_matrix(truth, guess, 4)
        whole += matrix
        confidence = random.random(truth.shape, np.float32)
        of_scene = scenes[row % shards].setdefault(f"scene-{row % 3}", no_metrics())
        for metric in (*metrics[row % shards].values(), *of_scene.values()):
            metric.update(
                ScoredFrame(
                    truth,
                    guess,
                    matrix,
                    truth,
                    guess.astype(np.int64),
                    confidence,
                    0.1,
                    0.8,
                    0.25 if row else 0.5,
                    truth,
                    NUMBERED,
                )
            )
        cells[row % shards].append(cells_of(matrix))
        accuracy, miou = pixel_accuracy(matrix), mean_iou(matrix)
        scores[row % shards].append(
            FrameScore(
                fkey=f"f{row}",
                row=row,
                scene=f"scene-{row % 3}",
                camera=("front", "rear")[row % 2],
                pixels=int(matrix.sum()),
                ignored_pixels=ignored,
                accuracy=accuracy,
                loss=0.5,
                uncertainty=0.1,
                margin=0.8,
                miou=miou,
            )
        )
    for shard in range(shards):
        of_frames = FrameCells.of(cells[shard])
        sums = {scene: sums_of(its) for scene, its in scenes[shard].items()}
        ShardResult(
            about(shard, shards), metrics[shard], scores[shard], of_frames, scenes=sums
        ).write(folder)
    return whole


def no_metrics() -> dict[str, Metric]:
    """All metrics, of no frame."""
    return {name: metric.empty(len(CLASSES)) for name, metric in METRICS.items()}


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


@pytest.mark.wide
def test_cells_of_frames_add_up_to_the_matrix(tmp_path: Path) -> None:
    """Each frame's cells are written by class tags, whatever the number of shards."""
    whole = write_shards(tmp_path, 3)
    assert run_forked(*merge(tmp_path, 3, tmp_path / "out")).status == 0
    rows = pq.read_table(tmp_path / "out/frame_cells.parquet").to_pylist()
    tags = TAGS
    found = np.zeros_like(whole)
    for row in rows:
        found[tags.index(row["truth"]), tags.index(row["predicted"])] += row["pixels"]
    assert found.tolist() == whole.tolist()
    assert {row["fkey"] for row in rows} == {f"f{row}" for row in range(FRAMES)}


@pytest.mark.wide
def test_frames_of_scenes_that_were_trained_on_are_warned_of(tmp_path: Path) -> None:
    """They are counted over shards, beside the frames themselves."""
    write_shards(tmp_path, 2)
    for shard in range(2):
        result = read_shard(shard_path(tmp_path, shard, 2))
        replace(result, frames_of_trained_scenes=shard + 1).write(tmp_path)
    assert run_forked(*merge(tmp_path, 2, tmp_path / "out")).status == 0
    (warning,) = json.loads((tmp_path / "out/report.json").read_text())["warnings"]
    assert "other frames of the scenes of 3 of the 7 frames" in warning


@pytest.mark.wide
def test_frames_that_models_were_trained_on_are_warned_of(tmp_path: Path) -> None:
    """Those of the model compared with, too; a model without a list of them is named as unknown."""
    write_shards(tmp_path, 2)
    for shard in range(2):
        result = read_shard(shard_path(tmp_path, shard, 2))
        replace(result, trained_frames=None).write(tmp_path)
        replace(result, trained_frames=shard + 1).write(compared_results(tmp_path))
    assert run_forked(*merge(tmp_path, 2, tmp_path / "out"), "--compared").status == 0
    report = json.loads((tmp_path / "out/report.json").read_text())
    unknown, known = report["warnings"]
    assert unknown.startswith("the model has no list of the frames that it was trained on")
    assert "the model compared with was trained on 3 of the 7 frames" in known
    assert report["trained_frames"] is None
    assert json.loads((tmp_path / "out/metrics.json").read_text())["trained_frames"] is None


@pytest.mark.wide
@pytest.mark.parametrize("shards", [1, 2, 3, 10])
def test_any_number_of_shards_is_one_matrix(tmp_path: Path, shards: int) -> None:
    """Proves sharded results add up exactly, empty shards included, and frames keep their order."""
    whole = write_shards(tmp_path, shards)
    ended = run_forked(*merge(tmp_path, shards, tmp_path / "out"))
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
        "label_tags": ["bicycle"],
        "truth_pixels": 0,
        "predicted_pixels": 0,
        "iou": None,
        "iou_interval": None,
        "boundary_iou": None,
        "boundary_iou_interval": None,
        "object_sizes": [],
        "recall": None,
        "recall_interval": None,
        "precision": None,
        "precision_interval": None,
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
    ious = {row["tag"]: row["iou"] for row in report["per_class"] if row["truth_pixels"]}
    weakest = sorted(ious, key=lambda tag: float(ious[tag]))
    assert [row["class"] for row in headline["weakest"]] == weakest
    tags = [row["tag"] for row in report["per_class"]]
    for row in headline["weakest"]:
        pixels = whole[tags.index(row["class"])]
        others = np.delete(pixels, tags.index(row["class"]))
        lost = 0 if row["taken_for"] is None else int(pixels[tags.index(row["taken_for"])])
        assert lost == others.max()
        assert row["share"] == lost / pixels.sum()
    assert any(row["taken_for"] for row in headline["weakest"])


def test_blocks_of_any_size_are_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proves scores, ends and order are the same, however many rows of the split are in memory.

    And however many shards' tables are joined at once.
    """
    write_shards(tmp_path, 3)
    shards, _ = open_shards(tmp_path, 3)
    monkeypatch.setattr(frame_summary, "_TABLES", 2)
    whole = FrameSummary()
    (block,) = score_blocks(shards)
    whole.add(block)
    assert block["row"].to_pylist() == list(range(FRAMES))
    assert (whole.frames, len(whole.worst())) == (FRAMES, FRAMES)
    for rows in (1, 2, 3, FRAMES):
        blocks = list(score_blocks(shards, rows))
        assert len(blocks) == -(-FRAMES // rows)
        assert [row for one in blocks for row in one.to_pylist()] == block.to_pylist()
        summary = FrameSummary()
        for one in blocks:
            summary.add(one)
        assert summary.worst() == whole.worst()
        assert summary.most_uncertain() == whole.most_uncertain()
        assert summary.ignored_pixels == whole.ignored_pixels


@pytest.mark.wide
def test_least_scores(tmp_path: Path) -> None:
    """Proves a score below, one above, and one that truth lacks are told apart; and bad flags."""
    write_shards(tmp_path, 2)
    flags = [*merge(tmp_path, 2, tmp_path / "out"), "--fail_below"]
    ended = run_forked(*flags, "miou=0.99,sky=0.01,bicycle=0")
    assert ended.status == 0, ended.err
    report = json.loads((tmp_path / "out/report.json").read_text())
    reached = {row["score"]: (row["reached"], row["value"]) for row in report["thresholds"]}
    assert reached["miou"] == (False, report["miou"])
    assert reached["sky"] == (True, report["per_class"][0]["iou"])
    assert reached["bicycle"] == (False, None)
    below = json.loads((tmp_path / "out/metrics.json").read_text())["below"]
    assert [row["score"] for row in below] == ["miou", "bicycle"]
    assert "not reached" in (tmp_path / "out/report.html").read_text()
    for wrong in ("miou", "miou=2", "miou=0.1,miou=0.2", "=0.1", "miou=nan"):
        ended = run_forked(*flags, wrong)
        assert ended.status == 2
        assert "expected NAME=SCORE" in ended.err


@pytest.mark.wide
def test_slices_and_intervals_of_a_report(tmp_path: Path) -> None:
    """Proves scores of cameras and scenes are those of their frames, and the page shows them."""
    whole = write_shards(tmp_path, 3)
    assert run_forked(*merge(tmp_path, 3, tmp_path / "out")).status == 0
    report = json.loads((tmp_path / "out/report.json").read_text())
    cameras = {row["value"]: row for row in report["slices"]["camera"]}
    scores = pq.read_table(tmp_path / "out/frame_scores.parquet").to_pylist()
    for n, camera in enumerate(("front", "rear")):
        rows = scores[n::2]
        right = sum(row["accuracy"] * row["pixels"] for row in rows)
        accuracy = right / sum(row["pixels"] for row in rows)
        assert cameras[camera]["pixel_accuracy"] == pytest.approx(accuracy)
        assert cameras[camera]["frames"] == len(rows)
        assert cameras[camera]["classes_with_truth"] == ["Sky", "Street <&>", "Car"]
    assert [row["value"] for row in report["slices"]["scene"]] == ["scene-0", "scene-1", "scene-2"]
    low, high = report["intervals"]["miou"]
    assert low < mean_iou(whole) < high
    assert report["intervals"]["scenes"] == 3
    assert report["margin"] == pytest.approx(0.8)
    assert report["disagreement"]["mean"] == pytest.approx((0.5 + 6 * 0.25) / 7)
    assert report["entropy"]["frames"][2] == FRAMES
    (tiny,) = report["per_class"][2]["object_sizes"]
    assert (tiny["size"], tiny["pixels"]) == ("tiny", int(whole[2].sum()))
    assert tiny["recall"] == pytest.approx(report["per_class"][2]["recall"])
    assert report["object_sizes"] == [tiny]
    page = (tmp_path / "out/report.html").read_text()
    assert "By size of object" in page
    assert "of the pixels get another class" in page
    assert "Reliability diagram." in page
    assert "drawing the 3 scenes" in page
    table = page[page.index("By camera, worst first") : page.index("By scene, worst first")]
    for row in cameras.values():
        assert row["scenes"] == 3
        for score in ("miou", "pixel_accuracy"):
            ends = row[f"{score}_interval"]
            assert ends[0] <= row[score] <= ends[1]
            within = f"<small>{100 * ends[0]:.1f} to {100 * ends[1]:.1f}</small>"
            assert f"<td>{100 * row[score]:.1f} %{within}</td>" in table
    assert "A scene by itself has no intervals." in page


def test_every_score_of_a_report_has_its_interval(tmp_path: Path) -> None:
    """Of the whole, of classes, sizes, bins and confusions: in the report and below it on the page.

    And in the job's metrics; the same of one shard and of three.
    """
    reports = []
    for shards in (1, 3):
        write_shards(tmp_path / str(shards), shards)
        ended = run_forked(*merge(tmp_path / str(shards), shards, tmp_path / f"out-{shards}"))
        assert ended.status == 0, ended.err
        reports.append(json.loads((tmp_path / f"out-{shards}/report.json").read_text()))
    assert reports[0]["intervals"] == reports[1]["intervals"]
    assert reports[0]["per_class"] == reports[1]["per_class"]
    report, page = reports[1], (tmp_path / "out-3/report.html").read_text()
    values = {
        **{name: report[name] for name in report["intervals"] if name in report},
        "ece": report["calibration"]["ece"], "disagreement": report["disagreement"]["mean"],
        "baseline_miou": report["baseline"]["miou"],
        "baseline_pixel_accuracy": report["baseline"]["pixel_accuracy"],
    }  # fmt: skip
    assert {*values} == {*report["intervals"]} - {"scenes", "draws"}
    for name, value in values.items():
        low, high = report["intervals"][name]
        assert low <= value <= high, name
    shown = ("miou", "pixel_accuracy", "frequency_weighted_iou", "boundary_iou", "ece")
    headline = json.loads((tmp_path / "out-3/metrics.json").read_text())
    for name in (*shown, "disagreement"):
        low, high = report["intervals"][name]
        assert f"{100 * low:.1f} % to {100 * high:.1f} %, " in page, name
        if name in shown:
            assert [headline[f"{name}_low"], headline[f"{name}_high"]] == [low, high]
    (tiny,) = report["object_sizes"]
    scored = [
        *((row, name) for row in report["per_class"][:3]
          for name in ("iou", "recall", "precision", "boundary_iou")),
        *((row, "share_of_truth") for row in report["largest_confusions"]),
        (tiny, "found"), (tiny, "recall"),
    ]  # fmt: skip
    for row, name in scored:
        low, high = row[f"{name}_interval"]
        assert low <= row[name] <= high
        within = f"<small>{100 * low:.1f} to {100 * high:.1f}</small>"
        assert f"<td>{100 * row[name]:.1f} %{within}</td>" in page, name
    for row in report["calibration"]["bins"]:
        low, high = row["accuracy_interval"]
        assert low <= row["accuracy"] <= high
        assert f"right {100 * row['accuracy']:.1f} % ({100 * low:.1f} to {100 * high:.1f})" in page


@pytest.mark.wide
def test_a_model_is_compared_with_another(tmp_path: Path) -> None:
    """Proves differences, intervals and verdicts are those of the two matrices, and are shown.

    And that other frames and lacking results are refused.
    """
    whole = write_shards(tmp_path, 2, right=0.6)
    flags = [*merge(tmp_path, 2, tmp_path / "out"), "--compared"]
    ended = run_forked(*flags)
    assert "of 2 shards, missing: 0, 1" in ended.error
    others = compared_results(tmp_path)
    its = write_shards(others, 2, right=0.8)
    for shard in range(2):
        result = read_shard(shard_path(others, shard, 2))
        other = replace(result.about, model_sha256="b" * 64, model_dir="runs/day/model")
        replace(result, about=other).write(others)
    ended = run_forked(*flags)
    assert ended.status == 0, ended.err
    assert "regression: miou: -" in ended.out
    report = json.loads((tmp_path / "out/report.json").read_text())
    made = report["comparison"]
    assert (made["model"]["name"], made["scenes"], made["draws"]) == ("day", 3, 1000)
    rows = {row["score"]: row for row in made["scores"]}
    assert list(rows) == ["miou", "pixel_accuracy", "sky", "street", "auto"]
    assert rows["miou"]["difference"] == pytest.approx(mean_iou(whole) - mean_iou(its))
    assert rows["auto"]["other"] == pytest.approx(iou(its)[2])
    for row in rows.values():
        low, high = row["interval"]
        assert low <= row["difference"] <= high < 0
        assert row["verdict"] == "worse"
    assert made["regressions"] == list(rows)
    headline = json.loads((tmp_path / "out/metrics.json").read_text())
    assert headline["compared_with"] == "day"
    assert headline["regressions"] == list(rows)
    assert headline["miou_difference_high"] == rows["miou"]["interval"][1]
    page = (tmp_path / "out/report.html").read_text(encoding="utf-8")
    assert "Compared with day, step 300" in page
    assert page.count('<span class="mark">worse</span>') == len(rows)
    result = read_shard(shard_path(others, 1, 2))
    frames = [replace(frame, row=frame.row + 7) for frame in result.frames]
    replace(result, frames=frames).write(others)
    assert "put through other frames" in run_forked(*flags).error


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [
        ((-0.03, -0.01), "worse"),
        ((-0.01, 0.02), "not told apart"),
        ((0.01, 0.03), "better"),
        ((0.0, 0.02), "not told apart"),
        ((-0.02, 0.0), "not told apart"),
        (None, None),
    ],
)
def test_a_verdict_needs_the_whole_interval_on_one_side(
    interval: tuple[float, float] | None, verdict: str | None
) -> None:
    """Worse below zero, better above; neither where zero lies in it or at its end."""
    assert comparison._verdict(interval) == verdict


def test_each_score_has_its_own_verdict() -> None:
    """One class worse, one better, one the same, one without truth: and each in its list alone."""
    scenes: dict[str, Int64] = {}
    others: dict[str, Int64] = {}
    for number in range(6):
        right = 500 + 50 * number
        scenes[f"s{number}"] = np.diag([right, right, 900, 0])
        others[f"s{number}"] = scenes[f"s{number}"].copy()
        scenes[f"s{number}"][0, 3] = others[f"s{number}"][1, 3] = 100

    def report(name: str, of: dict[str, Int64]) -> dict[str, Any]:
        whole = np.sum([*of.values()], axis=0)
        rows = zip(CLASSES, whole.sum(axis=1).tolist(), iou(whole), strict=True)
        return {
            "model": {"name": name},
            "classes": CLASSES,
            "miou": mean_iou(whole),
            "pixel_accuracy": pixel_accuracy(whole),
            "per_class": [
                {"tag": TAGS[CLASSES.index(each)], "truth_pixels": pixels, "iou": value}
                for each, pixels, value in rows
            ],
        }

    night, day = report("night", scenes), report("day", others)
    made = comparison.compared(night, day, scenes, others)
    assert {row["score"]: row["verdict"] for row in made["scores"]} == {
        "miou": "not told apart",
        "pixel_accuracy": "not told apart",
        "sky": "worse",
        "street": "better",
        "auto": "not told apart",
    }
    assert (made["regressions"], made["improvements"]) == (["sky"], ["street"])
    turned = comparison.compared(day, night, others, scenes)
    assert (turned["regressions"], turned["improvements"]) == (["street"], ["sky"])


@pytest.mark.wide
def test_a_comparison_on_one_scene_judges_nothing(tmp_path: Path) -> None:
    """Without intervals nothing is told to be free of regressions: in report, page, log and job."""
    for folder, right in ((tmp_path, 0.6), (compared_results(tmp_path), 0.8)):
        write_shards(folder, 1, right)
        result = read_shard(shard_path(folder, 0, 1))
        replace(result, frames=[replace(one, scene="a") for one in result.frames]).write(folder)
    ended = run_forked(*merge(tmp_path, 1, tmp_path / "out"), "--compared")
    assert "no verdict: intervals need frames of two scenes" in ended.out
    made = json.loads((tmp_path / "out/report.json").read_text())["comparison"]
    assert (made["regressions"], made["improvements"]) == (None, None)
    page = (tmp_path / "out/report.html").read_text(encoding="utf-8")
    assert "Whether a score is worse is unknown." in page
    assert "No score is worse" not in page
    metrics = json.loads((tmp_path / "out/metrics.json").read_text())
    assert "unknown whether worse than" in told_regressions(
        {"kind": "validate", "metrics": metrics}
    )


def test_every_confused_pair_leads_to_its_frames() -> None:
    """Each cell of the matrix beside the diagonal that is not zero, and no other."""
    names = ["Car", "Sky", "Zebra crossing", "Poles", "Truck"]
    tags = ["auto", "sky", "zebra_crossing", "poles", "truck"]
    matrix = [[(row * 5 + column) % 7 for column in range(5)] for row in range(5)]
    report = {
        "classes": names,
        "per_class": [{"tag": tag} for tag in tags],
        "confusion_matrix": matrix,
        "largest_confusions": [
            {
                "truth": "Car", "truth_tag": "auto", "predicted": "Sky", "predicted_tag": "sky",
                "pixels": 1, "share_of_truth": 0.5, "share_of_truth_interval": None,
            }
        ],
    }  # fmt: skip
    pairs = [(row, column) for row in range(5) for column in range(5) if row != column]
    linked = {(row, column) for row, column in pairs if matrix[row][column]}
    page = confusions(report, "v-1")
    assert 12 < len(linked) < len(pairs)
    for row, column in pairs:
        path = f"/jobs/v-1/frames?truth={tags[row]}&amp;predicted={tags[column]}"
        assert (f'href="{path}"' in page) == ((row, column) in linked)


@pytest.mark.wide
def test_slices_by_tags(tmp_path: Path) -> None:
    """Proves each part's scores are those of its frames, whatever the shards; a tag may be "miou".

    And that slices of another split are refused.
    """
    write_shards(tmp_path, 3)
    parts = [("rain", "dry")[row < 2] for row in range(FRAMES)]
    names = [("<b>", "c")[row % 2] for row in range(FRAMES)]
    table = pa.table({"weather": parts, "miou": names, "camera": ["x"] * FRAMES})
    pq.write_table(table, tmp_path / "slices.parquet")
    flags = [*merge(tmp_path, 3, tmp_path / "out"), "--slices", str(tmp_path / "slices.parquet")]
    ended = run_forked(*flags)
    assert ended.status == 0, ended.err
    report = json.loads((tmp_path / "out/report.json").read_text())
    assert list(report["slices"]) == ["camera", "scene", "weather", "miou"]
    assert {row["value"] for row in report["slices"]["camera"]} == {"front", "rear"}
    dry, rain = report["slices"]["weather"]
    assert (dry["value"], dry["frames"], rain["frames"]) == ("dry", 2, FRAMES - 2)
    scores = pq.read_table(tmp_path / "out/frame_scores.parquet").to_pylist()[:2]
    right = sum(row["accuracy"] * row["pixels"] for row in scores)
    assert dry["pixel_accuracy"] == pytest.approx(right / sum(row["pixels"] for row in scores))
    assert [row["value"] for row in report["slices"]["miou"]] == ["<b>", "c"]
    assert [row["miou"] for row in report["slices"]["miou"]] == [
        row["miou"] for row in report["slices"]["camera"]
    ]
    page = (tmp_path / "out/report.html").read_text()
    assert "By weather, worst first" in page
    assert "<b>" not in page
    pq.write_table(table.slice(1), tmp_path / "slices.parquet")
    assert "has slices of 6 frames, and the split 7" in run_forked(*flags).error


@pytest.mark.wide
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
    ended = run_forked(*merge(tmp_path, 4, tmp_path / "out"))
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
    ShardResult(other, no_metrics(), []).write(tmp_path)
    ended = run_forked(*merge(tmp_path, 2, tmp_path / "out"))
    assert ended.status == 1
    assert f"shard 1 is of {expected} than shard 0" in ended.error


@pytest.mark.wide
def test_incomplete_and_damaged_shards(tmp_path: Path) -> None:
    """Proves a shard with too few frames, or a cut file, is refused by name."""
    write_shards(tmp_path, 2)
    path = shard_path(tmp_path, 1, 2)
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    ended = run_forked(*merge(tmp_path, 2, tmp_path / "out"))
    assert ended.status == 1
    assert "shard-00001-of-00002.fsv: is damaged" in ended.error
    ShardResult(about(1, 2), no_metrics(), []).write(tmp_path)
    ended = run_forked(*merge(tmp_path, 2, tmp_path / "out"))
    assert ended.status == 1
    assert "holds 0 frames of a split of 7" in ended.error
    path.write_bytes(whole)
    result = read_shard(path)
    frames = [replace(frame, row=frame.row - 1) for frame in result.frames]
    replace(result, frames=frames).write(tmp_path)
    ended = run_forked(*merge(tmp_path, 2, tmp_path / "out"))
    assert "two shards have the same frame" in ended.error


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
        if tag not in ("meta", "img", "line", "polyline", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag that closes itself."""

    def handle_endtag(self, tag: str) -> None:
        """Check that it closes the last one."""
        assert self.open.pop() == tag


@pytest.mark.wide
def test_page_and_picture(tmp_path: Path) -> None:
    """Proves the page is whole, names what the data lacks, escapes names and loads nothing.

    The last tick of IoU against the share of pixels is within its picture.
    """
    write_shards(tmp_path, 2)
    assert run_forked(*merge(tmp_path, 2, tmp_path / "out")).status == 0
    page = (tmp_path / "out/report.html").read_text(encoding="utf-8")
    links = _Links()
    links.feed(page)
    assert not links.open
    ours = ("data:image/", "/frames/", "/?question=", "#frame-")
    assert all(link.startswith(ours) for link in links.loads)
    assert run_forked(*merge(tmp_path, 2, tmp_path / "out"), "--job", "v 1").status == 0
    page_of_job = (tmp_path / "out/report.html").read_text(encoding="utf-8")
    assert '<a href="/jobs/v%201/frames?truth=' in page_of_job
    assert "/?question=" not in page_of_job
    assert not re.search(r"https?://(?!www\.w3\.org)", page)
    assert "Street &lt;&amp;&gt;" in page
    assert "Street <&>" not in page
    assert "no pixel of 1 class" in page
    last_tick = re.search(r'<text x="([0-9.]+)"[^>]*>100 %</text>', page)
    assert last_tick is not None
    assert float(last_tick[1]) + 20 < 720  # half of its text, within the picture
    with Image.open(tmp_path / "out/confusion_matrix.png") as picture:
        assert min(picture.size) > 500
