"""Tag families: names, types, rows set and replaced, views."""

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.errors import InvalidInput, NotFound
from catalog.lake.schema import CLASS_PIXELS, FILES, FRAME_TAGS
from catalog.tags import families
from catalog.values import make_fkey
from tests.ingest.scene_folders import Home, frame_key, make_tree
from tests.templates import Templates


def _fkey(number: int) -> str:
    return make_fkey("host1", "a2d2", frame_key("camera", number))


def _rows(**columns: list[object]) -> pa.Table:
    numbers = columns.pop("frame")
    keys = [_fkey(n) if isinstance(n, int) else n for n in numbers]
    return pa.table({"fkey": pa.array(keys, pa.string()), **columns})


def make_four_frames(folder: Path) -> None:
    """A home with frames 1 to 4, and their files."""
    home = Home.at(folder / "home")
    home.scan(home.add(make_tree(folder / "tree", frames=4)))
    home.close()


@pytest.fixture
def home(templates: Templates, tmp_path: Path) -> Home:
    """A copy of that home."""
    templates.copy(make_four_frames, tmp_path)
    return Home.at(tmp_path / "home")


@pytest.mark.wide
def test_every_type_reaches_the_views(home: Home) -> None:
    """A value of each type is text in metaocean_view and t_<tag>; an unknown one is absent."""
    columns = {"flag": "BOOLEAN", "whole": "INTEGER", "large": "BIGINT", "speed": "DOUBLE",
               "u2-source": "VARCHAR", "seen": "TIMESTAMP"}  # fmt: skip
    moment = datetime(2026, 11, 21, 8)  # noqa: DTZ001 (naive, as tags are)
    rows = _rows(frame=[1, 2], flag=[True, None], whole=[7, None], large=[2**40, None],
                 speed=[1.5, None], seen=[moment, None])  # fmt: skip
    rows = rows.append_column("u2-source", pa.array(["COS", None]))
    assert families.write(home.store, "mine", columns, rows).rows == 2
    wide = 'SELECT flag, whole, large, speed, "u2-source", seen FROM metaocean_view WHERE fkey = ?'
    assert home.rows(wide, _fkey(1)) == [
        ("true", "7", str(2**40), "1.5", "COS", "2026-11-21 08:00:00")
    ]
    assert home.rows(wide, _fkey(2)) == [(None,) * 6]
    assert home.rows('SELECT fkey, value FROM "t_u2-source"') == [(_fkey(1), "COS")]


def test_rows_replace_only_the_tags_they_bring(home: Home) -> None:
    """A second write sets its own tags again, keeps the others, and adds rows and tags."""
    columns = {"speed": "DOUBLE", "gear": "INTEGER"}
    families.write(home.store, "bus", columns, _rows(frame=[1, 2], speed=[1.0, 2.0], gear=[3, 4]))
    families.write(home.store, "bus", {"gear": "INTEGER", "brake": "DOUBLE"},
                   _rows(frame=[2, 3], gear=[5, 6], brake=[0.5, None]))  # fmt: skip
    assert home.rows("SELECT speed, gear, brake FROM lake.main.tags_bus ORDER BY fkey") == [
        (1.0, 3, None),
        (2.0, 5, 0.5),
        (None, 6, None),
    ]


def test_unknown_files_are_reported(home: Home) -> None:
    """Rows of files that the catalog does not have are named, and the others written."""
    rows = _rows(frame=[1, "host1:a2d2:gone.png", "no such"], speed=[1.0, 2.0, 3.0])
    written = families.write(home.store, "bus", {"speed": "DOUBLE"}, rows)
    assert (written.rows, written.unknown) == (1, ("host1:a2d2:gone.png", "no such"))
    assert home.rows("SELECT count(*) FROM lake.main.tags_bus") == [(1,)]


def test_one_commit_and_no_large_table_touched(home: Home) -> None:
    """A new family with rows is one snapshot, and the large tables keep their data files."""
    statement = "SELECT data_file FROM ducklake_list_files('lake', ?) ORDER BY data_file"

    def data_files() -> list[object]:
        files: list[object] = []
        for table in (FILES, CLASS_PIXELS, FRAME_TAGS):
            with home.store.writing("look") as connection:
                files += connection.execute(statement, [table]).fetchall()
        return files

    before, snapshot = data_files(), home.store.snapshot()
    families.write(home.store, "bus", {"speed": "DOUBLE"}, _rows(frame=[1, 2], speed=[1.0, 2.0]))
    assert home.store.snapshot() == snapshot + 1
    assert data_files() == before


