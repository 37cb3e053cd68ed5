"""Digest of a dataset's content: a JSON list for each frame, in the dataset's order."""

import hashlib
import json
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

_IDENTIFYING = ("split", "fkey", "image_version", "label", "label_version")

_HASHED_ROWS = 65_536
"""Frames whose lists are in memory at once, of some 400 bytes each."""

_AS_THEY_ARE = bytes(code for code in range(0x20, 0x7F) if code not in b'"\\')
"""Characters that JSON writes as they are."""


class ContentDigest:
    """SHA-256 of the question, the snapshot, and of each frame what tells it from others."""

    def __init__(self, question: Mapping[str, object], snapshot: int) -> None:
        """Have no frame yet."""
        self._digest = hashlib.sha256(json.dumps([question, snapshot], sort_keys=True).encode())

    def update(self, rows: pa.Table) -> None:
        """Add the next frames.

        Args:
            rows: Of FRAMES_SCHEMA.
        """
        rows = _with_segments(rows)
        for batch in rows.select(_IDENTIFYING).to_batches(_HASHED_ROWS):
            self._digest.update(_json(batch.columns))

    def hexdigest(self) -> str:
        """The dataset's id."""
        return self._digest.hexdigest()


def _with_segments(rows: pa.Table) -> pa.Table:
    """Rows whose label_version says the segments of panoptic labels, too."""
    segments = rows["label_segments"]
    if segments.null_count == len(segments):
        return rows
    version = pc.fill_null(rows["label_version"], "")
    with_segments = pc.binary_join_element_wise(version, segments, " segments ")
    version = pc.if_else(segments.is_valid(), with_segments, rows["label_version"])
    return rows.set_column(rows.column_names.index("label_version"), "label_version", version)


def _json(columns: list[pa.Array]) -> bytes:
    """json.dumps of each row's list, one after another."""
    if not all(map(_is_plain, columns)):
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        return "".join(map(json.dumps, rows)).encode()
    if not any(column.null_count for column in columns):
        texts = pc.binary_join_element_wise(*columns, '", "')
        return _characters(pc.binary_join_element_wise('["', texts, '"]', ""))
    texts = [
        pc.fill_null(pc.binary_join_element_wise('"', column, '"', ""), "null")
        for column in columns
    ]
    lists = pc.binary_join_element_wise("[", pc.binary_join_element_wise(*texts, ", "), "]", "")
    return _characters(lists)


def _is_plain(column: pa.Array) -> bool:
    """Return whether JSON writes each text as it is."""
    return not _characters(column).translate(None, _AS_THEY_ARE)


def _characters(column: pa.Array) -> bytes:
    """The texts of an array, one after another, without nulls."""
    _, offsets, data = column.buffers()
    if data is None or not len(column):
        return b""
    ends = memoryview(offsets).cast("i")
    first, last = ends[column.offset], ends[column.offset + len(column)]
    characters: bytes = data.slice(first, last - first).to_pybytes()
    return characters
