"""Tags from a CSV or Parquet file, matched to the catalog's files by name or fkey.

Every row is either imported or reported with its line: one that names no file, several files, a
file that an earlier line named, has too few fields, or a value that is not of its tag's type.
The file is held in memory (its text and its columns), rows are never looped over in Python.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from catalog.errors import InvalidInput
from catalog.lake.schema import FILES, FILES_COLUMNS, VIEW_COLUMNS
from catalog.store import LAKE, CatalogStore
from catalog.tags.families import (
    TYPES,
    check_tag_name,
    define,
    family_columns,
    missing_columns,
    put_rows,
    table_of,
)
from ingest.imports.options import Key
from ingest.imports.reader_process import go_on
from ingest.imports.tag_file import check_columns, read_table, read_table_apart

_LONGEST_SHOWN = 80
_TEXTS = ("string", "large_string")

_LINE, _KEY = "line number", "file key"  # with a blank: no tag can have such a name

_WHOLE = "regexp_full_match({0}, '[+-]?(0|[1-9][0-9]*)')"

_FITS = {
    "BOOLEAN": "lower({0}) IN ('true', 'false')",
    "INTEGER": f"{_WHOLE} AND TRY_CAST({{0}} AS INTEGER) NOTNULL",
    "BIGINT": f"{_WHOLE} AND TRY_CAST({{0}} AS BIGINT) NOTNULL",
    "DOUBLE": (
        r"regexp_full_match({0}, '[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?')"
        " AND isfinite(TRY_CAST({0} AS DOUBLE))"
    ),
    "TIMESTAMP": (
        r"regexp_full_match({0}, '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}.*')"
        " AND TRY_CAST({0} AS TIMESTAMP) NOTNULL"
    ),
}
"""SQL condition for each type: true where a text is a value of it. A number with leading zeros is a
text, such as a code."""

_MATCHES = {
    "fkey": "f.fkey = g.key",
    "path": "f.path || f.filename = g.key",
    "filename": (
        "split_part(f.filename, '/', -1) = split_part(g.key, '/', -1) AND"
        " (f.path || f.filename = g.key OR ends_with(f.path || f.filename, '/' || g.key))"
    ),
}


@dataclass(frozen=True)
class TagImport:
    """Counts, columns and problems of an import.

    Attributes:
        rows: Rows of the file.
        imported: Rows that became a file's tags.
        unmatched: Rows that name no file of the catalog.
        ambiguous: Rows that name several files.
        repeated: Rows that name a file that an earlier row named.
        unreadable: Rows with a wrong number of fields or a value of another type.
        columns: The tags and their types.
        ignored: Columns that say where a file lies, and so became no tags.
        problems: Every row that was not imported: line (BIGINT, the first line is 1; a row's
            number where values contain line breaks, or in Parquet), key, kind, reason.
    """

    rows: int
    imported: int
    unmatched: int
    ambiguous: int
    repeated: int
    unreadable: int
    columns: Mapping[str, str]
    ignored: tuple[str, ...]
    problems: pa.Table


@dataclass(frozen=True)
class _TagTable:
    """A file's rows: line, key and text or typed columns; and the rows that had no place."""

    table: pa.Table
    key: Key
    tags: dict[str, str]
    ignored: tuple[str, ...]
    broken: list[tuple[int, str]]


