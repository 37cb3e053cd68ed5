"""Exports in shards: files of about one size, each with the frames that follow one another."""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from catalog.errors import BadFile
from catalog.storage.atomic_write import atomic_path, atomic_write
from catalog.values import FrameProgress, Problem
from pipeline.exports.frames import ExportedFrame, FramesToExport
from pipeline.exports.progress import Report

SHARD_BYTES = 500_000_000
"""Of image and label files in a shard, where nobody says another size."""

_INCOMPLETE = "incomplete.json"
"""Of an export's folder: names of the shards that left frames out, which are written again."""

_AT_ONCE = 16
"""Frames that are in memory at once."""


@dataclass(frozen=True)
class Shard:
    """Some frames of a split, for one file."""

    split: str
    number: int
    """From 0."""
    shards: int
    """Those of its split."""
    rows: Sequence[int]


FramesOfShard = Iterator[tuple[int, ExportedFrame]]
"""A frame's row, and the frame."""


def planned_shards(frames: FramesToExport, shard_bytes: int) -> list[Shard]:
    """The shards of a dataset: a new one where the files of the next frame would be too much.

    Sizes are those of the manifest, so that the same dataset gives the same shards.
    """
    sizes = frames.manifest.frame_bytes()
    shards = []
    for split in dict.fromkeys(frames.splits):
        parts: list[list[int]] = []
        total = 0
        for row in frames.rows(split):
            size = int(sizes[row])
            if not parts or total + size > shard_bytes:
                parts.append([])
                total = 0
            parts[-1].append(row)
            total += size
        shards += [Shard(split, n, len(parts), rows) for n, rows in enumerate(parts)]
    return shards


def write_shards(
    frames: FramesToExport,
    shards: Sequence[Shard],
    out: Path,
    path_of: Callable[[Shard], Path],
    write: Callable[[Path, Shard, FramesOfShard], None],
    workers: int,
    done: FrameProgress,
    report: Report,
) -> None:
    """Write each shard that is not there, or left frames out.

    Args:
        out: The export's folder.
        path_of: A shard's file, whose name says its place among the shards.
        write: Writes a shard's file with its frames, which come as they are read.
    """
    with ThreadPoolExecutor(workers, thread_name_prefix="export") as pool:
        incomplete = _read_incomplete(out)
        for shard in shards:
            path = path_of(shard)
            if path.exists() and path.name not in incomplete:
                done.unchanged += len(shard.rows)
                report(done)
                continue
            problems = len(done.problems)
            with atomic_path(path, parents=True) as partial:
                write(partial, shard, _frames(frames, shard.rows, pool, done, report))
                if len(done.problems) > problems:  # noted before the shard is there
                    incomplete.add(path.name)
                    _write_incomplete(out, incomplete)
            if len(done.problems) == problems and path.name in incomplete:
                incomplete.remove(path.name)
                _write_incomplete(out, incomplete)


def _read_incomplete(out: Path) -> set[str]:
    path = out / _INCOMPLETE
    return set(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else set()


def _write_incomplete(out: Path, names: set[str]) -> None:
    atomic_write(out / _INCOMPLETE, json.dumps(sorted(names)))


def _frames(
    frames: FramesToExport,
    rows: Sequence[int],
    pool: ThreadPoolExecutor,
    done: FrameProgress,
    report: Report,
) -> FramesOfShard:
    def read(row: int) -> ExportedFrame | Problem:
        try:
            return frames.frame(row)
        except BadFile as error:
            return Problem("bad_file", error.file or frames.names[row], error.reason)

    for first in range(0, len(rows), _AT_ONCE):
        some = rows[first : first + _AT_ONCE]
        for row, result in zip(some, pool.map(read, some), strict=True):
            if isinstance(result, Problem):
                done.problems.append(result)
            else:
                done.written += 1
                yield row, result
        report(done)
