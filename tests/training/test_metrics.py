"""The metrics of a validation, against slow, obviously right computations."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ingest.labels.class_list import UNKNOWN_CLASS
from training.validation import intervals
from training.validation.frame_cells import FrameCells, cells_of
from training.validation.intervals import (
    class_sums,
    confusion_intervals,
    difference_intervals,
    metric_intervals,
    part_intervals,
    score_intervals,
)
from training.validation.metrics import object_sizes
from training.validation.metrics.boundary import BoundaryIou, near_outline
from training.validation.metrics.calibration import BINS, Calibration
from training.validation.metrics.confusion import Confusion
from training.validation.metrics.metric import ScoredFrame
from training.validation.metrics.object_sizes import BORDERS_PX, ObjectSizes
from training.validation.metrics.table import METRICS
from training.validation.scene_sums import as_table, of_table, sums_of
from training.validation.scores import (
    confusion_matrix,
    frequency_weighted_iou,
    iou,
    mean_iou,
    pixel_accuracy,
)
from training.validation.slices import Slices

CLASSES = 4


def drawn(seed: int, shape: tuple[int, int] = (30, 40)) -> ScoredFrame:
    """A frame of areas, mostly predicted right; class 3 has no truth, and is predicted."""
    random = np.random.default_rng(seed)
    coarse = random.integers(0, 3, (6, 8), dtype=np.uint8)
    truth = np.repeat(np.repeat(coarse, shape[0] // 6, 0), shape[1] // 8, 1)
    prediction = np.roll(truth, 1, axis=1)
    prediction[random.random(truth.shape) < 0.1] = 3
    truth[random.random(truth.shape) < 0.05] = UNKNOWN_CLASS
    confidence = random.random(truth.shape, np.float32)
    confidence[0, :3] = 0, 1, 1 / BINS
    matrix, _ = confusion_matrix(truth, prediction, CLASSES)
    # Class 1 has two numbered colours, 1 and 4; class 2 has one, 2.
    colours = np.where((truth == 1) & (random.random(truth.shape) < 0.3), 4, truth).astype(np.uint8)
    numbered = np.full(256, UNKNOWN_CLASS, np.uint8)
    numbered[[1, 4, 2]] = 1, 1, 2
    entropy, margin, changed = random.random(3).tolist()
    ids = prediction.astype(np.int64)
    return ScoredFrame(
        truth,
        prediction,
        matrix,
        truth,
        ids,
        confidence,
        entropy,
        margin,
        changed,
        colours,
        numbered,
    )


@pytest.mark.parametrize("borders", [(1, 4, 20), BORDERS_PX])
def test_objects_by_flooding_each(
    borders: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proves objects, those found, their pixels and the right ones, over two frames."""
    monkeypatch.setattr(object_sizes, "BORDERS_PX", borders)
    metric = ObjectSizes.empty(CLASSES)
    sums = np.zeros((4, CLASSES, 4), np.int64)
    for frame in (drawn(8), drawn(9)):
        metric.update(frame)
        assert frame.colours is not None
        left = {at for at in product(range(30), range(40)) if frame.colours[at] in (1, 2, 4)}
        while left:
            edge = [left.pop()]
            colour, pixels, right = frame.colours[edge[0]], 0, 0
            while edge:
                y, x = edge.pop()
                pixels += 1
                right += int(frame.truth[y, x] == frame.prediction[y, x])
                for at in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                    if at in left and frame.colours[at] == colour:
                        left.remove(at)
                        edge.append(at)
            size = sum(pixels >= border for border in borders)
            sums[:, frame.numbered[colour], size] += 1, 2 * right >= pixels, pixels, right
    assert (metric.state()["sums"] == sums).all()
    rows = metric.result()["per_class"][1]
    assert sum(row["objects"] for row in rows) == sums[0, 1].sum() > 10
    assert metric.result()["per_class"][0] == []


