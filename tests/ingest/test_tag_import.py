"""Tags imported from CSV and Parquet: matching, types, and every row accounted for."""

import csv
import io
import os
import shutil
import subprocess
import sys
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd  # type: ignore[import-untyped,unused-ignore]
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.errors import InvalidInput, StorageError
from catalog.memory.keeper import MemoryKeeper
from catalog.store import CatalogStore
from catalog.tags import families
from catalog.tags.tags import add_tag
from catalog.values import make_fkey
from ingest.imports.tag_import import TagImport, import_tags, parse_types
from query.run.result_format import encoded
from query.run.run_sql import run_sql
from tests.ingest.scene_folders import SCENE, Home, frame_key, make_tree


def _name(number: int) -> str:
    return frame_key("camera", number).rpartition("/")[2]


def _fkey(number: int, source: str = "a2d2") -> str:
    return make_fkey("host1", source, frame_key("camera", number))


@pytest.fixture(scope="module")
def scanned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with frames 1 to 4 of source a2d2; not to be changed."""
    folder = tmp_path_factory.mktemp("cars")
    home = Home.at(folder / "home")
    home.scan(home.add(make_tree(folder / "tree", frames=4)))
    home.store.close()
    home.records.engine.dispose()
    return folder / "home"


@pytest.fixture
def cars(scanned: Path, tmp_path: Path) -> Home:
    """A copy of it."""
    return Home.at(Path(shutil.copytree(scanned, tmp_path / "home")))


def _csv(folder: Path, *lines: str, end: str = "\r\n") -> Path:
    file = folder / "tags.csv"
    file.write_bytes("".join(line + end for line in lines).encode())
    return file


def _problems(result: TagImport) -> list[tuple[int, str]]:
    return [(row["line"], row["kind"]) for row in result.problems.to_pylist()]


@pytest.mark.wide
def test_what_sql_wrote_is_taken(cars: Home, tmp_path: Path) -> None:
    """`sql ... --format csv-named` names files by FKEY: no --key, no --key-column is needed."""
    rows = pa.table({"fkey": [_fkey(1), _fkey(2)], "weather": ["rain, then snow", 'a "b"']})
    families.write(cars.store, "sky", {"weather": "VARCHAR"}, rows)
    before = cars.rows("SELECT fkey, value FROM t_weather ORDER BY fkey")
    statement = "SELECT fkey, weather FROM metaocean_view WHERE weather IS NOT NULL"
    file = tmp_path / "tags.csv"
    answer = run_sql(cars.store, statement).rows
    file.write_bytes(b"".join(encoded("csv-named", answer.schema, answer.to_batches())))
    families.drop(cars.store, "sky")
    result = import_tags(cars.store, file, "sky")
    assert (result.imported, result.unmatched, result.ignored) == (2, 0, ())
    assert cars.rows("SELECT fkey, value FROM t_weather ORDER BY fkey") == before


def test_a_labels_csv_as_the_proof_of_concept_wrote_it(cars: Home, tmp_path: Path) -> None:
    r"""A2D2_labels.csv's ways: path columns, CRLF, values like "0\r", dirty names: all trimmed."""
    file = _csv(
        tmp_path,
        "path,filename,datasource,platform,Bicycle ,rain_dirt\r",
        f"a2d2/,{_name(1)},a2d2,IBM COS,931,0\r",
        f"a2d2/,{_name(2)},a2d2,IBM COS, 12 ,3\r",
    )
    result = import_tags(cars.store, file, "daaa", prefix="daaa_")
    assert (result.rows, result.imported, result.problems.num_rows) == (2, 2, 0)
    assert result.columns == {"daaa_bicycle": "INTEGER", "daaa_rain_dirt": "INTEGER"}
    assert result.ignored == ("path", "datasource", "platform")
    rows = cars.rows("SELECT * FROM lake.main.tags_daaa ORDER BY fkey")
    assert rows == [(_fkey(1), 931, 0), (_fkey(2), 12, 3)]
    with pytest.raises(InvalidInput, match="tag 'bicycle' belongs to family class_pixels"):
        import_tags(cars.store, file, "again")


