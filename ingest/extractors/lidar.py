"""LiDAR of a frame (npz): how many points lie in the camera's view, and how far away."""

import io
import zipfile
import zlib
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from catalog.errors import BadFile
from ingest.extractors.base import CataloguedFrame, Extractor, SourceFiles
from ingest.labels.other_content import kind_of_content

POINTS = ("points", "pcloud_points")
DISTANCE = ("distance", "pcloud_attr.distance")
"""Names of the arrays: in the semantic set and in the sensor fusion set."""

MAX_ARRAY_BYTES = 512 * 2**20
"""Arrays that claim more are refused unread; A2D2's have some 200 kB."""

_DAMAGED = (ValueError, TypeError, OSError, EOFError, KeyError, RuntimeError, MemoryError,
            zipfile.BadZipFile, zlib.error)  # fmt: skip
"""Errors that NumPy and zipfile raise over a damaged file, or one whose arrays claim too much."""


class Lidar(Extractor):
    """lidar_points, and lidar_mean_distance_m and lidar_max_distance_m of them [m].

    Distances are the file's own, or the points' distances from the origin where it has none.
    Points at no finite distance are left out of both. A file with zero points has no distances.
    """

    family: ClassVar[str] = "lidar"
    columns: ClassVar[Mapping[str, str]] = {
        "lidar_points": "INTEGER",
        "lidar_mean_distance_m": "DOUBLE",
        "lidar_max_distance_m": "DOUBLE",
    }
    reads: ClassVar[str] = "lidar"

    def extract(self, source: SourceFiles, frame: CataloguedFrame) -> Mapping[str, object]:
        """Tags of the frame's points; see Extractor."""
        points, distances = read_points(source.read(frame.file))
        finite = distances[np.isfinite(distances)]
        return {
            "lidar_points": points,
            "lidar_mean_distance_m": float(finite.mean()) if finite.size else None,
            "lidar_max_distance_m": float(finite.max()) if finite.size else None,
        }


def read_points(npz: bytes) -> tuple[int, npt.NDArray[np.float64]]:
    """Number of points of an npz file and their distances (N,) [m].

    Nothing in it is ever unpickled.

    Raises:
        BadFile: It is no npz file, damaged, or has neither points nor distances.
    """
    if not npz.startswith(b"PK"):
        raise BadFile(f"is no npz file, a zip of arrays, but {kind_of_content(npz)}")
    try:
        with np.load(io.BytesIO(npz), allow_pickle=False) as arrays:
            name = next((name for name in DISTANCE if name in arrays.files), None)
            if name is not None:
                distances = np.asarray(_array(arrays, name), dtype=np.float64).ravel()
                return distances.size, distances
            name = next((name for name in POINTS if name in arrays.files), None)
            if name is None:
                there = ", ".join(sorted(arrays.files)[:20]) or "no array"
                expected = " nor ".join((*DISTANCE, *POINTS))
                raise BadFile(f"npz has neither {expected}, but {there}")
            points = np.asarray(_array(arrays, name), dtype=np.float64)
            if points.size == 0:
                return 0, np.empty(0)
            if points.ndim != 2 or points.shape[1] != 3:
                raise BadFile(f"npz: {name} has shape {points.shape}, expected (N, 3)")
            return len(points), np.linalg.norm(points, axis=1)
    except _DAMAGED as error:
        raise BadFile(f"npz is damaged: {' '.join(str(error).split())}") from error


def _array(arrays: "np.lib.npyio.NpzFile", name: str) -> npt.NDArray[np.generic]:
    member = arrays.zip.getinfo(f"{name}.npy")
    if member.file_size > MAX_ARRAY_BYTES:
        raise BadFile(
            f"npz: {name} claims {member.file_size:,} bytes; at most {MAX_ARRAY_BYTES:,} are read"
        )
    array: npt.NDArray[np.generic] = arrays[name]
    return array
