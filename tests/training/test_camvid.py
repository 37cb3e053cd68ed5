"""CamVid's real frames, JPEG images and ids, through the whole chain by its preset."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ingest.layouts.read_layout import preset
from tests.api.servers import framesift

pytestmark = [
    pytest.mark.training,
    pytest.mark.skipif("CAMVID_ROOT" not in os.environ, reason="CAMVID_ROOT is unset"),
]


def counted_by_itself(root: Path) -> dict[str, list[int]]:
    """Pixels of each key of every label, by the image's name, as NumPy counts them."""
    return {
        label.with_suffix(".jpg").name: np.bincount(
            np.asarray(Image.open(label)).ravel(), minlength=12
        ).tolist()
        for label in root.glob("labels/*/*.png")
    }


def test_camvid_from_names_to_scores(tmp_path: Path) -> None:
    """Every count is NumPy's; drives stay apart; a network learns and is scored on 11 classes."""
    root, home = Path(os.environ["CAMVID_ROOT"]), tmp_path / "home"

    def run(*arguments: str) -> str:
        done = framesift(home, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("source", "add", "camvid", str(root), "--layout", "camvid")
    assert "counted 468 frames" in run("ingest", "camvid")
    classes = preset("camvid").classes
    assert classes is not None
    columns = ", ".join(f"t_{tag}.value" for tag in classes.tags)
    tables = ", ".join(f"t_{tag}" for tag in classes.tags)
    joined = " and ".join(f"t_{tag}.fkey = metaocean.fkey" for tag in classes.tags)
    lines = run("sql", f"select filename, {columns} from metaocean, {tables} where {joined}")
    counts = {
        fields[1].strip('"'): [int(field.strip('"')) for field in fields[2:]]
        for fields in (line.split(",") for line in lines.splitlines() if line)
    }
    assert counts == counted_by_itself(root)
    created = run("dataset", "create", "bikes", "--range", "bicyclist=1:",
                  "--split", "train=0.8,validation=0.2", "--split-by", "scene")  # fmt: skip
    assert "302 frames (train 241, validation 61)" in created
    assert "splits share 0 scenes" in created
    run("train", "bikes", "--max-steps", "3", "--batch-size", "2", "--height", "64", "--width",
        "96", "--workers", "1", "--name", "learned")  # fmt: skip
    run("validate", "learned", "bikes", "--workers", "1", "--name", "scored")
    report = json.loads((home / "jobs" / "scored" / "report" / "report.json").read_text())
    names = [row["class"] for row in report["per_class"]]
    assert names == [name for name in classes.classes if name != "Unlabelled"]
    assert report["ignored_pixels"] > 0
    assert sum(row["truth_pixels"] for row in report["per_class"]) + report["ignored_pixels"] == (
        61 * 480 * 360
    )