def test_shares_of_frames() -> None:
    """Proves mean and spread of entropy, margin and disagreement; None is left out."""
    frames = [drawn(seed) for seed in range(7)]
    for name in ("uncertainty", "margin", "disagreement"):
        metric = METRICS[{"uncertainty": "entropy", "margin": "margins"}.get(name, name)].empty(4)
        values = [getattr(frame, name) for frame in frames]
        for frame in frames:
            metric.update(frame)
        result = metric.result()
        assert result["mean"] == pytest.approx(np.mean(values), abs=1e-7)
        assert result["frames"] == np.histogram(values, 20, (0, 1))[0].tolist()
    nothing = METRICS["disagreement"].empty(4)
    nothing.update(replace(frames[0], disagreement=None))
    assert nothing.result()["mean"] is None
    full = METRICS["entropy"].empty(4)
    full.update(replace(frames[0], uncertainty=1.0))
    assert full.result() == {"mean": 1.0, "frames": [0] * 19 + [1]}


def test_calibration_pixel_by_pixel() -> None:
    """Proves bins, their means and the expected error, over two frames."""
    frames = [drawn(1), drawn(2)]
    metric = Calibration.empty(CLASSES)
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for frame in frames:
        metric.update(frame)
        for at in product(range(30), range(40)):
            if frame.truth[at] == UNKNOWN_CLASS:
                continue
            assert frame.confidence is not None
            confidence = float(frame.confidence[at])
            edges = [n for n in range(BINS) if n / BINS < confidence <= (n + 1) / BINS]
            right = bool(frame.truth[at] == frame.prediction[at])
            bins[edges[0] if edges else 0].append((confidence, right))
    result = metric.result()
    total = sum(len(pixels) for pixels in bins)
    error = 0.0
    for row, pixels in zip(result["bins"], bins, strict=True):
        assert row["pixels"] == len(pixels)
        mean = sum(confidence for confidence, _ in pixels) / len(pixels)
        share = sum(right for _, right in pixels) / len(pixels)
        assert row["confidence"] == pytest.approx(mean, abs=1e-7)
        assert row["accuracy"] == share
        error += len(pixels) / total * abs(mean - share)
    assert result["ece"] == pytest.approx(error, abs=1e-7)


@pytest.mark.parametrize("distance", [1, 2, 5, 50])
def test_near_an_outline_is_a_square_with_another_class(distance: int) -> None:
    """Proves which pixels are near an outline, by looking at the square around each."""
    ids = drawn(3, (18, 24)).truth
    near = near_outline(ids, distance)
    for y, x in product(range(ids.shape[0]), range(ids.shape[1])):
        leaves = min(y, x, ids.shape[0] - 1 - y, ids.shape[1] - 1 - x) < distance
        square = ids[
            max(0, y - distance) : y + distance + 1, max(0, x - distance) : x + distance + 1
        ]
        assert near[y, x] == (leaves or (square != ids[y, x]).any())


def test_boundary_iou_of_each_class() -> None:
    """Proves Boundary IoU by the two sets of pixels near a class's outlines, over two frames."""
    metric = BoundaryIou.empty(CLASSES)
    both, either = np.zeros(CLASSES), np.zeros(CLASSES)
    for frame in (drawn(4), drawn(5)):
        metric.update(frame)
        known = frame.truth != UNKNOWN_CLASS
        for c in range(CLASSES):  # 2 % of the diagonal of 30 x 40 is one pixel
            truth = (frame.truth == c) & near_outline(frame.truth, 1) & known
            prediction = (frame.prediction == c) & near_outline(frame.prediction, 1) & known
            both[c] += (truth & prediction).sum()
            either[c] += (truth | prediction).sum()
    result = metric.result()
    assert result["per_class"] == pytest.approx((both / either).tolist())
    assert result["per_class"][3] == 0
    assert result["mean"] == pytest.approx((both / either)[:3].mean())


