"""Frames near features of a map, against distances measured in space."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.errors import InvalidInput, StorageError, UnknownName
from catalog.tags import families
from catalog.values import make_fkey
from ingest.imports.map_file import read_features
from ingest.imports.map_join import import_map, nearest_distances
from tests.ingest.scene_folders import Home, frame_key, make_tree


def _in_space(longitude: float, latitude: float) -> npt.NDArray[np.float64]:
    """A place on WGS 84's ellipsoid in metres from the Earth's centre."""
    lon, lat = math.radians(longitude), math.radians(latitude)
    bend = 6_378_137.0 / math.sqrt(1 - 0.00669437999014 * math.sin(lat) ** 2)
    return np.array([bend * math.cos(lat) * math.cos(lon), bend * math.cos(lat) * math.sin(lon),
                     bend * (1 - 0.00669437999014) * math.sin(lat)])  # fmt: skip


def _slow(point: tuple[float, float], geometry: Any, steps: int = 400) -> float:
    """Distance [m] to the nearest of many places on a geometry's outline."""
    if geometry.geom_type == "Polygon" and geometry.contains(shapely.Point(point)):
        return 0.0
    outline = geometry.boundary if geometry.geom_type == "Polygon" else geometry
    points = (
        [geometry]
        if geometry.geom_type == "Point"
        else [outline.interpolate(k / steps, normalized=True) for k in range(steps + 1)]
    )
    here = _in_space(*point)
    return min(float(np.linalg.norm(_in_space(at.x, at.y) - here)) for at in points)


def _collection(*geometries: Any) -> bytes:
    features = [
        {"type": "Feature", "properties": {"name": str(n)},
         "geometry": None if shape is None else json.loads(shapely.to_geojson(shape))}
        for n, shape in enumerate(geometries)
    ]  # fmt: skip
    return json.dumps({"type": "FeatureCollection", "features": features}).encode()


_near = st.tuples(st.floats(-0.02, 0.02), st.floats(-0.02, 0.02))


@settings(max_examples=40, deadline=None)
@given(
    st.floats(-60, 60),
    st.floats(-170, 170),
    st.lists(_near, min_size=1, max_size=4),
    st.lists(st.lists(_near, min_size=1, max_size=3), max_size=4),
    st.floats(50, 3_000),
)
def test_distances_are_those_in_space(
    latitude: float,
    longitude: float,
    points: list[tuple[float, float]],
    shapes: list[list[tuple[float, float]]],
    within: float,
) -> None:
    """Anywhere below 60 degrees: within 0.2 % and 2 m of the distance to every feature in turn."""
    positions = [(longitude + x, latitude + y) for x, y in points]
    geometries = []
    for corners in shapes:
        moved = [(longitude + x, latitude + y) for x, y in corners]
        many = len(set(moved))
        geometries.append(shapely.Point(moved[0]) if many < 2 else shapely.LineString(moved))
    distances = nearest_distances(np.array(positions), np.array(geometries, dtype=object), within)
    for position, distance in zip(positions, distances, strict=True):
        slow = min((_slow(position, geometry) for geometry in geometries), default=math.inf)
        # The slow way looks at places up to 6 km / 400 apart: it may be that much too far.
        margin = 2 + 0.002 * within + 15
        if distance == math.inf:
            assert slow > within - margin
        else:
            assert distance <= within
            assert slow - margin <= distance <= slow + 2 + 0.002 * within


def test_areas() -> None:
    """Inside an area the distance is zero; beside it, that to its edge."""
    area = np.array([shapely.box(11.0, 48.0, 11.01, 48.01)], dtype=object)
    points = np.array([[11.005, 48.005], [11.02, 48.005]])
    inside, beside = nearest_distances(points, area, 2_000.0)
    assert inside == 0.0
    assert beside == pytest.approx(_slow((11.02, 48.005), area[0]), rel=0.001)


@pytest.fixture
def placed(home: Home, tmp_path: Path) -> Home:
    """Frames 1 to 3 with positions 0, 100 and 10,000 m east of 11 E 48 N; frame 4 has none."""
    home.scan(home.add(make_tree(tmp_path / "tree", frames=4)))
    metre = 1 / 74_632.0  # of longitude at 48 N
    keys = [make_fkey("host1", "a2d2", frame_key("camera", n)) for n in range(1, 5)]
    rows = pa.table({
        "fkey": keys,
        "latitude_deg": [48.0, 48.0, 48.0, None],
        "longitude_deg": [11.0, 11.0 + 100 * metre, 11.0 + 10_000 * metre, 11.0],
    })  # fmt: skip
    columns = {"latitude_deg": "DOUBLE", "longitude_deg": "DOUBLE"}
    families.write(home.store, "bus", columns, rows)
    return home


def _tagged(home: Home, family: str) -> list[tuple[object, ...]]:
    rows = home.rows(f"SELECT * EXCLUDE (fkey) FROM lake.main.tags_{family} ORDER BY fkey")
    return [(near, None if far is None else round(float(str(far)))) for near, far in rows]


