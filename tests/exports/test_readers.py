"""Exports, opened by the programs that they are for, each in an environment of its own."""

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.datasets.class_lists import tags_of
from pipeline.datasets.export import write_export
from pipeline.exports.export import TrainingExport
from pipeline.exports.formats import TrainingFormat
from tests.exports.test_training_exports import Drawn
from tests.pipeline.homes import REPOSITORY

READERS = Path(__file__).parent / "readers"
ENVIRONMENTS = {
    "fiftyone": ".venv-fiftyone",
    **dict.fromkeys(("tables", "openapi", "mlflow", "tensorboard", "notebook"), ".venv-tools"),
}
"""Where a reader's packages are; of the others `.venv-readers`."""

pytestmark = pytest.mark.readers


def read_by(reader: str, folder: Path, cache: Path | str) -> Any:
    """What a program reads of an export, or of a server."""
    python = REPOSITORY / ENVIRONMENTS.get(reader, ".venv-readers") / "bin" / "python"
    script = READERS / f"read_{reader}.py"
    run = subprocess.run(
        [python, script, folder, cache], capture_output=True, text=True, check=False, timeout=600
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.fixture
def drawn(tmp_path: Path) -> Drawn:
    """Seven frames, a JPEG among them."""
    return Drawn(tmp_path / "drawn")


@pytest.mark.parametrize(
    ("form", "reader"),
    [("hf", "hugging_face"), ("webdataset", "webdataset"), ("coco", "coco"), ("mmseg", "mmseg")],
)
def test_training_exports(form: TrainingFormat, reader: str, drawn: Drawn, tmp_path: Path) -> None:
    """Splits, sizes, names and each class's pixels, as NumPy counts them of the labels."""
    TrainingExport(form).write(drawn.manifest, tmp_path / "out")
    read = read_by(reader, tmp_path / "out", tmp_path / "cache")
    assert {*read} == {*drawn.splits}
    for split, frames in read.items():
        counts = [
            np.bincount(ids.ravel(), minlength=256).tolist() for _, ids in drawn.expected(split)
        ]
        # mmsegmentation has the frames of each suffix together.
        assert sorted(frame["pixels"] for frame in frames) == sorted(counts)
        if form != "mmseg":
            assert [frame["pixels"] for frame in frames] == counts
        assert {tuple(frame["image"]) for frame in frames} == {(96, 64)}
        if form in ("hf", "webdataset"):
            fkeys = drawn.manifest.split(split).frames["fkey"].to_pylist()
            assert [frame["fkey"] for frame in frames] == fkeys


def test_fiftyone(drawn: Drawn, tmp_path: Path) -> None:
    """Splits as tags, masks by their targets, class pixels as fields."""
    manifest = drawn.manifest
    write_export(manifest, tags_of(manifest), "fiftyone", tmp_path / "out")
    read = read_by("fiftyone", tmp_path / "out", tmp_path / "cache")
    assert {split: len(frames) for split, frames in read.items()} == {"train": 5, "validation": 2}
    for split, frames in read.items():
        for frame, (_, ids) in zip(frames, drawn.expected(split), strict=True):
            cars = frame["classes"].get("Car 1", 0) + frame["classes"].get("Car 2", 0)
            assert cars == frame["car"] == int((ids == 2).sum()) > 0
            assert frame["classes"]["Sky"] == int((ids == 0).sum())
            assert frame["classes"]["unknown"] == int((ids == 255).sum()) > 0