@pytest.mark.parametrize("name", METRICS)
def test_no_order_and_no_sharding_changes_a_digit(name: str) -> None:
    """Proves a metric stored and merged in any parts and order is that of all frames."""
    frames = [drawn(seed) for seed in range(6)]
    whole = METRICS[name].empty(CLASSES)
    for frame in frames:
        whole.update(frame)
    merged = METRICS[name].empty(CLASSES)
    added = {key: np.zeros_like(array) for key, array in merged.state().items()}
    for part in (frames[4:], frames[:1], [], frames[3:0:-1]):
        shard = METRICS[name].empty(CLASSES)
        for frame in part:
            shard.update(frame)
        merged.merge(METRICS[name].from_state(shard.state(), CLASSES))
        added = {key: array + shard.state()[key] for key, array in added.items()}
    assert merged.result() == whole.result()
    assert METRICS[name].from_state(added, CLASSES).result() == whole.result()
    bad = {key: array[:-1] for key, array in whole.state().items()}
    with pytest.raises(ValueError, match="expected"):
        METRICS[name].from_state(bad, CLASSES)
    assert METRICS[name].empty(CLASSES).result()


def test_a_class_without_truth_is_not_averaged_in() -> None:
    """Proves mean IoU leaves out a class that is only predicted, and counts it as wrong."""
    matrix = drawn(7).matrix
    assert not matrix[3].any()
    assert matrix[:, 3].any()
    assert mean_iou(matrix) == pytest.approx(iou(matrix)[:3].mean())
    truth = matrix.sum(axis=1)
    weighted = (iou(matrix)[:3] * truth[:3]).sum() / truth.sum()
    assert frequency_weighted_iou(matrix) == pytest.approx(weighted)


def test_cells_add_up_to_the_matrices_of_groups() -> None:
    """Proves what is kept of each frame is its whole matrix."""
    matrices = [drawn(seed).matrix for seed in range(5)]
    matrices.insert(2, np.zeros((CLASSES, CLASSES), np.int64))
    cells = FrameCells.of([cells_of(matrix) for matrix in matrices])
    group = np.array([1, 0, 1, 2, 2, 1])
    sums = np.zeros((3, CLASSES**2), np.int64)
    cells.add_to(sums, group)
    for n in range(3):
        of_group = sum(m for m, g in zip(matrices, group, strict=True) if g == n)
        assert (sums[n].reshape(CLASSES, CLASSES) == of_group).all()
    of_classes = cells.class_sums(group, 3, CLASSES)
    assert (of_classes == class_sums(sums.reshape(3, CLASSES, CLASSES))).all()


def test_intervals_are_over_scenes() -> None:
    """Proves equal scenes give no width, unequal ones a wide one, and one scene none."""
    good, bad = np.diag([900, 90, 10, 0]), np.zeros((CLASSES, CLASSES), np.int64)
    bad[:, 0] = 500, 300, 0, 0
    equal = score_intervals({f"s{n}": good for n in range(5)}, CLASSES)
    assert equal["miou"] == (1, 1)
    assert equal["iou"][:3] == [(1, 1)] * 3
    assert equal["iou"][3] is None
    mixed = score_intervals({"a": good, "b": bad, "c": good, "d": bad}, CLASSES)
    low, high = mixed["pixel_accuracy"]
    whole = pixel_accuracy(2 * (good + bad))
    assert low < whole < high
    assert (low, high) == score_intervals({"a": good, "b": bad, "c": good, "d": bad}, CLASSES)[
        "pixel_accuracy"
    ]
    # Drawn one by one, as the words say.
    random = np.random.default_rng(0)
    scenes = [good, bad, good, bad]
    slow = [pixel_accuracy(sum(scenes[n] for n in random.integers(0, 4, 4))) for _ in range(4000)]
    assert (low, high) == pytest.approx(np.percentile(slow, (2.5, 97.5)), abs=0.03)
    assert score_intervals({"a": good}, CLASSES)["miou"] is None
    assert (
        score_intervals({"a": good, "b": np.zeros_like(good)}, CLASSES)["iou"] == [None] * CLASSES
    )
    assert score_intervals({}, CLASSES)["scenes"] == 0


