"""framesift sql."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from api.cli.exit_codes import ExitCode, StrictFlag, end
from api.cli.options.common import AtOption
from api.cli.rows_output import (
    Counted,
    Format,
    emit_first_rows,
    emit_rows,
    need_file_format,
)
from api.cli.tables.table import emit_table
from api.cli.target import Record, target
from api.cli.terminal import JsonFlag, emit_json, stderr, stdout


def sql(
    statement: Annotated[str, typer.Argument(help="One SELECT; '-' reads it from stdin.")],
    format_: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="table on a terminal; else csv, as Spectrum Discover answers: numbered lines "
            "without names, which csv-named has.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file.")] = None,
    at: AtOption = None,
    explained: Annotated[
        bool, typer.Option("--explain", help="Show the plan instead: what would run and be read.")
    ] = False,
    strict: StrictFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Ask the catalog in Db2's SQL, over metaocean, metaocean_view and t_<tag>."""
    as_table = format_ is None and out is None and not as_json and stdout.is_terminal
    format_ = "json" if as_json else format_ or ("table" if as_table else "csv")
    need_file_format(out, explained, format_)
    statements = target().statements
    text = sys.stdin.read() if statement == "-" else statement
    if explained:
        _emit(statements.explain(text, at=at), as_json)
        return
    rows = statements.run(text, at=at)
    with rows.reader() as reader:
        counted = Counted(reader)
        if as_table:
            emit_first_rows(reader.schema, counted)
        else:
            emit_rows(reader.schema, counted, format_, out)
    if rows.truncated:
        stderr.print(f"only the first {rows.max_rows:,} rows (FRAMESIFT_QUERY_MAX_ROWS)")
    end(ExitCode.NOTHING_FOUND, when=strict and not counted.rows)


def _emit(explanation: Record, as_json: bool) -> None:
    if as_json:
        emit_json(explanation)
        return
    stdout.print(explanation["sql"])
    stdout.print()
    emit_table(
        ("table", "rows", "rows expected", "columns"),
        [
            (table["name"], table["rows"], _expected_rows(table), ", ".join(table["columns"]))
            for table in explanation["tables"]
        ],
    )
    stdout.print(f"{_expected_rows(explanation)} rows expected, snapshot {explanation['snapshot']}")


def _expected_rows(expected: Record) -> str:
    """The number of rows that are expected; a user limited to collections gets none."""
    rows = expected["estimated_rows"]
    return "unknown" if rows is None else f"{rows:,}"
