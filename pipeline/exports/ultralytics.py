"""Ultralytics YOLO's semantic segmentation: images/, masks/ and data.yaml.

Source: docs.ultralytics.com/datasets/semantic, "PNG mask format": a mask has its image's path with
`masks_dir` in the place of "images", and 255 is ignored.
"""

import json
from pathlib import Path

from catalog.errors import InvalidInput
from catalog.storage.atomic_write import atomic_write
from catalog.values import FrameProgress
from pipeline.exports.folders import FrameFolders
from pipeline.exports.frames import FramesToExport
from pipeline.exports.progress import Report

CONFIG = "data.yaml"
_KEYS = {"train": "train", "validation": "val", "test": "test"}
"""The reader's name of each split."""


def check_splits(frames: FramesToExport) -> None:
    """Refuse a dataset that the reader does not take: it wants the splits train and validation.

    Raises:
        InvalidInput: One of them has no frames.
    """
    if missing := {"train", "validation"} - {*frames.splits}:
        header = frames.manifest.header
        raise InvalidInput(
            f"format ultralytics: {header.name}@{header.version} has no frames of the split "
            f"{min(missing)}, and its reader wants train and validation; leave --split out, or "
            f"divide it first: framesift dataset split {header.name} "
            "--split train=0.8,validation=0.2"
        )


def write_ultralytics(
    frames: FramesToExport, out: Path, workers: int, done: FrameProgress, report: Report
) -> None:
    """Write a dataset as `yolo semantic train data=data.yaml` reads it."""
    folders = FrameFolders(out, "images", "masks", lambda split: _KEYS.get(split, split))
    for _ in folders.write(frames, range(len(frames)), workers, done, report):
        pass
    # JSON texts are YAML's, too: a class may have any name.
    lines = ["# Written by framesift dataset export. Paths are relative to this file."]
    for split in dict.fromkeys(frames.splits):
        key = _KEYS.get(split, split)
        lines.append(f"{json.dumps(key)}: {json.dumps(f'images/{key}')}")
    lines += ["masks_dir: masks", f"nc: {len(frames.classes)}", "names:"]
    lines += [f"  {n}: {json.dumps(name)}" for n, name in enumerate(frames.classes.names)]
    atomic_write(out / CONFIG, "\n".join(lines) + "\n")
