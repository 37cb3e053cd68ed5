"""WebDataset: tar files whose neighbouring members NAME.png, NAME.mask.png, NAME.json are a sample.

Source: webdataset/webdataset, README.md: a sample's key is the member's name up to its first dot.
"""

import io
import json
import tarfile
from pathlib import Path

from catalog.storage.atomic_write import atomic_write
from catalog.values import FrameProgress
from pipeline.exports.frames import FramesToExport
from pipeline.exports.progress import Report
from pipeline.exports.shards import FramesOfShard, Shard, planned_shards, write_shards

ABOUT = "dataset.json"


def write_webdataset(
    frames: FramesToExport,
    out: Path,
    shard_bytes: int,
    workers: int,
    done: FrameProgress,
    report: Report,
) -> None:
    """Write a dataset as WebDataset reads it, and dataset.json: its shards, classes and colours."""

    def path_of(shard: Shard) -> Path:
        return out / f"{shard.split}-{shard.number:06}.tar"

    def write(path: Path, shard: Shard, of_shard: FramesOfShard) -> None:  # noqa: ARG001
        # Members without time, owner or mode of this machine: the same dataset, the same bytes.
        with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as archive:
            for row, frame in of_shard:
                about = json.dumps(frames.about(row), ensure_ascii=False).encode()
                _add(archive, f"{frame.name}{frame.suffix}", frame.image)
                _add(archive, f"{frame.name}.mask.png", frame.mask)
                _add(archive, f"{frame.name}.json", about)

    shards = planned_shards(frames, shard_bytes)
    write_shards(frames, shards, out, path_of, write, workers, done, report)
    splits = {
        split: [path_of(shard).name for shard in shards if shard.split == split]
        for split in dict.fromkeys(frames.splits)
    }
    classes = frames.classes
    document = {
        "dataset": f"{frames.manifest.header.name}@{frames.manifest.header.version}",
        "splits": splits,
        "classes": classes.names,
        "palette": classes.colours.tolist(),
        "ignored_id": 255,
    }
    atomic_write(out / ABOUT, json.dumps(document, indent=2, ensure_ascii=False))


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))