def test_intervals_of_two_scenes_reach_from_one_to_the_other() -> None:
    """Worked by hand: a quarter of the draws is one scene twice, and a quarter is the other one.

    Class 1 has truth in the second scene alone, so that its IoU of both is in the first one's mean.
    """
    first, second = np.array([[8, 2], [0, 0]]), np.array([[4, 0], [3, 3]])
    sums = class_sums(np.array([first, second]))
    assert sums.tolist() == [[[8, 0], [10, 0], [8, 2]], [[4, 3], [4, 6], [7, 3]]]
    part = part_intervals(sums)
    of_first, of_second = (8 / 10 + 3 / 8) / 2, (4 / 7 + 3 / 6) / 2
    assert part["scenes"] == 2
    assert part["miou"] == pytest.approx((of_second, of_first))
    assert part["pixel_accuracy"] == (7 / 10, 8 / 10)
    assert part_intervals(sums[:1]) == {"scenes": 1, "miou": None, "pixel_accuracy": None}
    assert part_intervals(sums * 0)["miou"] is None


def test_every_score_of_two_scenes_reaches_from_one_to_the_other() -> None:
    """Worked by hand; class 1 has truth in the second scene alone, and so no interval of its own.

    Always saying class 0, which most pixels are, is right in 10 of 10 and in 4 of 10.
    """
    first, second = np.array([[8, 2], [0, 0]]), np.array([[4, 0], [3, 3]])
    scenes = {"a": first, "b": second}
    got = score_intervals(scenes, 2)
    assert (got["scenes"], got["draws"]) == (2, 1000)
    assert got["recall"] == [(8 / 10, 4 / 4), None]
    assert got["precision"] == [(4 / 7, 8 / 8), None]
    assert got["iou"] == [(4 / 7, 8 / 10), None]
    of_second = (4 * 4 / 7 + 6 * 3 / 6) / 10
    assert got["frequency_weighted_iou"] == pytest.approx((of_second, 8 / 10))
    assert got["baseline_pixel_accuracy"] == (4 / 10, 1)
    assert got["baseline_miou"] == (2 / 10, 1 / 2)
    assert got["share_correlation"] is None
    cells = np.array([[0, 1], [1, 0]])
    assert confusion_intervals(scenes, cells) == [(0 / 4, 2 / 10), None]
    assert confusion_intervals({"a": first}, cells) == [None, None]
    one = score_intervals({"a": first}, 2)
    assert (one.pop("scenes"), one.pop("draws")) == (1, 0)
    assert {name: value for name, value in one.items() if value is not None} == {
        name: [None, None] for name in ("iou", "recall", "precision")
    }


def test_three_classes_have_a_correlation_with_their_share() -> None:
    """In one scene the larger classes score better, in the other one the smaller."""
    with_share, against = np.diag([90, 40, 10]), np.diag([90, 40, 10])
    with_share[1], with_share[2] = (10, 30, 0), (0, 8, 2)
    against[0], against[1] = (20, 70, 0), (10, 30, 0)
    got = score_intervals({"a": with_share, "b": against}, 3)["share_correlation"]
    assert got == pytest.approx((-1, 1))


