"""framesift sql."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli.commands.common import AtOption
from api.cli.exit_codes import ExitCode, StrictFlag, end
from api.cli.rows_output import (
    Counted,
    Format,
    emit_first_rows,
    emit_rows,
    need_file_format,
)
from api.cli.terminal import JsonFlag, emit_json, emit_table, stderr, stdout
from api.places.statements import statements


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
        bool, typer.Option("--explain", help="Show what would be run and read instead.")
    ] = False,
    strict: StrictFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Ask the catalog in Db2's SQL, over metaocean, metaocean_view and t_<tag>."""
    shown = format_ is None and out is None and not as_json and stdout.is_terminal
    format_ = "json" if as_json else format_ or ("table" if shown else "csv")
    need_file_format(out, explained, format_)
    place = statements()
    text = sys.stdin.read() if statement == "-" else statement
    if explained:
        _emit(place.explained(text, at), as_json)
        return
    with place.rows(text, at) as rows:
        found = Counted(rows.batches)
        if shown:
            emit_first_rows(rows.schema, found)
        else:
            emit_rows(rows.schema, found, format_, out)
    if rows.truncated:
        stderr.print(f"only the first {rows.most:,} rows (FRAMESIFT_QUERY_MAX_ROWS)")
    end(ExitCode.NOTHING_FOUND, when=strict and not found.rows)


def _emit(found: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        emit_json(found)
        return
    stdout.print(found["sql"])
    stdout.print()
    emit_table(
        ("table", "rows", "rows expected", "columns"),
        [
            (table["name"], table["rows"], _said(table), ", ".join(table["columns"]))
            for table in found["tables"]
        ],
    )
    stdout.print(f"{_said(found)} rows expected, snapshot {found['snapshot']}")


def _said(found: Mapping[str, Any]) -> str:
    """How many rows are expected; who sees some rows only is not told."""
    rows = found["estimated_rows"]
    return "unknown" if rows is None else f"{rows:,}"
