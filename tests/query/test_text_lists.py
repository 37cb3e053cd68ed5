"""Statements whose long lists stood outside become what they become as they are."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import SqlError
from catalog.lake.snapshot import Snapshot
from catalog.store import CatalogStore
from query.db2 import read_only
from query.db2.typography import as_typed
from query.run import prepared
from query.run.run_sql import run_sql
from tests.query.catalogs import DrawnFrame

NAMES = [f"camera/2018_{number:06}.png" for number in range(150)]

FOLDED = (
    "select fkey, size from metaocean where fkey in {}",
    "select filename from metaocean where filename in {}",
    "select filename from metaocean where FILENAME NOT IN {} and size > 5",
    "select count(*) from metaocean m, t_car c where m.fkey = c.fkey and m.filename in {}",
    "select fkey from metaocean where size > 5 and (path in {} or filename in {})",
    "with few as (select fkey from metaocean where filename in {}) select count(*) from few",
    "select * from metaocean_view where filename in {} order by fkey fetch first 9 rows only",
)
WHOLE = (
    "select fkey from metaocean_view where scene in {}",
    "select fkey from metaocean_view where camera in {} and filename in {}",
    "select case when filename in {} then 1 else 0 end from metaocean",
    "select filename from metaocean group by filename having filename in {}",
    "select fkey from metaocean where mtime in {}",
    "select fkey from metaocean where size in {}",
    "select fkey from metaocean where int(filename) in {}",
    "select fkey from metaocean where nothing in {}",
    "select fkey from metaocean where filename in {} -- and more",
    "select fkey from metaocean where path = 'stand_in_for_texts_0_1' and filename in {}",
    "select fkey from metaocean where path in {} and filename in ('a', 'b'",
    "select concat{} from metaocean",
    "select 'filename in (''a'', ''b'')' from metaocean where filename in {}",
)

LISTS: dict[str, list[str]] = {
    "names": NAMES,
    "names, some twice": NAMES + NAMES[:9],
    "other letters": [f"cämera/{number}_日本.png" for number in range(150)],
    "numbers": [str(number) for number in range(150)],
    "times": [f"2018-08-07 14:{number // 60:02}:{number % 60:02}" for number in range(150)],
    "few": NAMES[:99],
    "with blanks at the end": [*NAMES, "a  "],
    "with a quote": [*NAMES, "it's"],
    "with none": [*NAMES, ""],
    "with a long one": [*NAMES, 1_001 * "x"],
    "with a separator": [*NAMES, "a\x1fb"],
    "with half a character": [*NAMES, "\ud800"],
}


def _list(texts: list[str], between: str = ", ") -> str:
    quoted = (text.replace("'", "''") for text in texts)
    return "(" + between.join(f"'{text}'" for text in quoted) + ")"


def _outcome(rewrite: Callable[[str], str], statement: str) -> str:
    try:
        return rewrite(statement)
    except SqlError as error:
        return f"refused: {error}"


def _as_it_is(snapshot: Snapshot, statement: str) -> str:
    return prepared._known(snapshot).rewritten(as_typed(statement))


@pytest.mark.parametrize("kind", LISTS)
def test_any_list_becomes_what_it_is_by_itself(store: CatalogStore, kind: str) -> None:
    """Also where its texts are compared as numbers or times, or are refused."""
    with store.reading() as snapshot:
        for form in (*FOLDED, *WHOLE):
            lists = [_list(LISTS[kind]), _list(LISTS[kind][::-1])][: form.count("{}")]
            statement = form.format(*lists)
            expected = _outcome(lambda text: _as_it_is(snapshot, text), statement)
            for _ in range(2):  # the second time by what is known of its form
                made = _outcome(lambda text: prepared.prepare(snapshot, text), statement)
                assert made == expected, (kind, form)


@pytest.mark.wide
@given(
    st.lists(st.text(min_size=1, max_size=9), min_size=98, max_size=130),
    st.sampled_from([", ", ",", " ,\n\t"]),
    st.sampled_from(FOLDED),
)
def test_drawn_lists(store: CatalogStore, texts: list[str], between: str, form: str) -> None:
    """Whatever characters they have."""
    statement = form.format(*form.count("{}") * [_list(texts, between)])
    with store.reading() as snapshot:
        made = _outcome(lambda text: prepared.prepare(snapshot, text), statement)
        assert made == _outcome(lambda text: _as_it_is(snapshot, text), statement)


def test_another_list_is_not_parsed(
    store: CatalogStore, frames: list[DrawnFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once a statement's form is known; the answer is that of its own list."""
    lengths: list[int] = []
    parse = read_only.parse

    def noted(text: str, schema: read_only.Schema) -> object:
        lengths.append(len(text))
        return parse(text, schema)

    monkeypatch.setattr(read_only, "parse", noted)
    known = run_sql(store, "select fkey from metaocean order by fkey").rows["fkey"].to_pylist()
    assert len(known) > len(frames) / 2
    lengths.clear()
    for first in (0, 1, 2, 3):
        wanted = [*known[first::7][:9], *NAMES]
        asked = f"select fkey from metaocean where fkey in {_list(wanted)} and size >= 0"
        answer = run_sql(store, asked).rows["fkey"].to_pylist()
        assert sorted(answer) == sorted(known[first::7][:9])
    assert len(lengths) <= 3
    assert max(lengths) < 3_500 < len(asked)
