"""A cursor that executes SELECT and nothing else.

DuckDB's own locks leave three doors open to a reader: COPY and ATTACH write inside the allowed
folder, the SQLite extension opens any SQLite file of the machine, and COMMIT ends the read-only
transaction. Whatever statement gets past the checks of the query layer is stopped here.
"""

import json
import re
from typing import Any

import duckdb

from catalog.errors import SqlError

_REFUSED_FUNCTION = re.compile(
    r'"function_name":"(sqlite_\w+|ducklake_\w+|query|query_table|json_execute_serialized_sql)"',
    re.IGNORECASE,
)
"""In a statement's JSON: functions that open or change files, or run a text as a statement."""


class SelectOnly:
    """Executes SELECT on a cursor; its other methods are the cursor's own."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Wrap a cursor of a locked-down connection."""
        self._cursor = cursor

    def execute(self, query: str, parameters: Any = None) -> "SelectOnly":
        """Run one SELECT.

        Raises:
            SqlError: It is another statement, or calls a function that reaches the store's files.
            duckdb.Error: It cannot be parsed or fails.
        """
        self._check(query)
        self._cursor.execute(query, parameters)
        return self

    def _check(self, query: str) -> None:
        statements = self._cursor.extract_statements(query)
        if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
            raise SqlError(-104, "42601", "Only one SELECT statement can be executed here.")
        row = self._cursor.execute("SELECT json_serialize_sql(?)", [query]).fetchone()
        tree = row[0] if row else ""
        if json.loads(tree)["error"]:
            raise SqlError(-104, "42601", "Only a plain SELECT statement can be executed here.")
        refused = _REFUSED_FUNCTION.search(tree)
        if refused:
            raise SqlError(-551, "42501", f"The function {refused[1]} may not be executed here.")

    def __getattr__(self, name: str) -> Any:
        if name in _OWN_METHODS:
            return getattr(self._cursor, name)
        raise AttributeError(f"a reading cursor has no {name}: {', '.join(_OWN_METHODS)} are there")


_OWN_METHODS = (
    "description",
    "fetchall",
    "fetchmany",
    "fetchone",
    "interrupt",
    "rowcount",
    "to_arrow_reader",
    "to_arrow_table",
)
