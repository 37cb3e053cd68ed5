"""CamVid's real frames, JPEG images and ids, through the whole chain by its preset."""

import json
import os
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ingest.layouts.read_layout import preset
from pipeline.manifest import Manifest
from tests.api.servers import framesift
from tests.ingest.test_own_labels_page import example

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


def test_camvid_from_names_to_the_next_set(tmp_path: Path) -> None:
    """The page's commands, with a shorter training: every count is NumPy's, and drives stay apart.

    A network is scored on 11 classes; its set grows by frames of drives that it is not scored on.
    """
    root, home = Path(os.environ["CAMVID_ROOT"]), tmp_path / "home"

    def run(*arguments: str) -> str:
        done = framesift(home, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    page = example("camvid").replace("/data/camvid", str(root))
    commands = [shlex.split(line)[1:] for line in page.splitlines()]
    added, ingested, _, created, _, _, improved = (
        run(*(["3" if word == "200" else word for word in command])) for command in commands
    )
    assert "added source camvid" in added
    assert "counted 468 frames" in ingested
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
    assert "302 frames (train 241, validation 61)" in created
    assert "splits share 0 scenes" in created
    report = json.loads((home / "jobs" / "first-scores" / "report" / "report.json").read_text())
    names = [row["class"] for row in report["per_class"]]
    assert names == [name for name in classes.classes if name != "Unlabelled"]
    assert report["ignored_pixels"] > 0
    assert sum(row["truth_pixels"] for row in report["per_class"]) + report["ignored_pixels"] == (
        61 * 480 * 360
    )
    assert "riders@2: 40 frames more" in improved
    rows = Manifest.read(home / "datasets" / "riders" / "v2").frames.to_pylist()
    assert len(rows) == 302 + 40
    train, validation = (
        {row["scene"] for row in rows if row["split"] == split} for split in ("train", "validation")
    )
    assert (len(train), len(validation), train & validation) == (1, 2, set())