@pytest.mark.wide
def test_geojson_and_geoparquet_give_the_same(placed: Home, tmp_path: Path) -> None:
    """Both formats tag near frames 1 with their distance, far ones 0; no position, no row."""
    bridge = shapely.LineString([(11.0, 47.999), (11.0, 48.001)])
    geojson = tmp_path / "bridges.geojson"
    geojson.write_bytes(_collection(bridge, None, shapely.Point()))
    result = import_map(placed.store, geojson, "bridge", 250.0)
    assert (result.features, result.frames, result.near) == (1, 3, 2)
    assert result.columns == {"near_bridge": "INTEGER", "bridge_distance_m": "DOUBLE"}
    assert _tagged(placed, "bridge") == [(1, 0), (1, 100), (0, None)]
    parquet = tmp_path / "bridges.parquet"
    geo = {"version": "1.1.0", "primary_column": "shape",
           "columns": {"shape": {"encoding": "WKB", "geometry_types": []}}}  # fmt: skip
    table = pa.table({"shape": [shapely.to_wkb(bridge), None], "name": ["a", "b"]})
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)}), parquet)
    import_map(placed.store, parquet, "map", 250.0, tag="b2")
    assert _tagged(placed, "map") == _tagged(placed, "bridge")
    assert placed.rows("SELECT near_b2 FROM metaocean_view WHERE near_b2 = '1'") == [("1",)] * 2


@pytest.mark.wide
def test_a_second_map_replaces_the_first(placed: Home, tmp_path: Path) -> None:
    """Importing again sets every frame again; an empty map is near nothing."""
    file = tmp_path / "bridges.geojson"
    file.write_bytes(_collection(shapely.Point(11.0, 48.0)))
    import_map(placed.store, file, "bridge", 50.0)
    assert _tagged(placed, "bridge") == [(1, 0), (0, None), (0, None)]
    file.write_bytes(_collection())
    assert import_map(placed.store, file, "bridge", 50.0).near == 0
    assert _tagged(placed, "bridge") == [(0, None)] * 3


def test_refused_maps(tmp_path: Path) -> None:
    """Another coordinate system, metres for degrees, and what is no map: one line each."""
    gauss = {**json.loads(_collection()), "crs": {"properties": {"name": "EPSG:31468"}}}
    geojson = tmp_path / "map.geojson"
    for content, words in (
        (b"", "no GeoJSON"),
        (b"[]", "no GeoJSON"),
        (b'{"type": "FeatureCollection"}', "no GeoJSON"),
        (b'{"type": "Feature", "geometry": {"type": "Blob", "coordinates": []}}', "no GeoJSON"),
        (json.dumps(gauss).encode(), "EPSG:31468"),
        (_collection(shapely.Point(4_468_000, 5_330_000)), "no degrees"),
    ):
        geojson.write_bytes(content)
        with pytest.raises(InvalidInput, match=words) as caught:
            read_features(geojson)
        assert "\n" not in str(caught.value)
    parquet = tmp_path / "map.parquet"
    column: dict[str, object] = {"encoding": "WKB", "crs": {"name": "DHDN / 3-degree zone 4"}}
    for geo, words in (
        (None, "without GeoParquet"),
        ({"primary_column": "g", "columns": {"g": column}}, "DHDN"),
        ({"primary_column": "g", "columns": {"g": {"encoding": "point"}}}, "expected WKB"),
        ({"primary_column": "g", "columns": {}}, "no GeoJSON or GeoParquet"),
    ):
        table = pa.table({"g": pa.array([], pa.binary())})
        if geo is not None:
            table = table.replace_schema_metadata({"geo": json.dumps(geo)})
        pq.write_table(table, parquet)
        with pytest.raises(InvalidInput, match=words):
            read_features(parquet)
    with pytest.raises(StorageError):
        read_features(tmp_path / "none.geojson")


def test_refused_questions(home: Home, tmp_path: Path) -> None:
    """No positions in the catalog, an impossible distance, a name that is no tag's."""
    file = tmp_path / "map.geojson"
    file.write_bytes(_collection(shapely.Point(11.0, 48.0)))
    with pytest.raises(UnknownName, match="tags extract SOURCE bus"):
        import_map(home.store, file, "bridge", 50.0)
    for within in (0.0, -1.0, 1e9, math.nan):
        with pytest.raises(InvalidInput, match="within"):
            import_map(home.store, file, "bridge", within)
    with pytest.raises(InvalidInput, match="tag"):
        import_map(home.store, file, "bridge", 50.0, tag="My Bridge")
    with pytest.raises(InvalidInput, match=r"tag 'scene': .* expected degrees as numbers"):
        import_map(home.store, file, "bridge", 50.0, latitude="scene", longitude="scene")


@pytest.mark.wide
def test_what_is_no_position_on_the_earth_counts_as_none(placed: Home, tmp_path: Path) -> None:
    """Numbers beyond 90 and 180 degrees, as of tags that count pixels: such frames get no row."""
    keys = [row[0] for row in placed.rows("SELECT fkey FROM lake.main.tags_bus ORDER BY fkey")]
    rows = pa.table({
        "fkey": keys,
        "wide": pa.array([90, 2_316_960, -91, 0], pa.int32()),
        "high": pa.array([180, 0, 0, -2_000_000_000], pa.int32()),
    })  # fmt: skip
    families.write(placed.store, "pixels", {"wide": "INTEGER", "high": "INTEGER"}, rows)
    file = tmp_path / "map.geojson"
    file.write_bytes(_collection(shapely.Point(180.0, 90.0)))
    result = import_map(placed.store, file, "pole", 10_000.0, latitude="wide", longitude="high")
    assert (result.frames, result.near) == (1, 1)
    assert _tagged(placed, "pole") == [(1, 0)]
