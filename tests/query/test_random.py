"""RAND and TABLESAMPLE: random subsets, and those that are the same at each time."""

import pytest

from catalog.store import CatalogStore
from query.frames.select_frames import select_frames
from query.question.describe import describe
from query.question.of_statement import seeded
from query.question.question import Question
from query.run.run_sql import run_sql
from tests.query.catalogs import rows

_MANY = (
    "(select a.fkey || b.fkey as fkey from metaocean a, metaocean b fetch first 4000 rows only) m"
)


def _fkeys(store: CatalogStore, rest: str) -> list[str]:
    return [str(row[0]) for row in rows(store, f"select fkey from metaocean {rest}")]


def test_numbers_are_between_0_and_1_and_others_in_each_row(store: CatalogStore) -> None:
    """Spread evenly, other ones at each time and in each call; with a seed the same ones."""
    text = f"select rand() a, rand() b, rand(7) c, rand(8) d from {_MANY} order by fkey"
    table, again = (run_sql(store, text).rows for _ in range(2))
    for name in "abcd":
        values = table[name].to_pylist()
        assert all(0 <= value < 1 for value in values)
        assert len(set(values)) == len(values) == 4_000
        assert 0.46 < sum(values) / 4_000 < 0.54
        assert (again[name].to_pylist() == values) == (name in "cd")
    assert table["a"] != table["b"]
    assert table["c"] != table["d"]


def test_a_random_subset(store: CatalogStore) -> None:
    """As documents ask for it; another at each time, and the same one with a seed."""
    drawn = [_fkeys(store, "order by rand() fetch first 20 rows only") for _ in range(4)]
    assert all(len(set(fkeys)) == 20 for fkeys in drawn)
    assert len({tuple(fkeys) for fkeys in drawn}) > 1
    seeds = [_fkeys(store, f"order by rand({seed}) fetch first 20 rows only") for seed in (1, 1, 2)]
    assert seeds[0] == seeds[1] != seeds[2]


@pytest.mark.parametrize("method", ["bernoulli", "SYSTEM"])
def test_a_sample_of_a_table(store: CatalogStore, method: str) -> None:
    """About so many rows, each whole: what is joined with a row comes with it, or not."""
    every = _fkeys(store, "")
    sampled = [_fkeys(store, f"tablesample {method} (50)") for _ in range(6)]
    assert len({tuple(sorted(fkeys)) for fkeys in sampled}) > 1
    assert 0.3 * len(every) < sum(map(len, sampled)) / 6 < 0.7 * len(every)
    assert sorted(_fkeys(store, f"as m tablesample {method} (100)")) == sorted(every)
    same = [_fkeys(store, f"tablesample {method} (50) repeatable (4) order by 1") for _ in range(2)]
    assert same[0] == same[1]
    assert 0 < len(same[0]) < len(every)
    assert _fkeys(store, f"tablesample {method} (20) repeatable (4) where fkey not in "
                         f"(select fkey from metaocean tablesample {method} (50) repeatable (4))"
                  ) == []  # fmt: skip
    counts = rows(store, "select m.fkey, count(*) from metaocean m tablesample bernoulli (50), "
                         "(values 1, 2, 3) as v(n) group by m.fkey")  # fmt: skip
    assert {count for _, count in counts} == {3}


def test_a_sample_of_what_is_joined_from_outside(store: CatalogStore) -> None:
    """An outer join keeps the rows that have no partner in the sample."""
    joined = rows(store, "select m.fkey, c.value from metaocean m left join t_car c tablesample "
                         "bernoulli (50) repeatable (2) on c.fkey = m.fkey")  # fmt: skip
    cars = rows(store, "select fkey from t_car tablesample bernoulli (50) repeatable (2)")
    assert len(joined) == len(_fkeys(store, ""))
    assert {fkey for fkey, value in joined if value is not None} == {fkey for (fkey,) in cars}
    assert 0 < len(cars) < 24


@pytest.mark.parametrize(
    "question",
    [
        {"where": "rand() < 0.5"},
        {"sql": "select fkey from t_car order by rand() fetch first 6 rows only"},
        {"sql": "select filename from metaocean m, t_car c tablesample bernoulli (40) "
                "where c.fkey = m.fkey"},
    ],
)  # fmt: skip
def test_a_question_draws_by_its_seed(store: CatalogStore, question: dict[str, str]) -> None:
    """The same frames each time, so that a dataset can be rebuilt; its SQL gives them, too."""
    chosen = [
        select_frames(store, Question.model_validate({**question, "seed": seed})).frames["fkey"]
        for seed in (1, 1, 2)
    ]
    assert chosen[0] == chosen[1] != chosen[2]
    assert 0 < len(chosen[0]) < 24
    told = describe(store, Question.model_validate({**question, "seed": 1}))
    assert [row[3] for row in rows(store, told.sql.text)] == chosen[0].to_pylist()
    assert told.question.model_dump(include=set(question)) == question


_TEXTS = "'rand()' -- rand()\n /* rand() */ \"rand()\""
_SAMPLE = "t tablesample system (5)"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("rand() < 1 or RANDOM ( ) < 1", "rand(7) < 1 or RANDOM(7) < 1"),
        ("rand(3) < 1 and x.rand() and grand()", "rand(3) < 1 and x.rand() and grand()"),
        (_TEXTS, _TEXTS),
        (f"{_SAMPLE} where 1 = 1", f"{_SAMPLE} repeatable (7) where 1 = 1"),
        (f"{_SAMPLE} repeatable (1)", f"{_SAMPLE} repeatable (1)"),
    ],
)
def test_what_gets_a_seed(sql: str, expected: str) -> None:
    """Calls and samples without one, and nothing in texts, names and comments."""
    assert seeded(sql, 7) == expected
    assert seeded(seeded(sql, 7), 8) == expected