def test_metrics_of_two_scenes_reach_from_one_to_the_other() -> None:
    """Worked by hand, as what a shard's file keeps; a scene without objects leaves them without."""

    def of_scene(**states: dict[str, Any]) -> Any:
        metrics = {name: metric.empty(2) for name, metric in METRICS.items()}
        for name, state in states.items():
            arrays = {key: np.array(value) for key, value in state.items()}
            metrics[name] = METRICS[name].from_state(arrays, 2)
        return sums_of(metrics)

    def bins(pixels: int, right: int, probability: float) -> dict[str, Any]:
        units = round(probability * 2**24)
        return {key: [value] + [0] * (BINS - 1) for key, value in
                (("pixels", pixels), ("right", right), ("probability", units))}  # fmt: skip

    def shares(frames: int, share: float) -> dict[str, Any]:
        return {"frames": [frames] + [0] * 19, "units": [round(frames * share * 2**24)]}

    sizes = np.zeros((4, 2, 4), np.int64)
    sizes[:, 1, 2] = 4, 1, 100, 60
    sums = {
        "a": of_scene(
            boundary_iou={"both": [3, 0], "truth": [4, 0], "prediction": [5, 0]},
            calibration=bins(10, 8, 5.0), entropy=shares(2, 0.25), margins=shares(2, 0.5),
            object_sizes={"sums": sizes},
        ),
        "b": of_scene(
            boundary_iou={"both": [2, 1], "truth": [4, 2], "prediction": [2, 3]},
            calibration=bins(10, 4, 5.0), entropy=shares(2, 0.75), margins=shares(4, 0.125),
        ),
    }  # fmt: skip
    stored = of_table(as_table(sums), 2)
    assert {scene: its.tolist() for scene, its in stored.items()} == {
        scene: its.tolist() for scene, its in sums.items()
    }
    got = metric_intervals(stored, ["a", "b"], 2)
    assert got["boundary_iou"]["per_class"] == [(2 / 4, 3 / 6), None]
    # Class 1 keeps its score of both scenes, 1 / 4, in the first one's mean.
    assert got["boundary_iou"]["mean"] == pytest.approx(((2 / 4 + 1 / 4) / 2, (1 / 2 + 1 / 4) / 2))
    # Both scenes twice: |5 - 12 / 2| / 10 of the mixed draw is less than either.
    assert got["calibration"]["ece"] == pytest.approx((2 / 20, 3 / 10))
    assert got["calibration"]["accuracy"][0] == (4 / 10, 8 / 10)
    assert got["calibration"]["accuracy"][1] is None
    assert got["entropy"]["mean"] == (0.25, 0.75)
    assert got["margins"]["mean"] == (0.125, 0.5)
    assert got["disagreement"]["mean"] is None
    assert got["object_sizes"]["found"] == [None] * 4
    both = metric_intervals({"a": sums["a"], "b": sums["a"]}, ["a", "b"], 2)["object_sizes"]
    assert both["found"] == [None, None, (0.25, 0.25), None]
    assert both["class_recall"] == [[None] * 4, [None, None, (0.6, 0.6), None]]
    with pytest.raises(ValueError, match="of no metric"):
        of_table(as_table(sums), 1)


def test_a_part_has_the_intervals_of_its_scenes_alone() -> None:
    """Of each camera what a validation of its frames alone has, whatever the shards; a scene none.

    And of draws that are added up one by one the same.
    """
    random = np.random.default_rng(5)
    frames = [(f"s{n % 6}", "front" if n % 6 < 4 else "rear", drawn(n).matrix) for n in range(30)]
    frames += [("s0", "rear", drawn(40).matrix), ("s7", "side", drawn(41).matrix)]
    for shards in (1, 3):
        camera, scene = Slices("camera", "abcd"), Slices("scene", "abcd")
        for shard in range(shards):
            rows = frames[shard::shards]
            cells = FrameCells.of([cells_of(matrix) for _, _, matrix in rows])
            names = {"scene": [row[0] for row in rows], "camera": [row[1] for row in rows]}
            camera.add(pa.table(names), cells)
            scene.add(pa.table(names), cells)
        parts = {row["value"]: row for row in camera.result()}
        assert {row["miou_interval"] for row in scene.result()} == {None}
        of_scenes: dict[str, dict[str, Any]] = {"front": {}, "rear": {}, "side": {}}
        for name, value, matrix in frames:
            of_scenes[value][name] = of_scenes[value].get(name, 0) + matrix
        for value, matrices in of_scenes.items():
            whole = score_intervals(matrices, CLASSES)
            for score in ("miou", "pixel_accuracy"):
                assert parts[value][f"{score}_interval"] == whole[score]
            assert parts[value]["scenes"] == len(matrices)
    assert parts["side"]["miou_interval"] is None
    low, high = parts["rear"]["miou_interval"]
    assert low < parts["rear"]["miou"] < high
    rear = [*of_scenes["rear"].values()]
    slow = [mean_iou(sum(rear[n] for n in random.integers(0, 3, 3))) for _ in range(2000)]
    assert (low, high) == pytest.approx(np.percentile(slow, (2.5, 97.5)), abs=0.005)


