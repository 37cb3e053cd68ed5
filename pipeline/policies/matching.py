"""The files that a policy is about: those for which its condition holds, of its collections."""

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from catalog.errors import SqlError
from catalog.lake.catalog import Catalog
from catalog.lake.snapshot import Snapshot
from catalog.records.policy_tables import Policy
from query.db2 import read_only
from query.db2.dialect import Db2
from query.discover.search import VIEW
from query.run.prepared import prepare
from query.run.run_sql import run_sql

_UNKNOWN_COLUMN = -206
_TIMEOUT_S = 24 * 3_600.0
_MAX_ROWS = 2**62


def check_condition(snapshot: Snapshot, condition: str) -> None:
    """The text can be a policy's condition.

    A column that is unknown is let through: it may be a tag that is added before the policy runs.
    """
    if not condition.strip():
        return
    read_only.parse_condition(condition, snapshot.schema)
    try:
        prepare(snapshot, _statement(("fkey",), [condition]))
    except SqlError as error:
        if error.sqlcode != _UNKNOWN_COLUMN:
            raise


def matching(visible: Catalog, policy: Policy, columns: Sequence[str]) -> pa.Table:
    """The policy's files with these columns of metaocean_view, all of one snapshot.

    Args:
        visible: The rows that it may look at; for one with collections a catalog.limited_store of
            theirs, so that its subqueries find no others either.
    """
    conditions = [policy.condition] if policy.condition.strip() else []
    if conditions:
        with visible.reading() as snapshot:  # one condition and no more, whatever was recorded
            read_only.parse_condition(policy.condition, snapshot.schema)
    statement = _statement(columns, conditions)
    return run_sql(visible, statement, max_rows=_MAX_ROWS, timeout_s=_TIMEOUT_S).rows


def _statement(columns: Sequence[str], conditions: Sequence[str]) -> str:
    names = ", ".join(exp.to_identifier(name, quoted=True).sql(dialect=Db2) for name in columns)
    # The line end keeps a comment at a condition's end from reaching the parenthesis.
    where = " and ".join(f"({condition}\n)" for condition in conditions)
    return f"select {names} from {VIEW}{' where ' if where else ''}{where}"
