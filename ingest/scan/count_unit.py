"""The unit of work that leaves this process: frames to count in, their counts out.

Both are compressed JSON, so that a unit can be handed to any worker: a Dask worker, or an element
of a job array that finds it in a file. Counting a unit twice gives the same bytes.
"""

import json
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from catalog.errors import CatalogDamaged
from ingest.labels.class_list import ClassList
from ingest.scan.frame_json import count_from_json, count_json, frame_from_json, frame_json
from ingest.scan.pair_frames import FrameFiles
from ingest.scan.read_frame import FrameCount, read_frame
from ingest.sources import sealed_keys
from ingest.sources.schemes import open_reader
from ingest.sources.source_files import FileReader
from ingest.sources.source_options import SourceOptions

FORMAT = 5

READS_AT_ONCE = 4
"""Frames that a unit reads at once: while one waits for its bytes, another is counted."""


@dataclass(frozen=True)
class UnitSource:
    """Source of a unit, as a worker opens it."""

    uri: str
    """Where its files are; the worker must reach them under the same URI."""
    options: SourceOptions
    """How an object store is reached; credentials are the worker's own, or sealed."""
    class_list: ClassList


def write_unit(
    source: UnitSource, frames: Sequence[FrameFiles], spans: dict[str, tuple[int, int]]
) -> bytes:
    """A unit as bytes.

    Args:
        spans: What SourceFiles.spans gave for the frames' files.
    """
    return _packed(
        {
            "uri": source.uri,
            "options": source.options.to_json(),
            "class_list": source.class_list.to_json(),
            "frames": [frame_json(frame) for frame in frames],
            "spans": spans,
            **_key_file(source.options),
        }
    )


def _key_file(options: SourceOptions) -> dict[str, str]:
    """The path of the file that opens sealed keys, for the worker; never the key."""
    path = sealed_keys.key_path() if options.sealed_keys else ""
    return {"key_file": path} if path else {}


def count_unit(unit: bytes, reads_at_once: int = READS_AT_ONCE) -> bytes:
    """Count the frames of a unit; bytes for ``read_counts``."""
    content = _unpacked(unit)
    if key_file := content.get("key_file"):
        sealed_keys.learn(key_file)
    frames = [frame_from_json(frame) for frame in content["frames"]]
    reader = _reader(content["uri"], json.dumps(content["options"]), json.dumps(content["spans"]))
    class_list = _class_list(json.dumps(content["class_list"]))
    read = partial(read_frame, reader, class_list=class_list)
    if reads_at_once == 1:
        counted = [read(frame) for frame in frames]
    else:
        with ThreadPoolExecutor(reads_at_once, thread_name_prefix="count") as pool:
            counted = list(pool.map(read, frames))
    return _packed({"counts": [count_json(count) for count in counted]})


def read_counts(counts: bytes) -> list[FrameCount]:
    """The counts that ``count_unit`` wrote, in the order of the unit's frames."""
    return [count_from_json(count) for count in _unpacked(counts)["counts"]]


# A worker gets many units of one source: it opens it once. Tar archives differ by their spans.
@lru_cache(maxsize=4)
def _reader(uri: str, options: str, spans: str) -> FileReader:
    return open_reader(uri, SourceOptions.from_json(json.loads(options)), json.loads(spans))


@lru_cache(maxsize=4)
def _class_list(class_list: str) -> ClassList:
    return ClassList.from_json(json.loads(class_list))


def _packed(content: dict[str, Any]) -> bytes:
    text = json.dumps({"format": FORMAT, **content}, separators=(",", ":"))
    return zlib.compress(text.encode(), level=1)


def _unpacked(content: bytes) -> dict[str, Any]:
    try:
        unpacked: dict[str, Any] = json.loads(zlib.decompress(content))
    except (zlib.error, ValueError) as error:
        raise CatalogDamaged(f"a unit of a scan is damaged: {error}; scan again") from error
    if unpacked.get("format") != FORMAT:
        raise CatalogDamaged(
            f"a unit of a scan has format {unpacked.get('format')}, this version reads {FORMAT}: "
            "the workers need the same release of Framesift"
        )
    return unpacked
