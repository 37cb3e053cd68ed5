"""Real validations: sharded, compared with what can be seen in the predicted pictures."""

import hashlib
import io
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from safetensors.numpy import load, save

from catalog.errors import InvalidInput
from ingest.labels.class_list import UNKNOWN_CLASS, ClassList
from ingest.labels.label_image import decode_label
from pipeline.manifest import Manifest
from pipeline.runs.checkpoint_steps import checkpoint_steps
from pipeline.runs.prediction_set import PREDICTIONS_FILE, PredictionSet
from pipeline.runs.small_predictions import small_predictions
from tests.training.commands import (
    NETWORK,
    ONE_THREAD,
    TINY,
    Ended,
    run_several,
    run_several_importing,
    run_tensorflow,
)
from tests.training.drawn_frames import (
    CLASS_LIST,
    draw_frames,
    every_fourth,
    write_manifest,
)
from training import merge_predictions
from training.input.trained_frames import scenes_trained_on
from training.merge_scores import merge
from training.network.about_model import AboutModel
from training.validation.shard_file import open_shard, read_shard, shard_path

pytestmark = pytest.mark.training

FRAMES = 3
SHARDINGS = (1, 2, 3, 5)


@pytest.fixture(scope="module")
def validated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a manifest, a model, a validation in each of SHARDINGS, and predictions.

    All in one process: it proves on the way that a process may run one after another.
    """
    root = tmp_path_factory.mktemp("validated")
    files = draw_frames(root, 4 * FRAMES, unknown=True)
    write_manifest(root / "manifest", root, every_fourth(files))
    base = ["--manifest", str(root / "manifest"), "--model_dir", str(root / "model")]
    base += [*ONE_THREAD, *NETWORK]
    train = ["--exec_mode", "train", *base, *TINY, "--max_steps", "15", "--batch_size", "2"]
    train += ["--checkpoint_every", "5", "--keep_checkpoints", "2"]
    runs: list[Sequence[str]] = [train]
    for shards in SHARDINGS:
        for shard in range(shards):
            where = ["--results_dir", str(root / f"in-{shards}")]
            shard_options = ["--shard", str(shard), "--shards", str(shards)]
            runs.append(["--exec_mode", "evaluate", *base, *where, *shard_options])
    other = ["--model_dir", str(root / "other"), "--height", "32", "--width", "48"]
    runs.append([*train, *other, "--max_steps", "3"])
    for shard in range(2):
        where = ["--results_dir", str(root / "in-beside"), "--compare_dir", str(root / "other")]
        where += ["--compare_network", NETWORK[1]]
        where += ["--augment_test", "mirror"]
        parts = ["--shard", str(shard), "--shards", "2"]
        runs.append(["--exec_mode", "evaluate", *base, *where, *parts])
    where = ["--results_dir", str(root / "in-other"), "--shards", "1"]
    runs.append(["--exec_mode", "evaluate", *base, *other[:2], *where])
    runs.append(["--exec_mode", "predict", *base, "--results_dir", str(root / "predicted")])
    without_labels(root)
    predict = ["--exec_mode", "predict", "--manifest", str(root / "unlabelled"), *base[2:]]
    for shard in (0, 1, 1):  # the last time it is there already
        parts = ["--shard", str(shard), "--shards", "2"]
        runs.append([*predict, "--results_dir", str(root / "guessed"), *parts])
    ended = run_several(*runs)
    for one in ended:
        assert one.status == 0, one.err
    assert "is there already" in ended[-1].out
    return root


def without_labels(root: Path) -> None:
    """The same frames as ``unlabelled``, as if nobody had labelled them."""
    manifest = Manifest.read(root / "manifest")
    frames = manifest.frames
    for name in ("label", "label_source", "label_size", "class_pixels"):
        nulls = pa.nulls(len(frames), frames.schema.field(name).type)
        frames = frames.set_column(frames.schema.get_field_index(name), name, nulls)
    Manifest(manifest.header, frames).write(root / "unlabelled")


def report(root: Path, shards: int) -> dict[str, Any]:
    """The merged report of a validation in so many shards."""
    return merge(root / f"in-{shards}", shards, root / f"out-{shards}")


@pytest.mark.parametrize("shards", SHARDINGS)
def test_small_copies_are_what_is_predicted(validated: Path, shards: int) -> None:
    """Proves them the predicted PNGs' classes in any sharding; the compared model keeps none."""
    report(validated, shards)
    frames = Manifest.read(validated / "manifest").split("validation").frames.to_pylist()
    places = small_predictions(validated / f"out-{shards}", [row["fkey"] for row in frames])
    assert len(places) == len(frames) == FRAMES
    for row in frames:
        place = places[row["fkey"]]
        content = (validated / f"in-{shards}" / place.file).read_bytes()
        copy = Image.open(io.BytesIO(content[place.offset : place.offset + place.size]))
        whole = Image.open(validated / "predicted" / row["label"])
        assert (np.asarray(copy) == np.asarray(whole)).all()
        assert copy.convert("RGB").tobytes() == whole.convert("RGB").tobytes()
    compared = [open_shard(shard_path(validated / "in-beside/compared", n, 2))[0] for n in (0, 1)]
    assert [one.keeps_small for one in compared] == [False, False]