def test_every_row_is_accounted_for(cars: Home, tmp_path: Path) -> None:
    """Rows that name nothing, a file again, no key, or are broken are reported by line."""
    file = _csv(
        tmp_path,
        "filename,weather,rating",
        f"{_name(1)},rain,1",
        "nowhere.png,rain,2",
        f"{_name(1)},snow,3",
        ",rain,4",
        f"{_name(2)},sun",
        "",
        f'{_name(3)},"clear, cold",7',
        f"{_name(4)},fog,high",
    )
    result = import_tags(cars.store, file, "mine", types={"rating": "INTEGER"})
    assert _problems(result) == [
        (3, "unmatched"),
        (4, "repeated"),
        (5, "unmatched"),
        (6, "unreadable"),
        (7, "unmatched"),
        (9, "unreadable"),
    ]
    assert (result.rows, result.imported, result.unmatched, result.repeated) == (8, 2, 3, 1)
    reasons = result.problems["reason"].to_pylist()
    assert reasons[1] == "names the file of line 2"
    assert reasons[3] == "has 2 fields, expected 3"
    assert reasons[5] == "value 'high' of rating is no INTEGER"
    rows = cars.rows("SELECT fkey, weather, rating FROM lake.main.tags_mine ORDER BY fkey")
    assert rows == [(_fkey(1), "rain", 1), (_fkey(3), "clear, cold", 7)]


@pytest.mark.wide
def test_names_that_fit_several_files(home: Home, tmp_path: Path) -> None:
    """A name in two sources is ambiguous; its path, its fkey or the datasource settles it."""
    for name in ("one", "two"):
        home.scan(home.add(make_tree(tmp_path / name, frames=2), name=name))
    file = _csv(tmp_path, "filename,good", f"{_name(1)},true")
    result = import_tags(home.store, file, "mine")
    assert (result.imported, _problems(result)) == (0, [(2, "ambiguous")])
    assert "names 2 files, such as host1:one:" in result.problems["reason"][0].as_py()
    assert families.families(home.store) == []
    assert import_tags(home.store, file, "mine", datasource="two").imported == 1
    whole = f"{tmp_path}/one/{frame_key('camera', 1)}"
    by_path = _csv(tmp_path, "path,good", f"{whole},false", f"{_name(1)},false")
    result = import_tags(home.store, by_path, "mine", key="path")
    assert (result.imported, _problems(result)) == (1, [(3, "unmatched")])
    folder, name = whole.rsplit("/", 1)
    in_two = _csv(tmp_path, "filename,path,good", f"{name},{folder}/,true")
    assert import_tags(home.store, in_two, "mine", key="path").imported == 1
    by_fkey = _csv(tmp_path, "fkey,good", f"{_fkey(2, 'one')},true")
    assert import_tags(home.store, by_fkey, "mine", key="fkey").imported == 1
    assert home.rows("SELECT fkey, good FROM lake.main.tags_mine ORDER BY fkey") == [
        (_fkey(1, "one"), True),
        (_fkey(2, "one"), True),
        (_fkey(1, "two"), True),
    ]


def test_the_end_of_a_path_names_a_file(cars: Home, tmp_path: Path) -> None:
    """A key with folders fits where a file's path ends so at a slash, and nowhere else."""
    ending = frame_key("camera", 1)
    file = _csv(tmp_path, "filename,good", f"{ending},1", f"5028/{ending},1", f"x{_name(2)},1",
                _name(2)[1:] + ",1", f"{frame_key('camera', 3)[1:]},1",
                f"{frame_key('camera', 4).partition('/')[2]},1")  # fmt: skip
    result = import_tags(cars.store, file, "mine")
    assert (result.imported, [line for line, _ in _problems(result)]) == (2, [3, 4, 5, 6])


