"""COCO: images, and for each split a JSON in which every class of a frame is a segmentation.

Source: cocodataset.org/#format-data; a class is one region, as in COCO-Stuff's stuff annotations.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from catalog.storage.atomic_write import atomic_path
from catalog.values import FrameProgress
from pipeline.exports.folders import FileFrame, FrameFolders
from pipeline.exports.frames import FramesToExport
from pipeline.exports.progress import Report

IMAGES, ANNOTATIONS = "images", "annotations"


def write_coco(
    frames: FramesToExport, out: Path, workers: int, done: FrameProgress, report: Report
) -> None:
    """Write a dataset as pycocotools reads it: `COCO(annotations/SPLIT.json)`.

    A category's id is its class id and 1. Pixels of no class are in no segmentation. file_name is
    the image's path below images/.
    """
    folders = FrameFolders(out, IMAGES, None, with_regions=True)
    for split in dict.fromkeys(frames.splits):
        files = folders.write(frames, frames.rows(split), workers, done, report)
        target = out / ANNOTATIONS / f"{split}.json"
        with atomic_path(target, parents=True) as path, path.open("w", encoding="utf-8") as file:
            _write_document(file, frames, files)


def _write_document(
    file: IO[str], frames: FramesToExport, frames_of_split: Iterator[FileFrame]
) -> None:
    """Write a split's JSON; segmentations go to the file as they come, images after them."""
    header = frames.manifest.header
    about = {"description": f"{header.name}@{header.version}", "version": header.id}
    categories = [
        {"id": class_id + 1, "name": name, "supercategory": tag}
        for class_id, (name, tag) in enumerate(
            zip(frames.classes.names, frames.classes.tags, strict=True)
        )
    ]
    file.write(f'{{"info": {json.dumps(about)},\n"categories": {json.dumps(categories)},\n')
    file.write('"annotations": [')
    images: list[dict[str, Any]] = []
    annotation_id = 0
    for frame in frames_of_split:
        height, width = frame.size_px
        name = f"{frame.split}/{frame.name}{frame.suffix}"
        image = {"id": len(images) + 1, "file_name": name, "width": width, "height": height}
        images.append(image)
        for region in frame.regions:
            annotation_id += 1
            annotation = {
                "id": annotation_id,
                "image_id": image["id"],
                "category_id": region.class_id + 1,
                "segmentation": {"size": [height, width], "counts": region.counts},
                "area": region.area,
                "bbox": region.bbox,
                "iscrowd": 0,
            }
            file.write((",\n" if annotation_id > 1 else "\n") + json.dumps(annotation))
    file.write(f'],\n"images": {json.dumps(images)}}}\n')