@pytest.mark.parametrize("shards", SHARDINGS[1:])
def test_shards_add_up_exactly(validated: Path, shards: int) -> None:
    """Proves any number of shards gives the unsharded matrix and scores, to the last digit."""
    whole, parts = report(validated, 1), report(validated, shards)
    assert parts["confusion_matrix"] == whole["confusion_matrix"]
    assert (whole["shards"], parts["shards"]) == (1, shards)
    assert {**parts, "shards": 1} == whole
    tables = [pq.read_table(validated / f"out-{n}" / "frame_scores.parquet") for n in (1, shards)]
    assert tables[0].equals(tables[1])


def test_two_models_on_the_same_frames(validated: Path) -> None:
    """Proves each model's results are those of its own validation, whatever its input size."""
    whole = report(validated, 1)
    made = merge(validated / "in-beside", 2, validated / "out-beside", compares=True)
    assert made["confusion_matrix"] == whole["confusion_matrix"]
    alone = merge(validated / "in-other", 1, validated / "out-other")
    comparison = made["comparison"]
    assert comparison["model"] == alone["model"]
    assert comparison["scores"][0]["other"] == alone["miou"]
    assert comparison["scores"][0]["difference"] == made["miou"] - alone["miou"]
    assert 0 < made["disagreement"]["mean"] < 1
    changed = {"comparison": None, "shards": 1, "disagreement": whole["disagreement"]}
    ours, theirs = made["warnings"]
    assert theirs.startswith("the model compared with was trained on other frames")
    assert {**made, **changed, "warnings": [ours]} == whole
    (sizes,) = [row["object_sizes"] for row in made["per_class"] if row["class"] == "Car"]
    assert sum(row["pixels"] for row in sizes) == made["per_class"][2]["truth_pixels"] > 0
    scores = pq.read_table(validated / "out-beside/frame_scores.parquet")["disagreement"]
    assert np.mean(scores.to_pylist()) == pytest.approx(made["disagreement"]["mean"], abs=1e-6)