@pytest.mark.wide
def test_objects_are_matched_by_key_and_base_name(home: Home, tmp_path: Path) -> None:
    """In an object store, where filename is the whole key, both the key and its end fit."""
    home.scan(home.add(make_tree(tmp_path / "tree", frames=2), "IBM COS"))
    file = _csv(tmp_path, "filename,good", f"{frame_key('camera', 1)},1", f"{_name(2)},0")
    assert import_tags(home.store, file, "mine").imported == 2
    file = _csv(tmp_path, "path,filename,good", f"a2d2/,{frame_key('camera', 1)},1")
    assert import_tags(home.store, file, "mine", key="path").imported == 1


@pytest.mark.parametrize(
    ("values", "kind", "first"),
    [
        (["1", "-2"], "INTEGER", 1),
        (["1", ""], "INTEGER", 1),
        (["1", str(2**31)], "BIGINT", 1),
        (["1", "2.5"], "DOUBLE", 1.0),
        (["1e3", ".5"], "DOUBLE", 1000.0),
        (["true", "FALSE"], "BOOLEAN", True),
        (["2026-11-21 08:00:00", "2026-11-22"], "TIMESTAMP", datetime(2026, 11, 21, 8)),  # noqa: DTZ001
        (["007", "8"], "VARCHAR", "007"),
        (["1", "many"], "VARCHAR", "1"),
        (["nan", "1"], "VARCHAR", "nan"),
        (["", " "], "VARCHAR", None),
        (["2026-13-45", "2026-01-01"], "VARCHAR", "2026-13-45"),
        (["1" * 25, "2"], "DOUBLE", float("1" * 25)),
    ],
)
def test_inferred_types(
    cars: Home, tmp_path: Path, values: list[str], kind: str, first: object
) -> None:
    """The narrowest type that fits every value; codes with leading zeros stay text."""
    file = _csv(tmp_path, "filename,mine", *(f"{_name(n)},{v}" for n, v in enumerate(values, 1)))
    result = import_tags(cars.store, file, "mine")
    assert result.columns == {"mine": kind}
    assert cars.rows("SELECT mine FROM lake.main.tags_mine ORDER BY fkey")[0] == (first,)


def test_a_familys_own_types_hold(cars: Home, tmp_path: Path) -> None:
    """A second import keeps the family's type, where its own values would suggest another."""
    import_tags(cars.store, _csv(tmp_path, "filename,score", f"{_name(1)},0.5"), "mine")
    result = import_tags(cars.store, _csv(tmp_path, "filename,score", f"{_name(2)},1"), "mine")
    assert result.columns == {"score": "DOUBLE"}
    result = import_tags(cars.store, _csv(tmp_path, "filename,score", f"{_name(3)},best"), "mine")
    assert (result.imported, _problems(result)) == (0, [(2, "unreadable")])
    with pytest.raises(InvalidInput, match="is DOUBLE, got INTEGER"):
        import_tags(
            cars.store,
            _csv(tmp_path, "filename,score", f"{_name(2)},1"),
            "mine",
            types={"score": "INTEGER"},
        )


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_other_csv_forms(cars: Home, tmp_path: Path, delimiter: str) -> None:
    """Semicolons and tabs, a byte-order mark, LF or CR alone as line end."""
    lines = [delimiter.join(("filename", "mine")), delimiter.join((_name(1), "7"))]
    for end in ("\n", "\r", "\r\n"):
        file = tmp_path / "tags.csv"
        file.write_bytes(b"\xef\xbb\xbf" + end.join(lines).encode())
        assert import_tags(cars.store, file, "mine").imported == 1