def import_tags(
    store: CatalogStore,
    file: Path,
    family: str,
    *,
    key: Key | None = None,
    key_column: str | None = None,
    types: Mapping[str, str] | None = None,
    prefix: str = "",
    datasource: str | None = None,
    most_bytes: int | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> TagImport:
    """Import a file's columns as the tags of a family, in one commit.

    Blanks, tabs and line ends around values and names are trimmed; an empty value is unknown.
    Names become lower-case. Rows replace older values of these tags.

    Args:
        store: The catalog.
        file: CSV (comma, semicolon or tab; UTF-8; a line of names first) or Parquet (.parquet).
        family: Family to write, made where there is none.
        key: What names a file: "filename" (base name, or the end of its path after a slash),
            "path" (path and file name, in one column or in columns path and filename) or "fkey";
            when None, "fkey" where the file has a column of that name, else "filename".
        key_column: Column of the key; the one named like ``key``, else the first, when None.
        types: Type of a tag, by name; others have the family's, the file's, or the narrowest of
            BOOLEAN, INTEGER, BIGINT, DOUBLE, TIMESTAMP and VARCHAR that fits all of its values.
        prefix: Put before every tag's name.
        datasource: Match files of this datasource only.
        most_bytes: What the values of a Parquet file may take, once decoded [bytes]; the file is
            read in a process of its own, with limits. None for any, and for none.
        stopped: Whether nobody waits for it any more; nothing is written then.

    Raises:
        InvalidInput: The file is no such file or too large, a name or type cannot be used, or it
            was stopped.
        StorageError: It cannot be read.
        CatalogBusy: The write lock was not free in time.
    """
    table_of(family)
    content = _read(file, key, key_column, prefix, most_bytes, stopped)
    key = content.key
    with store.reading() as cursor:
        stored = family_columns(cursor, family)
    requested = {
        **{tag: kind for tag, kind in stored.items() if tag in content.tags},
        **(types or {}),
    }
    for tag in types or {}:
        if tag not in content.tags:
            raise InvalidInput(
                f"type of '{tag}': {file} has no such tag: {', '.join(content.tags)}"
            )
    with closing(duckdb.connect(":memory:")) as work:
        work.register("given", content.table)
        columns = _types(work, content, requested, stopped)
        with store.reading() as cursor:
            missing_columns(cursor, family, columns)  # refused before anything is matched
        good, bad = _typed(work, columns, content)
    go_on(stopped)
    with store.writing(f"tags imported from {file.name}", author="import") as connection:
        connection.register("named", good)
        problems = _match(connection, key, datasource)
        rows = connection.execute(_ROWS.format(_quoted_list(columns))).to_arrow_table()
        go_on(stopped)
        if rows.num_rows:
            define(connection, family, columns)
            put_rows(connection, family, rows)
    return _result(content, columns, rows.num_rows, [problems, bad])


_ROWS = "SELECT m.fkey{0} FROM named AS g JOIN matched AS m ON m.line = g.line"


def _result(
    content: _TagTable, columns: Mapping[str, str], imported: int, problems: Sequence[pa.Table]
) -> TagImport:
    broken = pa.table(
        {
            "line": pa.array([line for line, _ in content.broken], pa.int64()),
            "key": pa.array([""] * len(content.broken), pa.string()),
            "kind": pa.array(["unreadable"] * len(content.broken), pa.string()),
            "reason": pa.array([reason for _, reason in content.broken], pa.string()),
        }
    )
    together = pa.concat_tables([broken, *(table.cast(broken.schema) for table in problems)])
    counts = {row["values"]: row["counts"] for row in together["kind"].value_counts().to_pylist()}
    return TagImport(
        rows=content.table.num_rows + len(content.broken),
        imported=imported,
        unmatched=counts.get("unmatched", 0),
        ambiguous=counts.get("ambiguous", 0),
        repeated=counts.get("repeated", 0),
        unreadable=counts.get("unreadable", 0),
        columns=columns,
        ignored=content.ignored,
        problems=together.sort_by("line"),
    )


def _read(
    file: Path,
    key: Key | None,
    key_column: str | None,
    prefix: str,
    most_bytes: int | None,
    stopped: Callable[[], bool],
) -> _TagTable:
    if most_bytes is None:
        table, broken = read_table(file)
    else:
        table, broken = read_table_apart(file, most_bytes, stopped)
    check_columns(file, table.num_columns)
    names = [name.strip().lower() for name in table.column_names]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"{file}: column '{name}' is there {names.count(name)} times")
    table = table.rename_columns(names)
    if key is None:
        key = "fkey" if "fkey" in names and key_column in (None, "fkey") else "filename"
    keys = _key_columns(file, names, key, key_column)
    ignored = tuple(
        name
        for name in names
        if name not in keys and (name in FILES_COLUMNS or name in VIEW_COLUMNS)
    )
    tags = {prefix + name: name for name in names if name not in keys and name not in ignored}
    if not tags:
        raise InvalidInput(f"{file}: no column beside {', '.join(names)} that could be a tag")
    for tag in tags:
        check_tag_name(tag)
    lines = _line_numbers(table.num_rows, broken)
    arranged = pa.table({_LINE: lines, **{tag: _text(table[name]) for tag, name in tags.items()}})
    return _TagTable(
        arranged.append_column(_KEY, _key_texts([table[name] for name in keys])),
        key,
        {tag: str(table.schema.field(name).type) for tag, name in tags.items()},
        ignored,
        broken,
    )