def test_a_class_that_a_draw_lacks_has_its_score_of_all_scenes_there() -> None:
    """Proves a rare class that is scored badly holds the mean down where it is not drawn, too."""
    common, rare = np.diag([1000, 0]), np.diag([1000, 10])
    rare[1, 1], rare[1, 0] = 1, 9
    scenes = {"common": common, "rare": rare}
    low, high = score_intervals(scenes, 2)["miou"]
    assert low < mean_iou(common + rare) <= high < 0.56


def test_a_class_has_an_interval_by_its_truth() -> None:
    """Proves two scenes with truth are enough, and three in which it was only predicted are not."""
    scenes = {
        "a": np.array([[9, 1, 0], [0, 0, 0], [0, 0, 4]]),
        "b": np.array([[8, 1, 0], [0, 5, 0], [0, 0, 0]]),
        "c": np.array([[7, 1, 0], [0, 0, 0], [1, 0, 4]]),
    }
    known = [interval is not None for interval in score_intervals(scenes, 3)["iou"]]
    assert known == [True, False, True]


def test_an_interval_leaves_out_a_fortieth_at_each_end() -> None:
    """Proves it is of 95 %, and that draws without a score play no part."""
    draws = np.arange(1001.0)
    assert intervals._interval(draws) == (25, 975)
    assert intervals._interval(np.append(draws, [np.nan] * 500)) == (25, 975)
    assert intervals._interval(np.array([np.nan])) is None


def test_frames_have_a_class_by_their_truth() -> None:
    """Proves a class that was only predicted, in the second frame of three, is in no frame."""
    metric = Confusion.empty(3)
    for matrix in ([[4, 0, 0], [0, 0, 0], [0, 1, 3]], [[5, 2, 0]] + [[0] * 3] * 2, [[0] * 3] * 3):
        one = drawn(0)
        metric.update(replace(one, matrix=np.array(matrix, np.int64)))
    assert metric.frames_with_class.tolist() == [2, 0, 1]


def test_intervals_of_differences_are_paired() -> None:
    """Proves a small loss in every scene is found, where the scores themselves vary far more.

    And that equal models differ by nothing, and one scene has no interval.
    """
    random = np.random.default_rng(3)
    ours, theirs = {}, {}
    for n in range(12):
        right = int(random.integers(100, 900))
        theirs[f"s{n}"] = np.array([[right, 1000 - right], [10, 500]])
        ours[f"s{n}"] = np.array([[right - 20, 1020 - right], [10, 500]])
    apart = difference_intervals(ours, theirs, 2)
    low, high = apart["miou"]
    assert low < high < 0
    own = score_intervals(ours, 2)["miou"]
    assert high - low < (own[1] - own[0]) / 5
    assert apart["iou"][0][1] < 0
    assert difference_intervals(ours, ours, 2)["miou"] == (0, 0)
    assert (apart["scenes"], apart["draws"]) == (12, 1000)
    # Drawn one by one, as the words say.
    slow = []
    for _ in range(2000):
        drawn_scenes = [f"s{n}" for n in random.integers(0, 12, 12)]
        its, others = (
            np.sum([of[scene] for scene in drawn_scenes], axis=0) for of in (ours, theirs)
        )
        slow.append(mean_iou(its) - mean_iou(others))
    assert (low, high) == pytest.approx(np.percentile(slow, (2.5, 97.5)), rel=0.2)
    one = difference_intervals({"a": ours["s0"]}, {"a": theirs["s0"]}, 2)
    assert (one["miou"], one["draws"]) == (None, 0)
