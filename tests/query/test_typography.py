"""Statements copied out of documents: what a reader takes for the same is the same."""

import time

import pytest

from catalog.errors import SqlError
from catalog.store import CatalogStore
from query.db2.typography import as_typed
from query.frames.count_frames import count_frames
from query.question.question import Question
from tests.query.catalogs import rows

_FI, _BLANK, _MINUS = "\ufb01", "\u00a0", "\u2212"


@pytest.mark.parametrize(
    ("copied", "typed"),
    [
        ("\ufeffselect 1 from t_car", "select 1 from t_car"),
        (f"select {_FI}lename from metaocean", "select filename from metaocean"),
        (f"fetch {_FI}rst 5 rows", "fetch first 5 rows"),
        ("path like \u2018a2d2/%\u2019", "path like 'a2d2/%'"),
        (
            "path like \u2019a2d2/%\u2019 and \u201cgroup\u201d = 1",
            "path like 'a2d2/%' and \"group\" = 1",
        ),
        (f"car{_BLANK}{_MINUS}{_BLANK}1", "car - 1"),
        (
            f"x = '{_FI}{_BLANK}{_MINUS}' and \"{_FI}\" = 1",
            f"x = '{_FI}{_BLANK}{_MINUS}' and \"{_FI}\" = 1",
        ),
        ("x = 'it''s \u2019' -- \u2018", "x = 'it''s \u2019' -- \u2018"),
        ("/* \u2018 */ x = \u2018a\u2019", "/* \u2018 */ x = 'a'"),
        (f"x = 'never ends {_FI}", f"x = 'never ends {_FI}"),
        ("select 1", "select 1"),
    ],
)
def test_signs_of_documents(copied: str, typed: str) -> None:
    """Read as they are meant outside of straight quotes, and as they are inside; twice the same."""
    assert as_typed(copied) == typed
    assert as_typed(as_typed(copied)) == typed


def test_statements_and_conditions(store: CatalogStore) -> None:
    """Both take them, in every clause."""
    plain = "select filename from metaocean where path like 'a2d2/%' and size > 0 order by 1"
    copied = (
        f"\ufeffselect {_FI}lename{_BLANK}from metaocean where path like \u2018a2d2/%\u2019 "
        f"and size > 0 order by 1"
    )
    assert rows(store, copied) == rows(store, plain) != []
    condition = f"\ufeffcar {_MINUS} 1 > 10000 and scene like \u20182026%\u2019"
    count, _ = count_frames(store, Question(where="car - 1 > 10000 and scene like '2026%'"))
    assert count_frames(store, Question(where=condition))[0] == count > 0


def test_a_letter_that_looks_like_another_is_named(store: CatalogStore) -> None:
    """A Cyrillic one, in a column and in a table: the name looks like its nearest."""
    for statement in ("select filen\u0430me from metaocean", "select 1 from met\u0430ocean"):
        with pytest.raises(SqlError, match=r"nearest is .*U\+0430, CYRILLIC SMALL LETTER A\."):
            rows(store, statement)
    with pytest.raises(SqlError) as plain:
        rows(store, "select filenme from metaocean")
    assert "U+" not in str(plain.value)


@pytest.mark.parametrize("part", ["/*", "'", "\u2018", "\u201c", "--", '"', _FI])
def test_time_grows_with_the_text(part: str) -> None:
    """A million of what begins something and does not end it: an end is looked for once."""
    began = time.process_time()
    as_typed(_FI + part * 500_000)
    assert time.process_time() - began < 20  # it takes 0.5 s; looking for each end, hours