def _key_columns(file: Path, names: list[str], key: Key, named: str | None) -> list[str]:
    if named is not None:
        if named.strip().lower() not in names:
            raise InvalidInput(f"{file}: no column '{named}'; there are {', '.join(names)}")
        return [named.strip().lower()]
    if key == "path" and "path" in names and "filename" in names:
        return ["path", "filename"]
    return [key if key in names else names[0]]


def _key_texts(columns: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    # None stays None: a row without a key names no file.
    texts = [pc.utf8_trim(column.cast(pa.string()), " \t\r\n") for column in columns]
    return texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, "")


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of text trimmed, with null for nothing; any other as it is."""
    import pyarrow.compute as pc

    if str(column.type) not in _TEXTS:
        return column
    trimmed = pc.utf8_trim(column, " \t\r\n")
    return pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, column.type), trimmed)


def _line_numbers(rows: int, broken: Sequence[tuple[int, str]]) -> pa.Array:
    """Lines of the rows that were read: the names are line 1, those of ``broken`` are left out."""
    import numpy as np

    lines = np.arange(2, 2 + rows + len(broken), dtype=np.int64)
    return pa.array(lines[~np.isin(lines, [line for line, _ in broken])])


def _types(
    work: duckdb.DuckDBPyConnection,
    content: _TagTable,
    requested: Mapping[str, str],
    stopped: Callable[[], bool],
) -> dict[str, str]:
    """The type of every tag."""
    columns = {}
    for tag, arrow in content.tags.items():
        go_on(stopped)
        if tag in requested:
            if requested[tag] not in TYPES:
                raise InvalidInput(
                    f"tag '{tag}': type '{requested[tag]}'; expected one of {', '.join(TYPES)}"
                )
            columns[tag] = requested[tag]
        elif arrow in _TEXTS:
            columns[tag] = _narrowest(work, content.table[tag])
        else:
            columns[tag] = _of_arrow(tag, content.table.schema.field(tag).type)
    return columns


def _narrowest(work: duckdb.DuckDBPyConnection, texts: pa.ChunkedArray) -> str:
    misfits = ", ".join(
        f"count(*) FILTER (v NOTNULL AND NOT coalesce({fits.format('v')}, false))"
        for fits in _FITS.values()
    )
    # A table of one column: each statement looks at all that its table has.
    work.register("one", pa.table({"v": texts}))
    row = work.execute(f"SELECT count(v), {misfits} FROM one").fetchone() or (0,)
    if row[0]:
        for kind, count in zip(_FITS, row[1:], strict=True):
            if not count:
                return kind
    return "VARCHAR"


def _of_arrow(tag: str, kind: pa.DataType) -> str:
    tests = (
        (pa.types.is_boolean, "BOOLEAN"),
        (pa.types.is_floating, "DOUBLE"),
        (pa.types.is_decimal, "DOUBLE"),
        (pa.types.is_timestamp, "TIMESTAMP"),
        (pa.types.is_date, "TIMESTAMP"),
        (pa.types.is_dictionary, "VARCHAR"),
    )
    if pa.types.is_integer(kind):
        narrow = kind.bit_width < 32 or (kind.bit_width == 32 and pa.types.is_signed_integer(kind))
        return "INTEGER" if narrow else "BIGINT"
    for test, name in tests:
        if test(kind):
            return name
    raise InvalidInput(f"column of tag '{tag}' is {kind}; expected numbers, texts or times")


def _as_text(tag: str) -> str:
    """A column of another type as trimmed text, NULL where it is empty."""
    return f"nullif(trim(CAST(\"{tag}\" AS VARCHAR), ' \t\r\n'), '')"


def _typed(
    work: duckdb.DuckDBPyConnection, columns: Mapping[str, str], content: _TagTable
) -> tuple[pa.Table, pa.Table]:
    """Line, key and typed tags of the rows whose values fit, and the problems of the others."""
    wrong, values = [], []
    for tag, kind in columns.items():
        is_text = content.tags[tag] in _TEXTS
        text = f'"{tag}"' if is_text else _as_text(tag)
        if not is_text and kind != "VARCHAR":
            wrong.append(f"WHEN \"{tag}\" NOTNULL AND TRY_CAST(\"{tag}\" AS {kind}) ISNULL "
                         f"THEN {_misfit(tag, kind, text)}")  # fmt: skip
            values.append(f', TRY_CAST("{tag}" AS {kind}) AS "{tag}"')
            continue
        if kind != "VARCHAR":
            fits = f"coalesce({_FITS[kind].format(text)}, false)"
            wrong.append(f"WHEN {text} NOTNULL AND NOT {fits} THEN {_misfit(tag, kind, text)}")
        values.append(f', TRY_CAST({text} AS {kind}) AS "{tag}"')
    reason = f"CASE {' '.join(wrong)} END" if wrong else "CAST(NULL AS VARCHAR)"
    work.execute(
        f'CREATE TEMP TABLE typed AS SELECT "{_LINE}" AS line, nullif("{_KEY}", \'\') AS key,'
        f" {reason} AS reason{''.join(values)} FROM given"
    )
    good = work.execute(
        "SELECT * EXCLUDE (reason) FROM typed WHERE reason ISNULL ORDER BY line"
    ).to_arrow_table()
    bad = work.execute(
        "SELECT line, coalesce(key, '') AS key, 'unreadable' AS kind, reason FROM typed"
        " WHERE reason NOTNULL"
    ).to_arrow_table()
    return good, bad


def _misfit(tag: str, kind: str, text: str) -> str:
    return f"'value ''' || left({text}, {_LONGEST_SHOWN}) || ''' of {tag} is no {kind}'"


def _match(connection: duckdb.DuckDBPyConnection, key: Key, datasource: str | None) -> pa.Table:
    """Register `matched` (line, fkey); the problems of the other rows."""
    only = " AND f.datasource = ?" if datasource is not None else ""
    values = [datasource] if datasource is not None else []
    matches = connection.execute(
        # Each key once: many rows of a name that many files have are no more work than one.
        "WITH given AS (SELECT DISTINCT key FROM named),"
        " keys AS (SELECT g.key, count(*) AS files, min(f.fkey) AS fkey, max(f.fkey) AS another"
        f" FROM given AS g JOIN {LAKE}.main.{FILES} AS f ON {_MATCHES[key]}{only} GROUP BY g.key)"
        " SELECT g.line, g.key, coalesce(files, 0) AS files, fkey, another,"
        " min(g.line) FILTER (files = 1) OVER (PARTITION BY fkey) AS first"
        " FROM named AS g LEFT JOIN keys USING (key)",
        values,
    ).to_arrow_table()
    connection.register("found", matches)
    matched = connection.execute(
        "SELECT line, fkey FROM found WHERE files = 1 AND first = line"
    ).to_arrow_table()
    connection.register("matched", matched)
    problems: pa.Table = connection.execute(
        "SELECT line, coalesce(key, '') AS key,"
        " CASE files WHEN 0 THEN 'unmatched' WHEN 1 THEN 'repeated' ELSE 'ambiguous' END AS kind,"
        " CASE files WHEN 0 THEN CASE WHEN key ISNULL THEN 'names no file: its key is empty'"
        " ELSE 'names no file of the catalog' END"
        " WHEN 1 THEN 'names the file of line ' || first"
        " ELSE 'names ' || files || ' files, such as ' || fkey || ' and ' || another END AS reason"
        " FROM found WHERE NOT (files = 1 AND first = line)"
    ).to_arrow_table()
    return problems


def _quoted_list(columns: Mapping[str, str]) -> str:
    return "".join(f', g."{tag}"' for tag in columns)


def parse_types(texts: Sequence[str]) -> dict[str, str]:
    """Types given as "tag=TYPE".

    Raises:
        InvalidInput: One is not of that form.
    """
    types = {}
    for text in texts:
        match = re.fullmatch(r"([^=]+)=([A-Za-z]+)", text)
        if match is None or match[2].upper() not in TYPES:
            raise InvalidInput(f"type '{text}': expected TAG=TYPE, TYPE one of {', '.join(TYPES)}")
        types[match[1].strip()] = match[2].upper()
    return types
