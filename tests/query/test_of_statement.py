"""Frames that a statement chooses: by fkey, or by what published statements show of files."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from catalog.errors import InvalidInput, SqlError
from catalog.frames.frames import register
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from catalog.tags.tags import add_class_tags
from query.frames.select_frames import select_frames
from query.question.describe import describe
from query.question.question import Question
from query.run.run_sql import run_sql
from tests.catalog.some_rows import file, frame, source_names
from tests.query.catalogs import DrawnFrame, rows

_PUBLISHED = [
    one["sql"]
    for one in json.loads((Path(__file__).parent / "real_statements.json").read_text())
    if one["kind"] == "statement"
]
_FRONT = (
    "select platform,datasource,filename from metaocean,t_front,t_center where t_front.fkey="
    "metaocean.fkey and int(t_front.value)=1 and t_center.fkey=metaocean.fkey and "
    "int(t_center.value)=1"
)


def _chosen(store: CatalogStore, sql: str, **more: object) -> list[str]:
    question = Question.model_validate({"sql": sql, **more})
    fkeys: list[str] = select_frames(store, question).frames["fkey"].to_pylist()
    return fkeys


@pytest.mark.parametrize("sql", [one for one in _PUBLISHED if "sum(" not in one])
def test_published_statements_choose_their_frames(
    store: CatalogStore, frames: list[DrawnFrame], sql: str
) -> None:
    """Those whose file is a row of the answer; rows of other files choose nothing."""
    table = run_sql(store, sql).rows
    named = table["filename"].to_pylist()
    assert _chosen(store, sql) == sorted(one.fkey for one in frames if one.key in named)


@pytest.mark.parametrize(
    "sql",
    [
        _FRONT,
        f"{_FRONT} with ur ; ",
        _FRONT.replace("platform,datasource,filename", "path, filename"),
        _FRONT.replace("platform,datasource,filename", "filename"),
        _FRONT.replace("platform,datasource,filename", "*"),
        _FRONT.replace("platform,datasource,filename", "metaocean.*"),
        _FRONT.replace("platform,datasource,filename", "t_front.fkey, int(t_center.value) + 1"),
        f"with few as ({_FRONT}) select filename, platform from few order by filename",
        f"\ufeff{_FRONT.replace('filename', chr(0xFB01) + 'lename')}",
    ],
)
def test_rows_name_files(store: CatalogStore, frames: list[DrawnFrame], sql: str) -> None:
    """By fkey, or by filename with whatever else is there of what names a file."""
    expected = sorted(one.fkey for one in frames if one.camera == "front_center")
    assert 0 < len(expected) < len(frames)
    assert _chosen(store, sql) == expected
    assert _chosen(store, sql, where="car >= 0 -- all", cameras=("front_center",)) == expected
    told = describe(store, Question(sql=sql))
    assert [row[3] for row in rows(store, told.sql.text)] == expected
    assert (told.question.sql, told.question.where) == (sql, None)


@pytest.mark.parametrize(
    ("sql", "kind", "words"),
    [
        (_PUBLISHED[0], InvalidInput, "the statement's columns are 1: expected fkey, or filename"),
        ("select path, car from metaocean_view", InvalidInput, "columns are path, car: expected"),
        ("select filename from nowhere", SqlError, "NOWHERE"),
        (f"{_FRONT}; {_FRONT}", SqlError, "several statements"),
        (f"{_FRONT}) as statement) or (1 = 1", SqlError, "SQL0104N"),
        ("delete from metaocean", SqlError, "DELETE"),
        ("select fkey from read_csv('/etc/passwd')", SqlError, "SQL"),
    ],
)
def test_what_names_no_frames_is_refused(
    store: CatalogStore, sql: str, kind: type[Exception], words: str
) -> None:
    """Never all frames; the message says what columns there are, and which are expected."""
    with pytest.raises(kind, match=words.replace("(", r"\(")):
        _chosen(store, sql)


def test_a_name_that_two_frames_have_is_refused(tmp_path: Path) -> None:
    """In file systems base names recur: the path says which; a label of that name is no frame."""
    store = CatalogStore(CatalogLocation.in_folder(tmp_path))
    names = replace(source_names(), platform="NFS", root="/data")
    images = ["one/7.png", "two/7.png", "one/77.png", "label/77.png"]
    add_class_tags(store, ["car"])
    with store.writing("two folders") as connection:
        register(
            connection,
            names,
            [file(key) for key in [*images, *(f"{image}-label" for image in images[:3])]],
            [frame(key, car=1) for key in images[:3]],
            1,
        )
    every = {"where": "labelled is not null"}
    with pytest.raises(InvalidInput, match=r"2 frames have platform 'NFS', .*filename '7\.png'"):
        _chosen(store, "select platform, datasource, filename from metaocean", **every)
    assert len(_chosen(store, "select path, filename from metaocean", **every)) == 3
    one = _chosen(store, "select filename from metaocean where filename = '77.png'", **every)
    assert [fkey.rpartition(":")[2] for fkey in one] == ["one/77.png"]