def test_a_network_and_predictions_on_the_same_frames(validated: Path) -> None:
    """Proves either compared with the other: each has the results of its own validation."""
    root, whole = validated, report(validated, 1)
    classes, place = ClassList.from_colours(CLASS_LIST), root / "drawn-predictions"
    for row in Manifest.read(root / "manifest").split("validation").frames.to_pylist():
        ids = decode_label((root / row["label"]).read_bytes(), classes)
        path = place / row["image"]
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.where(ids == UNKNOWN_CLASS, 0, ids).astype(np.uint8)).save(path)
    folder = root / "given" / "torch-1"
    folder.mkdir(parents=True)
    given = PredictionSet(model="torch-1", place=str(place), classes=classes.classes)
    (folder / PREDICTIONS_FILE).write_text(json.dumps(given.as_json()))
    manifest = ["--manifest", str(root / "manifest")]
    matched = run_tensorflow(
        "-m", "training.match_predictions", "--predictions_dir", folder, *manifest
    )
    assert matched.status == 0, matched.err
    base = ["--exec_mode", "evaluate", *manifest, *ONE_THREAD, "--shards", "1"]
    network, predictions = str(root / "model"), str(folder)
    runs: list[Sequence[str | Path]] = [
        [*base, "--model_dir", network, "--compare_dir", predictions, "--results_dir",
         root / "net", *NETWORK],
        [*base, "--model_dir", predictions, "--compare_dir", network, "--results_dir",
         root / "given-net", "--compare_network", NETWORK[1]],
    ]  # fmt: skip
    ended = run_several(*runs)
    assert [one.status for one in ended] == [0, 0], [one.err for one in ended]
    of_network = merge(root / "net", 1, root / "out-net", compares=True)
    of_given = merge(root / "given-net", 1, root / "out-given-net", compares=True)
    for one, other in ((of_network, of_given), (of_given, of_network)):
        comparison = one["comparison"]
        assert comparison["model"]["name"] == other["model"]["name"]
        assert comparison["scores"][0]["other"] == other["miou"]
    assert of_network["confusion_matrix"] == whole["confusion_matrix"]
    assert (of_given["miou"], of_given["uncertainty"]) == (1, None)
    assert of_network["uncertainty"] == whole["uncertainty"] is not None


def test_a_checkpoint_is_a_model(validated: Path, tmp_path: Path) -> None:
    """Proves the last checkpoint's is the finished model, byte by byte, and an earlier one is not.

    And that one that is there already is left, and one that is gone is named.
    """
    model = validated / "model"
    assert list(checkpoint_steps(model)) == [10, 15]

    def export(step: int) -> Ended:
        flags: list[str | Path] = [
            "--model_dir",
            model,
            "--step",
            str(step),
            "--out",
            tmp_path / str(step),
            *NETWORK,
        ]
        return run_tensorflow("-m", "training.export_checkpoint", *flags)

    for step in (10, 15):
        assert export(step).status == 0
        (weights,) = (tmp_path / str(step)).glob("*.safetensors")
        same = weights.read_bytes() == (model / "model.safetensors").read_bytes()
        assert same == (step == 15)
        assert scenes_trained_on(tmp_path / str(step)) == scenes_trained_on(model)
    finished, exported = AboutModel.read(model), AboutModel.read(tmp_path / "15")
    assert asdict(exported) == asdict(finished)
    assert AboutModel.read(tmp_path / "10").step == 10
    assert "is there already" in export(10).out
    assert "no checkpoint named" in export(5).error


def test_the_best_model_is_copied(validated: Path, tmp_path: Path) -> None:
    """Proves the copy is that model, stays when the run has a better one, and needs its weights."""
    best, out = tmp_path / "model" / "best", tmp_path / "out"
    shutil.copytree(validated / "model", best)

    def export(to: Path) -> Ended:
        flags: list[str | Path] = ["--model_dir", tmp_path / "model", "--best", "--out", to]
        return run_tensorflow("-m", "training.export_checkpoint", *flags)

    assert export(out).status == 0
    for name in ("model.json", "model.safetensors", "trained_scenes.json"):
        assert (out / name).read_bytes() == (best / name).read_bytes()
    assert "is there already" in export(out).out
    (best / "model.safetensors").write_bytes(b"of a better one")
    assert "does not belong to the weights beside it" in export(tmp_path / "other").error
    assert not (tmp_path / "other" / "model.json").exists()


def test_an_empty_shard_is_zeros(validated: Path) -> None:
    """Proves a shard without frames writes a result all the same."""
    empty = read_shard(shard_path(validated / "in-5", 4, 5))
    assert not empty.frames
    assert not empty.confusion.matrix.any()


