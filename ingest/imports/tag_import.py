"""Tags from a CSV or Parquet file, matched to the catalog's files by name or fkey.

Every row is either imported or reported with its line: one that names no file, several files, a
file that an earlier line named, has too few fields, or a value that is not of its tag's type.
The file is held in memory (its text and its columns), rows are never looped over in Python.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from catalog.errors import InvalidInput
from catalog.lake.schema import FILES
from catalog.store import LAKE, CatalogStore
from catalog.tags.families import (
    TYPES,
    define,
    family_columns,
    missing_columns,
    put_rows,
    table_of,
)
from catalog.tags.inferred_types import change_type, inferred_texts, misfit, note_text, wider
from ingest.imports.options import Key
from ingest.imports.reader_process import go_on
from ingest.imports.tag_table import TagTable, read_tags
from ingest.imports.tag_types import AS_TEXT, typed_rows

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
    """Counts, columns and problems of an import."""

    rows: int
    imported: int
    unmatched: int
    """Rows that name no file of the catalog."""
    ambiguous: int
    """Rows that name several files."""
    repeated: int
    """Rows that name a file that an earlier row named."""
    unreadable: int
    """Rows with a wrong number of fields or a value of another type."""
    columns: Mapping[str, str]
    ignored: tuple[str, ...]
    """Columns that say where a file lies, or number the rows, and so became no tags."""
    notes: tuple[str, ...]
    """What the import decided that a user may not expect: a column that is a text for one value, a
    column left out.
    """
    problems: pa.Table
    """Every row that was not imported: line (BIGINT, the first line is 1; a row's number where
    values contain line breaks, or in Parquet), key, kind, reason.
    """


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

    Raises:
        InvalidInput: The file is no such file or too large, a name or type cannot be used, or it
            was stopped.
    """
    table_of(family)
    content = read_tags(file, key, key_column, prefix, most_bytes, stopped)
    with store.inspecting() as cursor:
        stored = family_columns(cursor, family)
        changeable = inferred_texts(cursor, family) & set(content.tags)
    for tag in types or {}:
        if tag not in content.tags:
            raise InvalidInput(
                f"type of '{tag}': {file} has no such tag: {', '.join(content.tags)}"
            )
    fixed = {tag: kind for tag, kind in stored.items() if tag in set(content.tags) - changeable}
    typed = typed_rows(content, {**fixed, **(types or {})}, changeable, stopped)
    columns, notes = dict(typed.columns), list(content.notes)
    try:
        with store.reading() as cursor:  # refused before anything is matched
            missing_columns(cursor, family, columns | dict.fromkeys(changeable, "VARCHAR"))
    except InvalidInput as error:
        raise InvalidInput("; ".join([str(error), *notes])) from error
    go_on(stopped)
    with store.writing(f"tags imported from {file.name}", author="import") as connection:
        connection.register("named", typed.rows)
        problems = _match(connection, content.key, datasource)
        changes = {tag: columns[tag] for tag in changeable if columns[tag] != "VARCHAR"}
        for tag, kind in changes.items():
            is_asked = tag in (types or {})
            kinds = [kind] if is_asked else wider(kind)
            columns[tag], hindrance = _changed(connection, family, tag, kinds)
            if hindrance and is_asked:
                raise InvalidInput(
                    f"tag '{tag}' of family {family} stays VARCHAR: {hindrance} is no {kind}; "
                    f"give it another value, or remove the tag first: framesift tags remove {tag}"
                )
            typed.texts.update({tag: hindrance} if hindrance else {})
        as_text = {tag for tag in changes if columns[tag] == "VARCHAR"}
        rows = connection.execute(_ROWS.format(_values(columns, as_text))).to_arrow_table()
        go_on(stopped)
        if rows.num_rows:
            define(connection, family, columns)
            for tag in {*typed.texts, *changeable & (types or {}).keys()}:
                note_text(connection, family, tag, is_asked=tag not in typed.texts)
            put_rows(connection, family, rows)
    notes += [f"{tag}: text, because of {value}" for tag, value in typed.texts.items()]
    return _result(content, columns, notes, rows.num_rows, [problems, typed.problems])


_ROWS = "SELECT m.fkey{0} FROM named AS g JOIN matched AS m ON m.line = g.line"


def _values(columns: Iterable[str], as_text: set[str]) -> str:
    """The tags' columns in a statement, some with their texts."""
    return "".join(
        f', g."{AS_TEXT.format(tag) if tag in as_text else tag}" AS "{tag}"' for tag in columns
    )


def _changed(
    connection: duckdb.DuckDBPyConnection, family: str, tag: str, kinds: Sequence[str]
) -> tuple[str, str]:
    """The type that a tag has now, the first that other files' values fit; and what hinders all."""
    replaced = _ROWS.format("")
    for kind in kinds:
        value = misfit(connection, family, tag, kind, replaced)
        if value is None:
            change_type(connection, family, tag, kind, replaced)
            return kind, ""
    return "VARCHAR", f"'{value[0][:80]}' of {value[1]}" if value else ""


def _result(
    content: TagTable,
    columns: Mapping[str, str],
    notes: Sequence[str],
    imported: int,
    problems: Sequence[pa.Table],
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
        notes=tuple(notes),
        problems=together.sort_by("line"),
    )


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
