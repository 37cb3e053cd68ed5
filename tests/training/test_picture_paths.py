"""Names of predicted pictures, which are PNGs whatever their frames' files are."""

from pathlib import Path

import pyarrow as pa

from pipeline.manifest import Manifest
from pipeline.manifest_rows import FRAMES_SCHEMA
from tests.training.drawn_frames import draw_frames, write_manifest
from training.prediction_scores import picture_paths


def test_pictures_lie_as_labels_and_end_in_png(tmp_path: Path) -> None:
    """Proves names of labelled and unlabelled frames, of PNG and JPEG, that stay apart."""
    manifest = write_manifest(tmp_path / "m", tmp_path, {"train": draw_frames(tmp_path, 5)})
    rows = manifest.frames.to_pylist()
    images = ("a/1.jpg", "a/2.jpg", "a/2.png", "/../b/3.JPEG", "b/4.PNG")
    for number, (row, image) in enumerate(zip(rows, images, strict=True)):
        row["image"] = image
        if number:
            row |= dict.fromkeys(("label_source", "label", "label_size", "label_version"))
    changed = Manifest(manifest.header, pa.Table.from_pylist(rows, FRAMES_SCHEMA))
    assert [*map(str, picture_paths(changed))] == [
        "scene/label/000.png", "a/2.jpg.png", "a/2.png", "b/3.JPEG.png", "b/4.PNG",
    ]  # fmt: skip
