"""SYSCAT.TABLES and SYSCAT.COLUMNS: what a statement may name."""

import pytest

from catalog.errors import SqlError
from catalog.store import CatalogStore
from query.frames.count_frames import count_frames
from query.question.question import Question
from tests.query.catalogs import class_names, rows


def test_tables_are_those_that_can_be_asked(store: CatalogStore) -> None:
    """Each of them, under Db2's names, with as many columns as it gives."""
    listed = rows(store, "select tabname, colcount, type, tabschema from syscat.tables")
    names = {str(name) for name, *_ in listed}
    assert {"METAOCEAN", "METAOCEAN_VIEW", *(f"T_{tag.upper()}" for tag in class_names())} <= names
    assert not {name for name in names if "." in name or name == "FRAMES"}
    assert {(kind, schema) for _, _, kind, schema in listed} == {
        ("T", "BLUADMIN"), ("V", "BLUADMIN"),
    }  # fmt: skip
    for name, count, *_ in listed:
        table = f'select * from bluadmin."{name}" fetch first 1 row only'
        assert all(len(row) == count for row in rows(store, table))


def test_columns_have_db2_s_types(store: CatalogStore) -> None:
    """By their tables and places; names may have their schema before them, in every clause."""
    statement = (
        "SELECT columns.colname, colno, typename, length, nulls FROM SYSCAT.COLUMNS "
        "WHERE syscat.columns.tabname = 'T_CAR' ORDER BY colno"
    )
    assert rows(store, statement) == [
        ("FKEY", 0, "VARCHAR", 2048, "N"), ("VALUE", 1, "VARCHAR", 4096, "Y"),
    ]  # fmt: skip
    kinds = rows(
        store,
        "select colname, typename, length, scale from syscat.columns c join syscat.tables t "
        "on c.tabname = t.tabname where t.tabname = 'METAOCEAN' and colname in "
        "('MTIME', 'SIZE', 'PATH') order by 1",
    )
    assert kinds == [
        ("MTIME", "TIMESTAMP", 10, 6), ("PATH", "VARCHAR", 4096, 0), ("SIZE", "BIGINT", 8, 0),
    ]  # fmt: skip
    tags = "select count(*) from syscat.tables where tabname like 'T!_%' escape '!'"
    assert int(str(rows(store, tags)[0][0])) > len(class_names())


def test_a_question_may_ask_them(store: CatalogStore) -> None:
    """In a sub-select, as any other view."""
    some = "(select 1 from syscat.tables where tabname = 'T_CAR')"
    assert count_frames(store, Question(where=f"exists {some}"))[0] == 24
    assert count_frames(store, Question(where=f"not exists {some}"))[0] == 0


@pytest.mark.parametrize(
    "text",
    [
        "select 1 from syscat.views", "select 1 from syscat.tables2", "select 1 from tables",
        "select nope from syscat.tables", "select 1 from x.syscat.tables",
        "select 1 from bluadmin.tables", "select 1 from sysibm.systables",
        "select 1 from information_schema.tables", "select sql from syscat.tables",
    ],
)  # fmt: skip
def test_no_other_catalog(store: CatalogStore, text: str) -> None:
    """Neither more of Db2's nor anything of the engine's."""
    with pytest.raises(SqlError):
        rows(store, text)
