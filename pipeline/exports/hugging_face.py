"""Hugging Face datasets: data/SPLIT-00000-of-00003.parquet with images and masks, and README.md.

Source: huggingface.co/docs/datasets, "Image Dataset" and "Manual Configuration" (names of shards,
the card's configs), and huggingface/datasets, features (the schema's metadata "huggingface").
"""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from catalog.storage.atomic_write import atomic_write
from catalog.values import FrameProgress
from pipeline.exports.frames import FramesToExport
from pipeline.exports.progress import Report
from pipeline.exports.shards import FramesOfShard, Shard, planned_shards, write_shards

_ROWS = 16
"""Frames of a row group: a reader has one in memory to give one frame."""

_IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
_TEXTS = ("fkey", "scene", "camera")
_FEATURES = {
    "image": {"_type": "Image"},
    "label": {"_type": "Image"},
    **{name: {"dtype": "string", "_type": "Value"} for name in _TEXTS},
}
_SCHEMA = pa.schema(
    [("image", _IMAGE), ("label", _IMAGE), *((name, pa.string()) for name in _TEXTS)],
    metadata={"huggingface": json.dumps({"info": {"features": _FEATURES}})},
)


def write_hugging_face(
    frames: FramesToExport,
    out: Path,
    shard_bytes: int,
    workers: int,
    done: FrameProgress,
    report: Report,
) -> None:
    """Write a dataset as `datasets.load_dataset(FOLDER)` reads it.

    id2label.json is what transformers' models take for the names of class ids.
    """

    def path_of(shard: Shard) -> Path:
        name = f"{_split_name(shard.split)}-{shard.number:05}-of-{shard.shards:05}.parquet"
        return out / "data" / name

    def write(path: Path, shard: Shard, of_shard: FramesOfShard) -> None:  # noqa: ARG001
        with pq.ParquetWriter(path, _SCHEMA, compression="none") as file:
            rows: list[dict[str, Any]] = []
            for row, frame in of_shard:
                image = {"bytes": frame.image, "path": f"{frame.name}{frame.suffix}"}
                label = {"bytes": frame.mask, "path": f"{frame.name}.png"}
                rows.append({"image": image, "label": label, **frames.about(row)})
                if len(rows) == _ROWS:
                    file.write_table(pa.Table.from_pylist(rows, _SCHEMA))
                    rows = []
            if rows:
                file.write_table(pa.Table.from_pylist(rows, _SCHEMA))

    shards = planned_shards(frames, shard_bytes)
    write_shards(frames, shards, out, path_of, write, workers, done, report)
    names = {str(class_id): name for class_id, name in enumerate(frames.classes.names)}
    atomic_write(out / "id2label.json", json.dumps(names, indent=2, ensure_ascii=False))
    atomic_write(out / "README.md", _card(frames))


def _split_name(split: str) -> str:
    """The split's name in letters that Hugging Face takes."""
    return re.sub(r"\W", "_", split)


def _card(frames: FramesToExport) -> str:
    header = frames.manifest.header
    lines = ["---", "task_categories:", "- image-segmentation", "configs:"]
    lines += ["- config_name: default", "  data_files:"]
    for split in map(_split_name, dict.fromkeys(frames.splits)):
        lines += [f"  - split: {split}", f"    path: data/{split}-*"]
    lines += ["---", "", f"# {header.name}", ""]
    lines.append(
        f"Version {header.version}, written by framesift dataset export. `label` holds class ids, "
        "named by id2label.json; 255 is to be ignored."
    )
    return "\n".join(lines) + "\n"
