"""Limits the part of an answer that DuckDB keeps ready while it is read."""

import duckdb

_SETTING = "streaming_buffer_size"
_SIZE = "64KB"
"""DuckDB weighs the rows that lie ready without their texts: its own 1 MB were 32 times 2,048 rows
of 32 kB, which is 2 GB. With this the speed is the same."""


def allow(connection: duckdb.DuckDBPyConnection, *others: str) -> None:
    """Let `shrink` set it once the connection is locked: each cursor has one of its own.

    Args:
        others: Settings of DuckDB that may be set then, too.
    """
    connection.execute(f"SET allowed_configs = {[_SETTING, *others]}")


def shrink(cursor: duckdb.DuckDBPyConnection) -> None:
    """Let little lie ready of what the cursor answers."""
    cursor.execute(f"SET {_SETTING} = '{_SIZE}'")
