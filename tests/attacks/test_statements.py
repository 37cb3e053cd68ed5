"""Statements that cost more than they look: wide rows, and what is rewritten for long."""

import re
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.attacks.arena import Server
from tests.attacks.conftest import Watched

SQL = "/db2whrest/v1/sql_query"
LONG = "x" * 32_000
MANY = "metaocean a, metaocean b, metaocean c, metaocean d, metaocean e, metaocean f, metaocean g"
"""So many that nobody waits for the last: 3 files to the power of 7."""


def refused(answer: httpx.Response) -> int:
    """The SQLCODE of a refusal."""
    assert answer.status_code == 400, answer.text[:300]
    match = re.search(r"SQL(\d{4})N", answer.json()["reason"])
    assert match, answer.text
    return int(match[1])


@pytest.mark.parametrize("columns", [2, 30])
def test_rows_wider_than_a_row_may_be(attacked: Server, watched: Watched, columns: int) -> None:
    """Refused before they are handed over, though they are constants and all alike."""
    constants = f"select {', '.join([repr(LONG)] * columns)} from {MANY}"
    items = ", ".join(f"case when a.fkey <> '{n}' then q.c end as c{n}" for n in range(columns))
    text = f"(select '{LONG}' as c from sysibm.sysdummy1) q"
    with watched(attacked, most_mb=400), attacked.client("read") as client:
        for statement in (constants, f"select {items} from {text}, {MANY}"):
            assert refused(client.post(SQL, content=statement)) == 670


def test_rows_as_wide_as_a_row_may_be(attacked: Server, watched: Watched) -> None:
    """They come, in bounded memory."""
    statement = f"select a.fkey, '{LONG}' from metaocean a, metaocean b, metaocean c, metaocean d"
    with watched(attacked, most_mb=700), attacked.client("read") as client:
        answer = client.post(SQL, content=statement)
    assert answer.status_code == 200
    assert len(answer.content) > 81 * len(LONG)


def test_many_statements_of_wide_rows(attacked: Server, watched: Watched) -> None:
    """Twelve of four callers are answered one after the other, but for two."""
    statement = f"select a.fkey, '{LONG}' from metaocean a, metaocean b, metaocean c, metaocean d"
    callers = ("read", "write", "collectionadmin", "dataadmin")

    def ask(number: int) -> int:
        text = f"{statement} fetch first {2_000 + number} rows only"
        with attacked.client(callers[number % 4]) as client:
            return client.post(SQL, content=text).status_code

    with watched(attacked, most_mb=1_600), ThreadPoolExecutor(12) as threads:
        assert set(threads.map(ask, range(12))) <= {200, 202}


LONG_TO_PREPARE = {
    "texts in a list": "select 1 from metaocean where filename in ("
    + ",".join(f"'{n}'" for n in range(30_000)) + ")",
    "numbers in a list": f"select 1 from metaocean where size in ({','.join(['7'] * 90_000)})",
    "alternatives": f"select 1 from metaocean where {' or '.join(['size = 7'] * 20_000)}",
    "divisions": f"select {'(' * 12}size{' / 3.0)' * 12} from metaocean",
    "concatenations": "select " + "upper(" * 12 + "filename" + " || 'x')" * 12 + " from metaocean",
    "durations": f"select {'(' * 12}mtime{' + 1 days)' * 12} from metaocean",
    "orders": f"select size from metaocean order by {','.join(['size'] * 20_000)}",
}  # fmt: skip


@pytest.mark.parametrize("name", LONG_TO_PREPARE)
def test_statements_that_are_long_to_prepare(attacked: Server, watched: Watched, name: str) -> None:
    """Four at once of one caller are answered or refused, and others are served meanwhile."""

    def ask(_: int) -> int:
        with attacked.client("read") as client:
            return client.post(SQL, content=LONG_TO_PREPARE[name]).status_code

    with watched(attacked, most_mb=700), ThreadPoolExecutor(4) as threads:
        assert set(threads.map(ask, range(4))) <= {200, 202, 400, 503}
