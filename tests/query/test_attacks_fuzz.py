"""Mutations of real statements, and random words: rows or SqlError, never anything else."""

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.errors import FramesiftError, SqlError
from catalog.lake.statement_watch import within
from catalog.store import CatalogStore
from query.frames.select_frames import select_frames
from query.question.question import Question
from query.run.run_sql import run_sql
from tests.query.oracle import answered_or_refused, check_refusal
from tests.query.test_attacks import CLAUSES, STATEMENTS, TABLES, VALUES
from tests.query.test_golden import BODIES
from tests.query.test_golden import STATEMENTS as REAL

FUZZ = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
OTHERS = [
    "select date(mtime) + 1 month - 2 days, days(mtime) from metaocean where mtime > current date",
    "select listagg(value, ',') within group (order by fkey) from t_car group by value",
    "values (1, 'a' concat 'b'), (2, current timestamp - 3 hours)",
    "with a as (select value v from t_car) select case when v > 5 then v end from a order by 1",
    "select rank() over (partition by value order by fkey) from t_car fetch first 3 rows only",
]
PIECES = [*VALUES, *TABLES, *CLAUSES, *STATEMENTS]
WORDS = sorted({word for text in (*REAL, *BODIES, *OTHERS, *PIECES) for word in text.split()})


@pytest.fixture(scope="module")
def store(stored: CatalogStore) -> CatalogStore:
    """Read from Parquet."""
    return stored


@st.composite
def mutations(draw: st.DrawFn, texts: list[str]) -> str:
    """A real statement with words taken out, doubled, exchanged or put in."""
    words = draw(st.sampled_from(texts)).split()
    for _ in range(draw(st.integers(1, 4))):
        position = draw(st.integers(0, len(words)))
        kind = draw(st.sampled_from(["in", "piece", "out", "twice", "swap", "letters"]))
        if kind in ("in", "piece"):
            words.insert(position, draw(st.sampled_from(WORDS if kind == "in" else PIECES)))
        elif not words[position:]:
            continue
        elif kind == "out":
            del words[position]
        elif kind == "twice":
            words.insert(position, words[position])
        elif kind == "swap":
            other = draw(st.integers(0, len(words) - 1))
            words[position], words[other] = words[other], words[position]
        else:
            cut = draw(st.integers(0, len(words[position])))
            words[position] = (
                words[position][:cut] + draw(st.text(max_size=3)) + words[position][cut:]
            )
    return " ".join(words)


@pytest.mark.wide
@settings(FUZZ, max_examples=30)
@given(text=mutations([*REAL, *OTHERS]))
def test_mutated_statements(store: CatalogStore, text: str) -> None:
    """Rows or SqlError."""
    answered_or_refused(store, text)


@settings(FUZZ, max_examples=100)
@given(body=mutations(BODIES))
def test_mutated_where_bodies(store: CatalogStore, body: str) -> None:
    """A selection, of those frames that the body finds as a statement's; or a refusal."""
    try:
        with within(2):
            selected = select_frames(store, Question.model_construct(where=body))
    except FramesiftError as error:
        check_refusal(error, body)
        return
    with suppress(SqlError):  # a body may name what a statement has not
        text = f"select fkey from metaocean_view where labelled = 1 and ({body}) order by fkey"
        rows = run_sql(store, text, timeout_s=2).rows
        assert selected.frames["fkey"].to_pylist() == rows["fkey"].to_pylist()


@pytest.mark.slow
@settings(FUZZ, max_examples=800)
@given(text=mutations([*REAL, *OTHERS, *(f"select {v} from t_car" for v in VALUES)]))
def test_mutated_statements_many_times(store: CatalogStore, text: str) -> None:
    """The same, hundreds of times."""
    answered_or_refused(store, text)