def test_matrix_is_what_the_pictures_show(validated: Path) -> None:
    """Proves the matrix, pixel by pixel at full size, against the predicted PNGs and the labels.

    Pixels of no class are in no row, and are counted.
    """
    palette = ClassList.from_colours(CLASS_LIST)
    frames = Manifest.read(validated / "manifest").split("validation")
    slow = np.zeros((4, 4), np.int64)
    unknown = 0
    for label in frames.frames["label"].to_pylist():
        truth = decode_label((validated / label).read_bytes(), palette)
        guess = decode_label((validated / "predicted" / label).read_bytes(), palette)
        assert truth.shape == guess.shape == (64, 96)
        for t, p in zip(truth.ravel().tolist(), guess.ravel().tolist(), strict=True):
            if t == UNKNOWN_CLASS:
                unknown += 1
            else:
                slow[t, p] += 1
    merged = report(validated, 1)
    assert merged["confusion_matrix"] == slow.tolist()
    assert merged["ignored_pixels"] == unknown > 0
    assert merged["absent_classes"] == ["Bicycle"]


def test_a_prediction_of_frames_without_labels(validated: Path) -> None:
    """Proves pictures and scores are those of the same frames with labels, in any shards."""
    report(validated, 1)
    assert merge_predictions.merge(validated / "guessed", 2, validated / "guesses") == FRAMES
    rows = pq.read_table(validated / "guesses/frame_scores.parquet").to_pylist()
    scored = pq.read_table(validated / "out-1/frame_scores.parquet").to_pylist()
    frames = Manifest.read(validated / "manifest").split("validation").frames
    assert [row["fkey"] for row in rows] == frames["fkey"].to_pylist()
    for row, other, label in zip(rows, scored, frames["label"].to_pylist(), strict=True):
        for name in ("uncertainty", "margin"):
            assert row[name] == other[name]
        picture = (validated / "guessed" / row["picture"]).read_bytes()
        assert picture == (validated / "predicted" / label).read_bytes()
        ids = decode_label(picture, ClassList.from_colours(CLASS_LIST))
        counted = np.bincount(ids.ravel(), minlength=4).tolist()
        assert [row[tag] for tag in ("sky", "rd_normal_street", "car", "bicycle")] == counted
    metrics = json.loads((validated / "guesses/metrics.json").read_text())
    assert metrics["predicted_pixels"]["car"] == sum(row["car"] for row in rows)
    assert metrics["model"]["name"] == validated.name
    with pytest.raises(InvalidInput, match="--shard 0 --shards 3"):
        merge_predictions.merge(validated / "guessed", 3, validated / "guesses")


def test_frame_scores_are_of_each_frame(validated: Path) -> None:
    """Proves the per-frame scores are there for every frame, and fit the matrix."""
    merged = report(validated, 2)
    table = pq.read_table(validated / "out-2" / "frame_scores.parquet").to_pydict()
    assert table["fkey"] == [f"validation-{number:03d}" for number in range(FRAMES)]
    right = sum(a * n for a, n in zip(table["accuracy"], table["pixels"], strict=True))
    matrix = np.array(merged["confusion_matrix"])
    assert right == pytest.approx(np.trace(matrix))
    assert sum(table["pixels"]) == matrix.sum()
    worst = [row["miou"] for row in merged["worst_frames"]]
    assert worst == sorted(table["miou"])
    page = (validated / "out-2" / "report.html").read_text()
    # Of three frames each is among the worst and the most uncertain, with four pictures once.
    assert page.count("data:image/") == 1 + FRAMES * 4
    assert page.count("Its pictures stand above") == FRAMES
    assert "Where it comes from" in page
    assert all(loss > 0 for loss in table["loss"])
    assert all(0 < share < 1 for share in table["uncertainty"])


