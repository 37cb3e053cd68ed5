"""Tags for frames taken near features of a map: bridges, tunnels, crossings...

Distances are taken in a plane around each hundredth of a degree of latitude, scaled by the radii
of the WGS 84 ellipsoid there. Below 60 degrees of latitude they are within 0.2 % of the true ones
up to 10 km, which is far less than a vehicle's position is off. Features and frames on both sides
of the 180th meridian do not see each other.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from catalog.errors import InvalidInput, UnknownName
from catalog.lake.views import tag_columns
from catalog.store import LAKE, CatalogStore
from catalog.tags.families import check_tag_name, define, put_rows, table_of
from ingest.imports.map_file import read_features
from ingest.imports.options import LATITUDE, LONGITUDE
from ingest.imports.reader_process import go_on, read_in_process

if TYPE_CHECKING:
    pass


MAX_WITHIN_M = 10_000.0

_FEATURES = b"features"
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DOUBLE")

_BAND_DEG = 0.01
_SEMI_MAJOR_M, _ECCENTRICITY_2 = 6_378_137.0, 0.006_694_379_990_14


@dataclass(frozen=True)
class MapJoin:
    """Counts and columns of a join."""

    features: int
    frames: int
    """Frames with a position, whose tags were written."""
    near: int
    """Those within the distance of a feature."""
    columns: dict[str, str]
    """The tags and their types."""


def import_map(
    store: CatalogStore,
    features: Path,
    family: str,
    within_m: float,
    *,
    tag: str | None = None,
    latitude: str = LATITUDE,
    longitude: str = LONGITUDE,
    is_sent: bool = False,
    stopped: Callable[[], bool] = lambda: False,
) -> MapJoin:
    """Tag every frame that has a position with near_<tag> (1 or 0) and <tag>_distance_m.

    The distance [m] is that to the nearest feature (0 inside an area), unknown beyond
    ``within_m``. Written in one commit; older values of these tags are replaced.

    Args:
        features: GeoJSON, or GeoParquet (.parquet), in WGS 84 longitude and latitude.
        family: Family to write, made where there is none.
        tag: Name within the tags; the family's when None.
        latitude: Tag of a frame's latitude [degrees, north positive].
        longitude: Tag of its longitude [degrees, east positive].
        is_sent: Whether somebody else sent the map: it is then read in a process of its own, with
            limits.
        stopped: Whether nobody waits for it any more; nothing is written then.

    Raises:
        InvalidInput: The map cannot be used, or a name or the distance, or a position tag has no
            numbers; or it was stopped.
    """
    if not 0 < within_m <= MAX_WITHIN_M:
        raise InvalidInput(f"within {within_m:g} m: expected more than 0, at most {MAX_WITHIN_M:g}")
    table_of(family)
    name = tag or family
    columns = {f"near_{name}": "INTEGER", f"{name}_distance_m": "DOUBLE"}
    for column in columns:
        check_tag_name(column)
    positions = _positions(store, latitude, longitude)
    options = {"within_m": within_m}
    if is_sent:
        function = "ingest.imports.map_join:joined"
        measured = read_in_process(
            function, features, options, extra_table=positions, stopped=stopped
        )
    else:
        measured = joined(features, positions, within_m)
    distances = measured["distance_m"].to_numpy()
    near = np.isfinite(distances)
    rows = pa.table(
        {
            "fkey": positions["fkey"],
            f"near_{name}": pa.array(near.astype(np.int32)),
            f"{name}_distance_m": pa.array(distances, mask=~near),
        }
    )
    with store.writing(f"tag family {family}", author="import-map") as connection:
        go_on(stopped)
        define(connection, family, columns)
        put_rows(connection, family, rows)
    count = int((measured.schema.metadata or {})[_FEATURES])
    return MapJoin(count, len(distances), int(near.sum()), columns)


def joined(features: Path, positions: pa.Table, within_m: float) -> pa.Table:
    """Distance [m] from each position to a map's nearest feature, and how many features it has.

    Args:
        positions: latitude and longitude [degrees].
        within_m: How near counts [m]; the distance is infinite beyond.
    """
    geometries = read_features(features)
    points = np.column_stack(
        [positions["longitude"].to_numpy(), positions["latitude"].to_numpy()]
    ).astype(np.float64)
    distances = pa.table({"distance_m": nearest_distances(points, geometries, within_m)})
    return distances.replace_schema_metadata({_FEATURES: str(len(geometries))})


def nearest_distances(
    points: npt.NDArray[np.float64], geometries: "npt.NDArray[Any]", within_m: float
) -> npt.NDArray[np.float64]:
    """Distance [m] from each point to the nearest geometry; infinite beyond ``within_m``.

    Args:
        points: (N, 2) longitude and latitude [degrees].
        geometries: (M,) shapely geometries in longitude and latitude [degrees].
    """
    import shapely

    distances = np.full(len(points), np.inf)
    if not len(geometries):
        return distances
    whole_map = shapely.STRtree(geometries)
    for chosen, latitude in _bands(points):
        scale = _metres_per_degree(latitude)
        reach = 1.1 * within_m / scale + _BAND_DEG
        low, high = points[chosen].min(axis=0) - reach, points[chosen].max(axis=0) + reach
        candidates = geometries[whole_map.query(shapely.box(*low, *high))]
        if not len(candidates):
            continue
        flat = shapely.STRtree(shapely.transform(candidates, partial(np.multiply, scale)))
        (indices, _), metres = flat.query_nearest(
            shapely.points(points[chosen] * scale),
            max_distance=within_m,
            return_distance=True,
            all_matches=False,
        )
        distances[chosen[indices]] = metres
    return distances


def _positions(store: CatalogStore, latitude: str, longitude: str) -> pa.Table:
    """fkey, latitude and longitude [degrees] of every file that has both, and on the Earth.

    Raises:
        UnknownName: There is no such tag.
        InvalidInput: It has no numbers.
    """
    with store.reading() as cursor:
        columns = tag_columns(cursor)
        tags = {column.tag: column.table for column in columns}
        types = {column.tag: column.type for column in columns}
        for name in (latitude, longitude):
            if name not in tags:
                hint = "Positions come from: framesift tags extract SOURCE bus."
                raise UnknownName("position tag", name, tags, hint)
            if types[name] not in _NUMBERS:
                raise InvalidInput(
                    f"position tag '{name}': has values of type {types[name].lower()}, expected "
                    "degrees as numbers; name tags of numbers for latitude and longitude"
                )
        positions: pa.Table = cursor.execute(
            f'SELECT a.fkey, CAST(a."{latitude}" AS DOUBLE) AS latitude,'
            f' CAST(b."{longitude}" AS DOUBLE) AS longitude FROM {LAKE}.main.{tags[latitude]} AS a'
            f" JOIN {LAKE}.main.{tags[longitude]} AS b ON b.fkey = a.fkey"
            f' WHERE a."{latitude}" BETWEEN -90 AND 90 AND b."{longitude}" BETWEEN -180 AND 180'
        ).to_arrow_table()
    return positions


def _bands(points: npt.NDArray[np.float64]) -> Iterator[tuple[npt.NDArray[np.int64], float]]:
    """Indices of the points of each band of latitude that has some, and its middle [degrees]."""
    band = np.floor(points[:, 1] / _BAND_DEG).astype(np.int64)
    order = np.argsort(band, kind="stable")
    edges = np.flatnonzero(np.diff(band[order])) + 1
    for chosen in np.split(order, edges):
        if chosen.size:
            yield chosen, (float(band[chosen[0]]) + 0.5) * _BAND_DEG


def _metres_per_degree(latitude: float) -> npt.NDArray[np.float64]:
    """Length [m] of a degree of longitude and of one of latitude, on the ellipsoid."""
    angle = np.radians(min(max(latitude, -89.9), 89.9))
    bend = 1 - _ECCENTRICITY_2 * np.sin(angle) ** 2
    east = _SEMI_MAJOR_M * np.cos(angle) / np.sqrt(bend)
    north = _SEMI_MAJOR_M * (1 - _ECCENTRICITY_2) / bend**1.5
    lengths: npt.NDArray[np.float64] = np.radians(np.array([east, north]))
    return lengths