def test_parquet(cars: Home, tmp_path: Path) -> None:
    """Parquet's types are kept; texts are trimmed; a given type converts; lines are its rows."""
    file = tmp_path / "tags.parquet"
    columns = {
        "fkey": [_fkey(1), _fkey(2), "gone"],
        "score": pa.array([0.5, None, 1.0], pa.float32()),
        "number": pa.array([1, 2, 3], pa.int16()),
        "unsigned": pa.array([1, 2**32 - 1, 3], pa.uint32()),
        "flag": [True, None, False],
        "text": ["0\r", "", " x "],
        "whole": pa.array([1.0, 2.0, 3.0]),
    }
    pq.write_table(pa.table(columns), file)
    result = import_tags(cars.store, file, "mine", key="fkey", types={"whole": "INTEGER"})
    assert result.columns == {"score": "DOUBLE", "number": "INTEGER", "unsigned": "BIGINT",
                              "flag": "BOOLEAN", "text": "VARCHAR", "whole": "INTEGER"}  # fmt: skip
    assert _problems(result) == [(4, "unmatched")]
    rows = cars.rows("SELECT * EXCLUDE (fkey) FROM lake.main.tags_mine ORDER BY fkey")
    assert rows == [(0.5, 1, 1, True, "0", 1), (None, 2, 2**32 - 1, None, None, 2)]


def test_refused_files(cars: Home, tmp_path: Path) -> None:
    """What is no table, names a column twice or has no tag is refused with one line."""
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"filename,a\n\xff\xfe,1\n")
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1")
    lists = tmp_path / "lists.parquet"
    pq.write_table(pa.table({"fkey": ["x"], "many": [[1, 2]]}), lists)
    for file, words in (
        (_csv(tmp_path, ""), "is empty"),
        (binary, "cannot be read"),
        (broken, "cannot be read"),
        (lists, "many"),
    ):
        with pytest.raises(InvalidInput, match=words):
            import_tags(cars.store, file, "mine")
    for lines, words in (
        (("filename,a,A", "x,1,2"), "'a' is there 2 times"),
        (("filename,path", "x,y"), "no column beside"),
        (("filename,my tag", "x,y"), "tag 'my tag'"),
    ):
        with pytest.raises(InvalidInput, match=words):
            import_tags(cars.store, _csv(tmp_path, *lines), "mine")
    good = _csv(tmp_path, "filename,a", f"{_name(1)},1")
    with pytest.raises(InvalidInput, match="no column 'other'"):
        import_tags(cars.store, good, "mine", key_column="other")
    with pytest.raises(InvalidInput, match="type of 'b'"):
        import_tags(cars.store, good, "mine", types={"b": "INTEGER"})
    with pytest.raises(InvalidInput, match="expected TAG=TYPE"):
        parse_types(["a:INTEGER"])
    with pytest.raises(StorageError, match="cannot be read"):
        import_tags(cars.store, tmp_path / "none.csv", "mine")
    assert parse_types(["a=double"]) == {"a": "DOUBLE"}
    assert families.families(cars.store) == []


_field = st.text(st.sampled_from('ab",;\r \t1é'), max_size=4)
_row = st.tuples(st.sampled_from([1, 2, 3, 4, None]), _field)


