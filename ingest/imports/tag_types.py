"""The type of each tag of a file, and its rows with values of these types."""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from catalog.errors import InvalidInput
from catalog.lake.connection import UTC
from catalog.tags.as_type import text_as, value_as
from catalog.tags.families import TYPES
from catalog.tags.inferred_types import FITS, fits
from ingest.imports.reader_process import go_on
from ingest.imports.tag_table import KEY, LINE, TagTable, is_text

AS_TEXT = "{} as text"
"""Name of a column with the texts of a tag, beside its values; with a blank, as LINE and KEY."""

_LONGEST_SHOWN = 80
_NUMBERS = ("INTEGER", "BIGINT", "DOUBLE")
_HAS_COMMA = "regexp_full_match(v, '[+-]?[0-9]+,[0-9]+')"


@dataclass(frozen=True)
class TypedRows:
    """A file's rows with typed values."""

    columns: dict[str, str]
    texts: dict[str, str]
    """What makes a tag a text, whose other values fit another type: "'N/A' in line 5"."""
    rows: pa.Table
    """line, key and the tags, of the rows whose values fit; AS_TEXT of some."""
    problems: pa.Table
    """line, key, kind and reason of the others."""


def typed_rows(
    content: TagTable,
    requested: Mapping[str, str],
    as_texts: set[str],
    stopped: Callable[[], bool],
) -> TypedRows:
    """Give each tag a type, and the rows values of it.

    Args:
        requested: Types of some tags; others have the file's, or the narrowest that fits.
        as_texts: Tags whose texts are wanted, too, where they are to be of another type.

    Raises:
        InvalidInput: A requested type is none, a column has values of no type that a tag can have,
            or it was stopped.
    """
    columns, texts = {}, {}
    with closing(duckdb.connect(":memory:")) as work:
        work.execute(UTC)
        for tag in content.tags:
            go_on(stopped)
            kind = content.table.schema.field(tag).type
            if tag in requested:
                if requested[tag] not in TYPES:
                    raise InvalidInput(
                        f"tag '{tag}': type '{requested[tag]}'; expected one of {', '.join(TYPES)}"
                    )
                columns[tag] = requested[tag]
            elif is_text(kind):
                columns[tag], because = _narrowest(work, content.table, tag)
                if because:
                    texts[tag] = because
            else:
                columns[tag] = _of_arrow(tag, kind)
        work.register("given", content.table)
        rows, problems = _typed(work, columns, content.table.schema, as_texts)
        return TypedRows(columns, texts, rows, problems)


def _narrowest(work: duckdb.DuckDBPyConnection, table: pa.Table, tag: str) -> tuple[str, str]:
    """The narrowest type of a column's texts; and the value that is none of what most are."""
    tests = [*(fits("v", kind) for kind in FITS), _HAS_COMMA]
    counts = ", ".join(f"count(*) FILTER (v NOTNULL AND {test})" for test in tests)
    # A table of one column: each statement looks at all that its table has.
    work.register("one", pa.table({"v": table[tag]}))
    total, *fitting, commas = work.execute(f"SELECT count(v), {counts} FROM one").fetchone() or (
        0,
        0,
    )
    most = max(fitting, default=0)
    kind = list(FITS)[fitting.index(most)] if most else "VARCHAR"
    if total and most == total:
        return kind, ""
    if not most and not commas:
        return "VARCHAR", ""
    hinders = f"NOT {fits('v', kind)}" if most else _HAS_COMMA
    work.register("one", pa.table({"v": table[tag], "line": table[LINE]}))
    line, value, has_comma = work.execute(
        f"SELECT line, left(v, {_LONGEST_SHOWN}), {_HAS_COMMA} FROM one "
        f"WHERE v NOTNULL AND {hinders} ORDER BY line LIMIT 1"
    ).fetchone() or (0, "", False)
    hint = "; a number has a decimal point" if has_comma else ""
    return "VARCHAR", f"'{value}' in line {line}{hint}"


def _of_arrow(tag: str, kind: pa.DataType) -> str:
    tests = (
        (pa.types.is_boolean, "BOOLEAN"),
        (pa.types.is_floating, "DOUBLE"),
        (pa.types.is_decimal, "DOUBLE"),
        (pa.types.is_timestamp, "TIMESTAMP"),
        (pa.types.is_date, "TIMESTAMP"),
    )
    if pa.types.is_integer(kind):
        narrow = kind.bit_width < 32 or (kind.bit_width == 32 and pa.types.is_signed_integer(kind))
        return "INTEGER" if narrow else "BIGINT"
    for test, name in tests:
        if test(kind):
            return name
    raise InvalidInput(f"column of tag '{tag}' is {kind}; expected numbers, texts or times")


def _typed(
    work: duckdb.DuckDBPyConnection,
    columns: Mapping[str, str],
    schema: pa.Schema,
    as_texts: set[str],
) -> tuple[pa.Table, pa.Table]:
    """Line, key and typed tags of the rows whose values fit, and the problems of the others."""
    wrong, values = [], []
    for tag, kind in columns.items():
        column = f'"{tag}"'
        if is_text(schema.field(tag).type):
            text, value = column, text_as(column, kind)
            good = f"{fits(text, kind)}{_or_nan(text, kind)}" if kind in FITS else "true"
        else:
            text = f"nullif(trim(CAST({column} AS VARCHAR), ' \t\r\n'), '')"
            value = text if kind == "VARCHAR" else value_as(column, kind)
            good = f"({value}) NOTNULL"
        if kind != "VARCHAR":
            wrong.append(f"WHEN {text} NOTNULL AND NOT ({good}) THEN {_misfit(tag, kind, text)}")
        values.append(f", {value} AS {column}")
        if tag in as_texts:
            values.append(f', {text} AS "{AS_TEXT.format(tag)}"')
    reason = f"CASE {' '.join(wrong)} END" if wrong else "CAST(NULL AS VARCHAR)"
    work.execute(
        f'CREATE TEMP TABLE typed AS SELECT "{LINE}" AS line, nullif("{KEY}", \'\') AS key,'
        f" {reason} AS reason{''.join(values)} FROM given"
    )
    rows = work.execute(
        "SELECT * EXCLUDE (reason) FROM typed WHERE reason ISNULL ORDER BY line"
    ).to_arrow_table()
    problems = work.execute(
        "SELECT line, coalesce(key, '') AS key, 'unreadable' AS kind, reason FROM typed"
        " WHERE reason NOTNULL"
    ).to_arrow_table()
    return rows, problems


def _or_nan(text: str, kind: str) -> str:
    """NaN is no value where numbers are expected, in CSV as in Parquet."""
    return f" OR lower({text}) IN ('nan', '-nan')" if kind in _NUMBERS else ""


def _misfit(tag: str, kind: str, text: str) -> str:
    return f"'value ''' || left({text}, {_LONGEST_SHOWN}) || ''' of {tag} is no {kind}'"
