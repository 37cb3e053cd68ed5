"""The geometries of a map's file."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from catalog.errors import InvalidInput, StorageError, not_installed

if TYPE_CHECKING:
    from shapely import Geometry

_WGS_84 = {("OGC", "CRS84"), ("EPSG", "4326")}


def read_features(file: Path) -> "npt.NDArray[Any]":
    """The geometries (M,) of a GeoJSON or GeoParquet file, empty ones left out.

    Raises:
        InvalidInput: It is neither, in another coordinate system, or its coordinates are no
            degrees.
        StorageError: It cannot be read.
    """
    try:
        import shapely
    except ImportError as error:
        raise not_installed("shapely, which joins maps,", "map") from error
    is_parquet = file.suffix.lower() in (".parquet", ".geoparquet", ".pq")
    try:
        features = _geoparquet(file) if is_parquet else _geojson(file)
    except OSError as error:
        reason = error.strerror or error
        raise StorageError(f"{file}: cannot be read: {reason}", str(file)) from error
    except (
        ValueError, TypeError, KeyError, AttributeError, RecursionError,
        shapely.errors.ShapelyError, pa.ArrowException,
    ) as error:  # fmt: skip
        reason = " ".join(str(error).split())[:200]
        raise InvalidInput(
            f"{file}: is no GeoJSON or GeoParquet file, or damaged: "
            f"{type(error).__name__}: {reason}"
        ) from error
    geometries = np.array([each for each in features if each is not None], dtype=object)
    geometries = geometries[~shapely.is_empty(geometries)] if len(geometries) else geometries
    if len(geometries):
        west, south, east, north = shapely.total_bounds(geometries)
        if not (min(west + 180, 180 - east, south + 90, 90 - north) >= 0):
            raise InvalidInput(
                f"{file}: coordinates from {west:g}, {south:g} to {east:g}, {north:g} are no "
                "degrees; expected WGS 84 longitude and latitude: ogr2ogr -t_srs EPSG:4326"
            )
    return geometries


def _geojson(file: Path) -> "list[Geometry | None]":
    from shapely.geometry import shape

    parsed = json.loads(file.read_bytes())
    kind = parsed["type"]
    named = (parsed.get("crs") or {}).get("properties", {}).get("name", "CRS84")
    if not str(named).endswith(("CRS84", "EPSG::4326", "EPSG:4326")):
        raise InvalidInput(_other_system(file, named))
    if kind == "FeatureCollection":
        geometries = [feature["geometry"] for feature in parsed["features"]]
    else:
        geometries = [parsed["geometry"] if kind == "Feature" else parsed]
    return [shape(geometry) if geometry is not None else None for geometry in geometries]


def _geoparquet(file: Path) -> "list[Geometry | None]":
    import pyarrow.parquet as pq
    import shapely

    metadata = pq.read_schema(file).metadata or {}
    if b"geo" not in metadata:
        raise InvalidInput(f"{file}: Parquet without GeoParquet's metadata 'geo'")
    geo = json.loads(metadata[b"geo"])
    name = geo["primary_column"]
    column = geo["columns"][name]
    if column["encoding"] != "WKB":
        raise InvalidInput(f"{file}: geometries encoded as {column['encoding']}, expected WKB")
    system = column.get("crs", {"id": {"authority": "OGC", "code": "CRS84"}})
    known = (system or {}).get("id", {})
    if (str(known.get("authority")), str(known.get("code"))) not in _WGS_84:
        raise InvalidInput(_other_system(file, (system or {}).get("name", "none")))
    texts = pq.read_table(file, columns=[name])[name].to_numpy(zero_copy_only=False)
    return list(shapely.from_wkb(texts))


def _other_system(file: Path, name: object) -> str:
    return (
        f"{file}: coordinate system {name}; expected WGS 84 longitude and latitude: "
        "ogr2ogr -t_srs EPSG:4326"
    )
