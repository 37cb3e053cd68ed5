"""Db2's SQL: its dialect, names, types and functions as DuckDB's."""
