"""Frames that ``!=`` and ``not_in`` leave out because their value is not known."""

from catalog.lake.catalog import Catalog
from query.question.condition import Group, TagIs
from query.question.conditions import question_where, relation_for
from query.question.of_model import asking
from query.question.operators import NOT_KNOWN_TO_BE
from query.question.question import Question
from query.run.run_sql import execute


def unknown_values(store: Catalog, question: Question, at: int | None = None) -> str:
    """Say in one line how many frames a ``!=`` or ``not_in`` leaves out that fulfil all others.

    The catalog is asked only where the question has such a condition.

    Returns:
        A line that names the operator that chooses these frames; "" where there are none.
    """
    if not any(_differs(condition) for condition in question.conditions()):
        return ""
    with asking(store, question, at) as (snapshot, plain):
        members = plain.conditions()
        relation = relation_for(snapshot, plain)
        differing = [one for one in members if isinstance(one, TagIs) and _differs(one)]
        wheres = []
        for condition in differing:
            remaining = (each for each in members if each is not condition)
            unknown = TagIs(kind="tag", tag=condition.tag, op="is_null")
            unknown_group = Group(kind="all", of=(*remaining, unknown))
            of_unknown = Question(where=plain.where, condition=unknown_group)
            wheres.append(question_where(of_unknown, relation, snapshot)[0])
        counts = ", ".join(f"count(*) FILTER (WHERE {where})" for where in wheres)
        frames = relation.sql_for(counts)
        table = execute(snapshot, f"WITH frames AS ({frames}) SELECT {counts} FROM frames")
        row = [column[0].as_py() for column in table.columns]
    return "; ".join(
        f"{count:,} frames have no {condition.tag}, so they are left out: "
        f"{_with_them(condition)}, too"
        for count, condition in zip(row, differing, strict=True)
        if count
    )


def _differs(condition: object) -> bool:
    return isinstance(condition, TagIs) and condition.op in ("!=", "not_in")


def _with_them(condition: TagIs) -> str:
    value = condition.value if condition.op == "!=" else "VALUE"
    operator = f"'{condition.tag} {NOT_KNOWN_TO_BE} {value}'"
    return (
        f"{operator} chooses them" if condition.op == "!=" else f"{operator} for each chooses them"
    )