@pytest.mark.wide
def test_refused_names(home: Home) -> None:
    """Odd spellings, columns, other families' tags and SQL words are refused; nothing is made.

    A family's name is a table's: no hyphen, and not the catalog's own.
    """
    snapshot = home.store.snapshot()
    for tag in (
        *("Speed", "2fast", "", "a b", "-a", "a-", 'a"b', "x" * 65),
        *("car", "front", "scene", "path", "fkey", "nodename", "group"),
        *("left", "select", "value", "image_size"),
    ):
        with pytest.raises(InvalidInput, match="tag"):
            families.write(home.store, "mine", {tag: "DOUBLE"})
    for family in ("frame", "Bus", "", "a-b", "1st", "a b", 'a"', "x" * 65):
        with pytest.raises(InvalidInput, match="tag family"):
            families.write(home.store, family, {"speed": "DOUBLE"})
    assert families.families(home.store) == []
    assert home.store.snapshot() == snapshot


@pytest.mark.wide
def test_refused_rows(home: Home) -> None:
    """A tag of another family, another type, a misfit value, a file twice: refused as a whole."""
    families.write(home.store, "bus", {"gear": "INTEGER"}, _rows(frame=[1], gear=[1]))
    with pytest.raises(InvalidInput, match="belongs to family bus"):
        families.write(home.store, "other", {"gear": "INTEGER"})
    with pytest.raises(InvalidInput, match="is INTEGER, got DOUBLE"):
        families.write(home.store, "bus", {"gear": "DOUBLE"})
    with pytest.raises(InvalidInput, match="type 'FLOAT'"):
        families.write(home.store, "bus", {"new": "FLOAT"})
    with pytest.raises(InvalidInput, match="does not fit"):
        families.write(home.store, "bus", {}, _rows(frame=[2], gear=["third"]))
    with pytest.raises(InvalidInput, match="twice"):
        families.write(home.store, "bus", {}, _rows(frame=[2, 2], gear=[1, 2]))
    with pytest.raises(InvalidInput, match="no tag 'odd'"):
        families.write(home.store, "bus", {}, _rows(frame=[2], odd=[1]))
    assert home.rows("SELECT fkey, gear FROM lake.main.tags_bus") == [(_fkey(1), 1)]


@pytest.mark.wide
def test_drop(home: Home) -> None:
    """A dropped family leaves list, views and current snapshot; its name and tags are free."""
    families.write(home.store, "bus", {"speed": "DOUBLE"}, _rows(frame=[1], speed=[1.0]))
    families.write(home.store, "map", {"near_bridge": "INTEGER"})
    snapshot = home.store.snapshot()
    assert families.drop(home.store, "bus") == 1
    assert [family.name for family in families.families(home.store)] == ["map"]
    views = {row[0] for row in home.rows("SELECT view_name FROM duckdb_views()")}
    assert "t_speed" not in views
    assert "t_near_bridge" in views
    assert home.rows(f"SELECT speed FROM lake.main.tags_bus AT (VERSION => {snapshot})") == [(1.0,)]
    with pytest.raises(NotFound, match="known: map"):
        families.drop(home.store, "bus")
    families.write(home.store, "other", {"speed": "INTEGER"}, _rows(frame=[2], speed=[2]))
    assert home.rows("SELECT value FROM t_speed") == [("2",)]


_values = st.none() | st.integers(-100, 100)
_write = st.dictionaries(
    st.integers(1, 5), st.fixed_dictionaries({}, optional={"a": _values, "b": _values})
)


@pytest.mark.wide
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(_write, st.sets(st.sampled_from("ab"), min_size=1)), max_size=4))
def test_any_writes_equal_a_dictionary(
    home: Home, writes: list[tuple[dict[int, dict[str, int | None]], set[str]]]
) -> None:
    """Any sequence of writes leaves what updating plain dictionaries leaves; frame 5 is unknown."""
    families.write(home.store, "any", {"a": "INTEGER", "b": "INTEGER"})
    plain: dict[int, dict[str, int | None]] = {}
    for rows, tags in writes:
        columns = {tag: pa.array([row.get(tag) for row in rows.values()], pa.int32())
                   for tag in sorted(tags)}  # fmt: skip
        table = _rows(frame=list(rows), **columns)
        written = families.write(home.store, "any", {}, table)
        assert written.unknown == ((_fkey(5),) if 5 in rows else ())
        for frame, row in rows.items():
            if frame != 5:
                old = plain.setdefault(frame, {"a": None, "b": None})
                old.update({tag: row.get(tag) for tag in tags})
    stored = home.rows("SELECT fkey, a, b FROM lake.main.tags_any ORDER BY fkey")
    families.drop(home.store, "any")
    assert stored == [(_fkey(frame), row["a"], row["b"]) for frame, row in sorted(plain.items())]
