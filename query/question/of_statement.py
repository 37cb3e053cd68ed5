"""A question's own SQL: a statement whose rows name files, and random numbers with the seed.

select fkey from t_car ...                                       by fkey
select platform, datasource, filename from metaocean, t_car ...  as published clients name files
"""

import re

from catalog.errors import InvalidInput
from catalog.lake.schema import LABELLED
from catalog.lake.snapshot import Snapshot
from query.db2.typography import as_typed
from query.question.question import Question
from query.run.prepared import prepare, result_columns
from query.run.run_sql import execute

_FILENAME = "filename"
_NAMING = ("platform", "cluster", "datasource", "path", _FILENAME)
"""Columns that together name a file."""


def with_condition(snapshot: Snapshot, question: Question) -> Question:
    """The question with its statement as a part of ``where``; its random numbers have its seed."""
    if question.where is question.sql is None:
        return question
    where = None if question.where is None else seeded(question.where, question.seed)
    if question.sql is not None:
        sql = seeded(as_typed(question.sql), question.seed)
        chosen = _where(snapshot, sql.rstrip("; \t\r\n"))
        where = chosen if where is None else f"({where}\n) and {chosen}"
    return question.model_copy(update={"sql": None, "where": where})


def seeded(sql: str, seed: int) -> str:
    """SQL whose random numbers and samples are the same at each time: a dataset can be rebuilt.

    >>> seeded("rand() < 0.5 and filename <> 'rand()'", 7)
    "rand(7) < 0.5 and filename <> 'rand()'"
    """
    return _PARTS.sub(lambda token: _seeded(token, seed), sql)


def _seeded(token: re.Match[str], seed: int) -> str:
    number = seed % _SEEDS
    if token["number"]:
        return f"{token['number']}({number})"
    return f"{token[0]} repeatable ({number})" if token["sample"] else token[0]


_SEEDS = 10**9
"""Numbers that a seed in SQL may be."""

_PARTS = re.compile(
    r"""'[^']*(?:'|\Z)|"[^"]*(?:"|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)"""
    r"""|(?<![\w.])(?P<number>rand(?:om)?)\s*\(\s*\)"""
    r"""|(?P<sample>\btablesample\s+\w+\s*\([^()]*\))(?!\s*repeatable)""",
    re.DOTALL | re.IGNORECASE,
)


def _where(snapshot: Snapshot, statement: str) -> str:
    columns = result_columns(snapshot, statement)
    rows = f"(\n{statement}\n) as statement"
    if "fkey" in columns:
        # Named, or an fkey that the statement lacks would be that of the frame that is asked about.
        return f"fkey in (select statement.fkey from {rows})"
    naming = [name for name in _NAMING if name in columns]
    if _FILENAME not in naming:
        raise InvalidInput(
            f"sql: the statement's columns are {_listed(columns)}: expected fkey, or "
            "filename with path, datasource or platform, which name the files that are chosen"
        )
    equal = " and ".join(f"named.{name} = statement.{name}" for name in naming)
    _check_unique(snapshot, naming, f"exists (select 1 from {rows} where {equal})")
    return f"fkey in (select named.fkey from metaocean as named, {rows} where {equal})"


def _listed(columns: list[str]) -> str:
    """The columns; one without a name has its number, from 1."""
    numbered = [
        str(number) if name == f"_col_{number - 1}" else name
        for number, name in enumerate(columns, start=1)
    ]
    return ", ".join(numbered)[:200]


def _check_unique(snapshot: Snapshot, naming: list[str], is_named: str) -> None:
    """No row of the statement names two frames: one of them may not be meant."""
    columns = ", ".join(f"named.{name}" for name in naming)
    several = execute(
        snapshot,
        prepare(
            snapshot,
            f"select {columns}, count(*) as frames from metaocean_view as named "
            f"where named.{LABELLED} is not null and {is_named} "
            f"group by {columns} having count(*) > 1 order by {columns} fetch first 1 row only",
        ),
    ).to_pylist()
    if several:
        frames = several[0].pop("frames")
        named = ", ".join(f"{name} '{value}'" for name, value in several[0].items())
        raise InvalidInput(
            f"sql: {frames} frames have {named}: select fkey, or path as well, so that a row of "
            "the statement names one"
        )