def test_refusals_and_what_evaluating_needs(validated: Path, tmp_path: Path) -> None:
    """Proves each expected failure of a validation is status 1 and one line naming the cause.

    And that a validation afterwards, with nothing but the model's two files, imports no Horovod;
    and that a shard that is there whole is not done again, and one that is damaged is.
    """
    (tmp_path / "empty").mkdir()
    copied = tmp_path / "copied"
    copied.mkdir()
    for name in ("model.safetensors", "model.json"):
        shutil.copy(validated / "model" / name, copied)
    mixed = tmp_path / "mixed"
    shutil.copytree(validated / "model", mixed)
    (mixed / "model.safetensors").write_bytes(b"other")
    files = draw_frames(tmp_path, 2)
    other_list = dict(list(CLASS_LIST.items())[:4])
    write_manifest(tmp_path / "other", tmp_path, {"validation": files}, other_list)
    write_manifest(tmp_path / "bad", tmp_path, {"validation": files})
    (tmp_path / files[1].image).write_bytes(b"no picture")
    write_manifest(tmp_path / "void", tmp_path, {"train": files, "validation": []})
    nan = tmp_path / "nan"
    shutil.copytree(copied, nan)
    arrays = load((nan / "model.safetensors").read_bytes())
    weights = save({name: np.full_like(array, np.nan) for name, array in arrays.items()})
    (nan / "model.safetensors").write_bytes(weights)
    described = json.loads((nan / "model.json").read_text())
    described["sha256"] = hashlib.sha256(weights).hexdigest()
    (nan / "model.json").write_text(json.dumps(described))
    results = tmp_path / "results"

    def evaluate(manifest: Path, model_dir: Path) -> list[str]:
        return [
            "--exec_mode", "evaluate", "--manifest", str(manifest), "--model_dir",
            str(model_dir), "--results_dir", str(results), *ONE_THREAD, *NETWORK,
        ]  # fmt: skip

    cases = [
        (evaluate(validated / "manifest", tmp_path / "empty"), "train one with"),
        (evaluate(validated / "manifest", mixed), "does not belong to the model.json"),
        (evaluate(tmp_path / "other", copied), "Bicycle"),
        (
            evaluate(tmp_path / "bad", copied),
            f"{files[1].image}: is neither a PNG nor a JPEG image",
        ),
        (evaluate(tmp_path / "void", copied), "split validation has no frames"),
        (evaluate(validated / "unlabelled", copied), "have no label, which training and"),
        (
            [*evaluate(validated / "manifest", nan), "--bad_frames", "skip"],
            "output is not finite (NaN or infinite logits) for frame validation-000",
        ),
    ]
    left_out = [*evaluate(tmp_path / "bad", copied), "--bad_frames", "skip"]
    left_out[left_out.index(str(results))] = str(tmp_path / "left-out")
    good = evaluate(validated / "manifest", copied)
    first_of_two = [*good, "--shards", "2"]
    cut = shard_path(results, 0, 2)
    cut.parent.mkdir()
    cut.write_bytes(b"PK of a copy that was cut")
    (*refused, skipping, done, redone, again), imported = run_several_importing(
        *(flags for flags, _ in cases), left_out, good, first_of_two, good
    )
    assert skipping.status == 0, skipping.err
    some = merge(tmp_path / "left-out", 1, tmp_path / "out", bad_frames="skip")
    assert (some["frames"], len(some["skipped_frames"])) == (1, 1)
    assert (
        f"{files[1].image}: is neither a PNG nor a JPEG image"
        in some["skipped_frames"][0]["reason"]
    )
    assert "Frames left out" in (tmp_path / "out/report.html").read_text()
    with pytest.raises(InvalidInput, match="1 of 2 frames cannot be read"):
        merge(tmp_path / "left-out", 1, tmp_path / "out")
    assert "shard 0 of 2 written" in redone.out
    assert "shard 0 of 1 is there already" in again.out
    assert read_shard(cut).frames
    for (flags, expected), one in zip(cases, refused, strict=True):
        assert one.status == 1, flags
        assert expected in one.error
    assert done.status == 0, done.err
    assert imported == ["tensorflow"]
    (again,), imported = run_several_importing(good)
    assert ("is there already" in again.out, imported) == (True, [])
    ours = read_shard(shard_path(results, 0, 1))
    original = read_shard(shard_path(validated / "in-1", 0, 1))
    assert ours.confusion.matrix.tolist() == original.confusion.matrix.tolist()
    assert ours.frames == original.frames
