"""Spectrum Discover's buckets: groups of sizes, of ages and of file types that searches count by.

SizeRange is the product's own. What TimeSinceAccess and FileGroup hold there is not documented; the
definitions here follow what its dashboard shows.
"""

import json
from dataclasses import dataclass
from typing import Any

_INFINITY = "INFINITY"

_SIZES: dict[str, list[Any]] = {
    "extra small": [0, 4096],
    "small": [4096, 1048576],
    "medium": [1048576, 1073741824],
    "large": [1073741824, 1099511627776],
    "extra large": [1099511627776, _INFINITY],
}
"""Name -> from this size up to below that one [bytes]."""

_AGES: dict[str, list[Any]] = {
    "up to 1 week": [0, 7],
    "1 week to 1 month": [7, 30],
    "1 month to 1 year": [30, 365],
    "over 1 year": [365, _INFINITY],
}
"""Name -> from this age up to below that one [days]."""

_TYPES: dict[str, list[Any]] = {
    "images": ["png", "jpg", "jpeg", "bmp", "gif", "tif", "tiff", "webp", "dcm"],
    "point clouds": ["npz", "npy", "pcd", "las", "laz", "ply", "bin"],
    "videos": ["mp4", "avi", "mkv", "mov", "h264", "h265"],
    "documents": ["pdf", "doc", "docx", "ppt", "pptx", "xls", "xlsx", "txt", "md", "html", "htm"],
    "data": ["json", "csv", "xml", "parquet", "arrow", "h5", "hdf5", "db", "sqlite", "log"],
    "archives": ["zip", "tar", "gz", "tgz", "bz2", "xz", "zst", "7z"],
}
"""Name -> file types."""

_OTHER = "other"


@dataclass(frozen=True)
class Bucket:
    """One bucket."""

    name: str
    """As the product spells it."""
    data: dict[str, Any]
    """Its definition, as the product shows it."""
    sql: str
    """Its value for a file, in Db2's SQL over metaocean_view; null where it is not known."""

    @property
    def document(self) -> list[dict[str, str]]:
        """The buckets, as the service answers them."""
        return [{"data": json.dumps({**self.data, "name": self.name}), "name": self.name}]


def _ranges(value: str, ranges: dict[str, list[Any]]) -> str:
    whens = [
        f"when {value} is not null then '{name}'" if below == _INFINITY
        else f"when {value} < {below} then '{name}'"
        for name, (_, below) in ranges.items()
    ]  # fmt: skip
    return f"case {' '.join(whens)} end"


def _types() -> str:
    whens = [
        f"when lower(filetype) in ({', '.join(repr(kind) for kind in kinds)}) then '{name}'"
        for name, kinds in _TYPES.items()
    ]
    return f"case {' '.join(whens)} else '{_OTHER}' end"


def _bucket(name: str, kind: str, field: str, ranges: dict[str, list[Any]], sql: str) -> Bucket:
    return Bucket(name, {"type": kind, "source_field": field, "ranges": ranges}, sql)


BUCKETS = {
    bucket.name.lower(): bucket
    for bucket in (
        _bucket("SizeRange", "int", "size", _SIZES, _ranges("size", _SIZES)),
        _bucket(
            "TimeSinceAccess", "days", "atime", _AGES,
            _ranges("(days(current date) - days(atime))", _AGES),
        ),
        _bucket("FileGroup", "list", "filetype", _TYPES, _types()),
    )
}  # fmt: skip
"""Name in lower case -> bucket."""