@pytest.mark.wide
@settings(max_examples=12, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(st.lists(_row, min_size=1, max_size=8))
def test_any_table_equals_reading_it_slowly(
    cars: Home, tmp_path: Path, rows: list[tuple[int | None, str]]
) -> None:
    """Any values, quoted as CSV does it: a file's first row counts, every other is reported."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(["filename", "mine"])
    expected: dict[str, str | None] = {}
    for number, value in rows:
        writer.writerow([_name(number) if number else "gone.png", value])
        if number is not None and _fkey(number) not in expected:
            expected[_fkey(number)] = value.replace("\r", "").strip(" \t") or None
    file = tmp_path / "tags.csv"
    file.write_bytes(text.getvalue().encode())
    result = import_tags(cars.store, file, "mine", types={"mine": "VARCHAR"})
    assert result.rows == len(rows)
    assert result.imported + result.problems.num_rows == len(rows)
    stored = cars.rows("SELECT fkey, mine FROM lake.main.tags_mine") if expected else []
    if expected:
        families.drop(cars.store, "mine")
    assert {str(key): value for key, value in stored} == expected


def test_scene_is_a_word_of_the_catalog(cars: Home, tmp_path: Path) -> None:
    """A column that another family has is refused, with the way out."""
    file = _csv(tmp_path, "filename,scene", f"{_name(1)},{SCENE}")
    with pytest.raises(InvalidInput, match="tag 'scene' belongs to family frame already"):
        import_tags(cars.store, file, "mine")
    assert import_tags(cars.store, file, "mine", prefix="my-").columns == {"my-scene": "VARCHAR"}


_IMPORT_IN = """
import sys
from pathlib import Path
from ingest.imports.tag_import import import_tags
from tests.ingest.scene_folders import Home
home = Home.at(Path(sys.argv[1]))
for file in sys.argv[2:]:
    print(dict(import_tags(home.store, Path(file), Path(file).stem).columns))
"""


@pytest.mark.wide
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_a_time_with_a_zone_is_one_moment_everywhere(cars: Home, tmp_path: Path, zone: str) -> None:
    """An offset makes UTC, of Parquet and CSV, on machines of any TZ; else the time is kept as is.

    DuckDB reads TZ once, so each zone has a process of its own.
    """
    moments = [datetime(2018, 8, 7, 12, n, tzinfo=ZoneInfo("Europe/Berlin")) for n in (0, 1)]
    names = [_name(1), _name(2)]
    typed = {
        "filename": names,
        "seen": pa.array(moments, pa.timestamp("ns", "Europe/Berlin")),
        "local": pa.array([moment.replace(tzinfo=None) for moment in moments]),
    }
    pq.write_table(pa.table(typed), tmp_path / "a.parquet")
    texts = ["2018-08-07 12:00:00+02:00", "2018-08-07T10:01:00Z"]
    spelled = ["2018-08-07 12:00+0200", "2018-08-07 10:01 Z"]
    rows = zip(names, texts, spelled, strict=True)
    file = _csv(tmp_path, "filename,b,c", *(",".join(row) for row in rows))
    cars.close()
    folder = tmp_path / "home"
    done = subprocess.run(
        [sys.executable, "-c", _IMPORT_IN, str(folder), str(tmp_path / "a.parquet"), str(file)],
        env={**os.environ, "TZ": zone},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "'b': 'TIMESTAMP', 'c': 'TIMESTAMP'" in done.stdout
    home = Home.at(folder)
    put = pa.table({"fkey": [_fkey(1), _fkey(2)], "d": texts})
    families.write(home.store, "own", {"d": "TIMESTAMP"}, put)  # as a policy gives texts
    query = "SELECT seen, local, b, c, d FROM metaocean_view WHERE seen NOTNULL ORDER BY fkey"
    columns = [list(column) for column in zip(*home.rows(query), strict=True)]
    utc = ["2018-08-07 10:00:00", "2018-08-07 10:01:00"]
    assert columns == [utc, ["2018-08-07 12:00:00", "2018-08-07 12:01:00"], utc, utc, utc]


def test_nan_is_no_value(cars: Home, tmp_path: Path) -> None:
    """By Parquet, by CSV, by what writes rows itself; infinity is reported, and not kept."""
    names = [_name(n) for n in (1, 2, 3, 4)]
    numbers = [10, float("nan"), 30, float("nan")]
    table = {"filename": names, "double": numbers, "whole": numbers}
    floats = {f"float{bits}": pa.array(numbers, kind) for bits, kind in
              ((16, pa.float16()), (32, pa.float32()))}  # fmt: skip
    pq.write_table(pa.table({**table, **floats}), tmp_path / "t.parquet")
    result = import_tags(cars.store, tmp_path / "t.parquet", "mine", types={"whole": "INTEGER"})
    assert (result.imported, result.notes) == (4, ())
    assert result.columns == {"double": "DOUBLE", "whole": "INTEGER",
                              "float16": "DOUBLE", "float32": "DOUBLE"}  # fmt: skip
    stored = cars.rows("SELECT * EXCLUDE (fkey) FROM lake.main.tags_mine ORDER BY fkey")
    assert stored == [(10, 10, 10, 10), (None,) * 4, (30, 30, 30, 30), (None,) * 4]
    file = _csv(tmp_path, "filename,double,whole", f"{names[0]},NaN,nan", f"{names[2]},inf,7")
    result = import_tags(cars.store, file, "mine")
    assert [row["reason"] for row in result.problems.to_pylist()] == [
        "value 'inf' of double is no DOUBLE"
    ]
    pq.write_table(
        pa.table({"filename": [names[2]], "double": [float("inf")]}), tmp_path / "i.parquet"
    )
    assert _problems(import_tags(cars.store, tmp_path / "i.parquet", "mine")) == [(2, "unreadable")]
    rows = pa.table({"fkey": [_fkey(4)], "double": [float("nan")]})
    families.write(cars.store, "mine", {"double": "DOUBLE"}, rows)
    stored = cars.rows("SELECT double, whole FROM lake.main.tags_mine ORDER BY fkey")
    assert stored == [(None, None), (None, None), (30, 30), (None, None)]


@pytest.mark.wide
@pytest.mark.parametrize("value", ["N/A", "nan", "0,5"])
def test_a_column_that_one_value_makes_a_text(cars: Home, tmp_path: Path, value: str) -> None:
    """The import says which value; the mended file makes its tag a number, whatever others have.

    Not while another file's value hinders it, not of a tag that was asked to be a text.
    """
    names = [_name(n) for n in (1, 2, 3)]
    rest = f"{_name(4)},,0.25,7,x,2"
    lines = [f"{names[0]},1,0.5,7,a,1", f'{names[1]},2,"{value}",8,b,2', f"{names[2]},3,1,09,c,3"]
    file = _csv(tmp_path, "filename,n,score,code,word,asked", *lines, rest)
    add_tag(cars.store, "asked", "text", family="mine")
    result = import_tags(cars.store, file, "mine")
    assert result.columns["score"] == "VARCHAR"
    hint = "; a number has a decimal point" if "," in value else ""
    assert result.notes == (
        f"score: text, because of '{value}' in line 3{hint}",
        "code: text, because of '09' in line 4",
    )
    mended = [line.replace(f'"{value}"', "3").replace(",09,", ",9,") for line in lines]
    result = import_tags(cars.store, _csv(tmp_path, "filename,score", f"{names[0]},0.75"), "mine")
    assert result.notes == (f"score: text, because of '{value}' of {_fkey(2)}",)
    header = "filename,n,score,code,word,asked"
    result = import_tags(cars.store, _csv(tmp_path, header, *mended), "mine")
    assert (result.notes, result.columns) == (
        (), {"n": "INTEGER", "score": "DOUBLE", "code": "INTEGER", "word": "VARCHAR",
             "asked": "VARCHAR"})  # fmt: skip
    query = "SELECT n, score, code, word, asked FROM lake.main.tags_mine ORDER BY fkey"
    assert cars.rows(query) == [
        (1, 0.5, 7, "a", "1"), (2, 3.0, 8, "b", "2"), (3, 1.0, 9, "c", "3"),
        (None, 0.25, 7, "x", "2"),
    ]  # fmt: skip
    assert cars.rows("SELECT value FROM t_score ORDER BY fkey") == [
        ("0.5",), ("3.0",), ("1.0",), ("0.25",)
    ]  # fmt: skip


@pytest.mark.wide
def test_a_type_that_is_asked_for_holds(cars: Home, tmp_path: Path) -> None:
    """Not a wider one, and not against another file's value; a text that is asked for stays one."""
    names = [_name(n) for n in (1, 2, 3)]
    first = _csv(tmp_path, "filename,score", f"{names[0]},0.5", f"{names[1]},N/A")
    import_tags(cars.store, first, "mine")
    whole = _csv(tmp_path, "filename,score", f"{names[1]},2")
    with pytest.raises(InvalidInput, match=r"stays VARCHAR: '0.5' of host1.* is no INTEGER"):
        import_tags(cars.store, whole, "mine", types={"score": "INTEGER"})
    assert import_tags(cars.store, whole, "mine").columns == {"score": "DOUBLE"}
    families.drop(cars.store, "mine")
    first = _csv(tmp_path, "filename,score", f"{names[0]},0.5", f"{names[1]},N/A")
    import_tags(cars.store, first, "mine")
    whole = _csv(tmp_path, "filename,score", f"{names[1]},2")
    assert import_tags(cars.store, whole, "mine", types={"score": "VARCHAR"}).notes == ()
    assert import_tags(cars.store, whole, "mine").columns == {"score": "VARCHAR"}
    assert cars.rows("SELECT value FROM t_score ORDER BY fkey") == [("0.5",), ("2",)]


def test_decimal_commas_alone_are_named(cars: Home, tmp_path: Path) -> None:
    """As a table of a German spreadsheet has them: no value is a number, and the import says so."""
    file = _csv(tmp_path, "filename;score;word", f"{_name(1)};0,5;a,b", f"{_name(2)};1,25;c")
    result = import_tags(cars.store, file, "mine")
    assert result.columns == {"score": "VARCHAR", "word": "VARCHAR"}
    assert result.notes == (
        "score: text, because of '0,5' in line 2; a number has a decimal point",
    )
    file = _csv(tmp_path, "filename;score;word", f"{_name(1)};0.5;a,b", f"{_name(2)};1.25;c")
    assert import_tags(cars.store, file, "mine").columns == {"score": "DOUBLE", "word": "VARCHAR"}


@pytest.mark.wide
def test_a_snapshot_in_memory_hinders_no_change_of_type(cars: Home, tmp_path: Path) -> None:
    """A server holds the catalog in memory, where no comment tells what was asked for."""
    hot = CatalogStore(cars.store.location, threads=1, snapshot_memory_mb=100)
    for value, kind in (("N/A", "VARCHAR"), ("2", "INTEGER")):
        file = _csv(tmp_path, "filename,score", f"{_name(1)},1", f"{_name(2)},{value}")
        assert import_tags(hot, file, "mine").columns == {"score": kind}
        hot.snapshot()
        assert isinstance(hot.memory, MemoryKeeper)
        assert hot.memory.wait(300)
        with hot.reading() as snapshot:
            assert snapshot.layout.in_memory
            rows = snapshot.execute("SELECT value FROM t_score ORDER BY fkey").fetchall()
        assert rows == [("1",), (value,)]
    hot.close()


@pytest.mark.wide
def test_the_index_of_pandas_is_left_out(cars: Home, tmp_path: Path) -> None:
    """Of CSV and Parquet, with a word; but not where it names the files, or has other values."""
    rows = [f"0,{_name(1)},1", f"1,{_name(2)},0"]
    for number, header in enumerate((",filename,fog", "Unnamed: 0,image,fog")):
        result = import_tags(
            cars.store, _csv(tmp_path, header, *rows), f"f{number}", prefix=f"a{number}_"
        )
        assert (result.imported, list(result.columns)) == (2, [f"a{number}_fog"])
        assert "left out" in result.notes[0]
    frame = pd.DataFrame({"filename": [_name(1), _name(2)], "fog": [1, 0]}, index=[4, 7])
    frame.to_parquet(tmp_path / "t.parquet")
    result = import_tags(cars.store, tmp_path / "t.parquet", "c", prefix="c_")
    assert (result.imported, list(result.columns)) == (2, ["c_fog"])
    assert result.ignored == ("__index_level_0__",)
    with pytest.raises(InvalidInput, match=r"belongs to family c already.*left out, an index"):
        import_tags(cars.store, tmp_path / "t.parquet", "d", prefix="c_")
    unnamed_key = _csv(tmp_path, ",mist", f"{_name(1)},1")
    assert import_tags(cars.store, unnamed_key, "d").imported == 1
    with pytest.raises(InvalidInput, match="column 3 has no name"):
        import_tags(cars.store, _csv(tmp_path, "filename,a,", f"{_name(1)},1,dense"), "d")
    with pytest.raises(InvalidInput, match="no column"):
        import_tags(cars.store, _csv(tmp_path, "", "1"), "d")


def test_a_file_in_another_encoding(cars: Home, tmp_path: Path) -> None:
    """Its line, the encoding that it seems to have, and the command that changes it."""
    file = tmp_path / "tags.csv"
    text = f"filename,street\r\n{_name(1)},Weg\r\n{_name(2)},Stra\u00dfe\r\n"
    file.write_bytes(text.encode("cp1252"))
    with pytest.raises(InvalidInput) as refused:
        import_tags(cars.store, file, "mine")
    assert "line 3 is not UTF-8 (byte 0xdf" in str(refused.value)
    assert ".png,Stra\u00dfe' if it is Windows-1252" in str(refused.value)
    assert "iconv -f CP1252 -t UTF-8" in str(refused.value)
    file.write_bytes(text.encode("utf-16"))
    with pytest.raises(InvalidInput, match=r"line 1 is not UTF-8 .* iconv -f UTF-16 -t UTF-8"):
        import_tags(cars.store, file, "mine")
    file.write_bytes(text.encode("utf-8-sig"))
    assert import_tags(cars.store, file, "mine").imported == 2


@pytest.mark.wide
@pytest.mark.parametrize("most_bytes", [None, 2**24])
def test_every_type_of_parquet_is_taken_or_refused_in_a_sentence(
    cars: Home, tmp_path: Path, most_bytes: int | None
) -> None:
    """By the command and as REST reads it, alike: no type depends on the door."""
    whole = [1, 2]
    moment = [datetime(2018, 8, 7, 12), datetime(2018, 8, 7, 13)]  # noqa: DTZ001
    days = [each.date() for each in moment]
    taken = {
        "half": (pa.array(np.array(whole, np.float16)), "DOUBLE"),
        "money": (pa.array([Decimal("1.5"), None], pa.decimal128(9, 2)), "DOUBLE"),
        "longer": (pa.array([Decimal("1.5"), None], pa.decimal256(50, 2)), "DOUBLE"),
        "numbers": (pa.array(["1", "2"]).dictionary_encode(), "INTEGER"),
        "words": (pa.array(["a", "b"]).dictionary_encode(), "VARCHAR"),
        "nothing": (pa.nulls(2), "VARCHAR"),
        "long_text": (pa.array(["a", "b"], pa.large_string()), "VARCHAR"),
        "view": (pa.array(["a", "b"], pa.string_view()), "VARCHAR"),
        "day": (pa.array(days), "TIMESTAMP"),
        "old_day": (pa.array(days, pa.date64()), "TIMESTAMP"),
        "nanoseconds": (pa.array(moment, pa.timestamp("ns")), "TIMESTAMP"),
        "unsigned": (pa.array(whole, pa.uint64()), "BIGINT"),
        "byte": (pa.array(whole, pa.int8()), "INTEGER"),
    }
    refused = {
        "clock": pa.array([each.time() for each in moment], pa.time64("us")),
        "span": pa.array(whole, pa.duration("s")),
        "bytes": pa.array([b"a", b"b"]),
        "fixed": pa.array([b"a", b"b"], pa.binary(1)),
        "list": pa.array([[1], [2]]),
        "record": pa.array([{"a": 1}, {"a": 2}]),
    }
    file = tmp_path / "t.parquet"
    names = {"filename": [_name(1), _name(2)]}
    pq.write_table(pa.table(names | {name: column for name, (column, _) in taken.items()}), file)
    result = import_tags(cars.store, file, "mine", most_bytes=most_bytes)
    assert result.columns == {name: kind for name, (_, kind) in taken.items()}
    assert result.imported == 2
    for name, column in refused.items():
        pq.write_table(pa.table(names | {name: column}), file)
        with pytest.raises(InvalidInput, match=f"'{name}' is .*; expected numbers, texts or times"):
            import_tags(cars.store, file, "mine", most_bytes=most_bytes)
    pq.write_table(pa.table({"filename": [[1], [2]], "a": whole}), file)
    with pytest.raises(InvalidInput, match=r"column 'filename' is .*; expected "):
        import_tags(cars.store, file, "mine", most_bytes=most_bytes)
