"""Real validations: sharded, compared with what can be seen in the predicted pictures."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from ingest.labels.label_image import decode_label
from ingest.labels.palette import UNKNOWN_CLASS, Palette
from pipeline.manifest import Manifest
from tests.training.commands import TINY, run_several
from tests.training.drawn_frames import (
    CLASS_LIST,
    draw_frames,
    every_fourth,
    write_manifest,
)
from training.merge_scores import merge
from training.validation.shard_file import read_shard, shard_path

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
    base = ["--manifest", str(root / "manifest"), "--model_dir", str(root / "model"), *TINY]
    train = ["--exec_mode", "train", *base, "--max_steps", "15", "--batch_size", "2"]
    runs: list[Sequence[str]] = [train]
    for shards in SHARDINGS:
        for shard in range(shards):
            where = ["--results_dir", str(root / f"in-{shards}")]
            part = ["--shard", str(shard), "--shards", str(shards)]
            runs.append(["--exec_mode", "evaluate", *base, *where, *part])
    runs.append(["--exec_mode", "predict", *base, "--results_dir", str(root / "predicted")])
    ended, _ = run_several(*runs)
    for one in ended:
        assert one.status == 0, one.err
    return root


def report(root: Path, shards: int) -> dict[str, Any]:
    """The merged report of a validation in so many shards."""
    return merge(root / f"in-{shards}", shards, root / f"out-{shards}")


@pytest.mark.parametrize("shards", SHARDINGS[1:])
def test_shards_add_up_exactly(validated: Path, shards: int) -> None:
    """Proves any number of shards gives the unsharded matrix and scores, to the last digit."""
    whole, parts = report(validated, 1), report(validated, shards)
    assert parts["confusion_matrix"] == whole["confusion_matrix"]
    assert (whole["shards"], parts["shards"]) == (1, shards)
    assert {**parts, "shards": 1} == whole
    tables = [pq.read_table(validated / f"out-{n}" / "frame_scores.parquet") for n in (1, shards)]
    assert tables[0].equals(tables[1])


def test_an_empty_shard_is_zeros(validated: Path) -> None:
    """Proves a shard without frames writes a result all the same."""
    empty = read_shard(shard_path(validated / "in-5", 4, 5))
    assert not empty.frames
    assert not empty.matrix.any()


def test_matrix_is_what_the_pictures_show(validated: Path) -> None:
    """Proves the matrix, pixel by pixel at full size, against the predicted PNGs and the labels.

    Pixels of unknown colour are in no row, and are counted.
    """
    palette = Palette.from_class_list(CLASS_LIST)
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


def test_frame_scores_are_of_each_frame(validated: Path) -> None:
    """Proves the per-frame scores are there for every frame, and fit the matrix."""
    merged = report(validated, 2)
    table = pq.read_table(validated / "out-2" / "frame_scores.parquet").to_pydict()
    assert table["fkey"] == [f"validation-{number:03d}" for number in range(FRAMES)]
    right = sum(a * n for a, n in zip(table["accuracy"], table["pixels"], strict=True))
    matrix = np.array(merged["confusion_matrix"])
    assert right == pytest.approx(np.trace(matrix))
    assert sum(table["pixels"]) == matrix.sum()
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
    results = tmp_path / "results"

    def evaluate(manifest: Path, model_dir: Path) -> list[str]:
        return [
            "--exec_mode", "evaluate", "--manifest", str(manifest), "--model_dir",
            str(model_dir), "--results_dir", str(results), *TINY,
        ]  # fmt: skip

    cases = [
        (evaluate(validated / "manifest", tmp_path / "empty"), "train one with"),
        (evaluate(validated / "manifest", mixed), "does not belong to the model.json"),
        (evaluate(tmp_path / "other", copied), "Bicycle"),
        (evaluate(tmp_path / "bad", copied), f"{files[1].image}: is not a PNG"),
    ]
    good = evaluate(validated / "manifest", copied)
    first_of_two = [*good, "--shards", "2"]
    cut = shard_path(results, 0, 2)
    cut.parent.mkdir()
    cut.write_bytes(b"PK of a copy that was cut")
    (*refused, done, redone, again), imported = run_several(
        *(flags for flags, _ in cases), good, first_of_two, good
    )
    assert "shard 0 of 2 written" in redone.out
    assert "shard 0 of 1 is there already" in again.out
    assert read_shard(cut).frames
    for (flags, expected), one in zip(cases, refused, strict=True):
        assert one.status == 1, flags
        assert expected in one.error
    assert done.status == 0, done.err
    assert imported == ["tensorflow"]
    ours = read_shard(shard_path(results, 0, 1))
    original = read_shard(shard_path(validated / "in-1", 0, 1))
    assert ours.matrix.tolist() == original.matrix.tolist()
    assert ours.frames == original.frames
