"""Tags that a policy may set, and setting them batch by batch."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress

import duckdb
import pyarrow as pa

from catalog.errors import AlreadyExists, InvalidInput
from catalog.lake.catalog import Catalog, WritableCatalog
from catalog.lake.cursor import Cursor
from catalog.lake.schema import NOBODY_SETS
from catalog.lake.views import tag_columns
from catalog.tags import tag_kinds, tags
from catalog.tags.as_type import text_as
from catalog.tags.families import check_tag_name, put_rows
from catalog.tags.tag_rules import DEFAULT, LONGEST, TagKind
from pipeline.policies.actions import BATCH_ROWS
from pipeline.policies.report import Report

_FAMILY = "tags_"


def settable(cursor: Cursor) -> dict[str, tuple[str, str]]:
    """Family and type of each tag that a policy may set: not those that scans count."""
    return {
        column.tag: (column.table.removeprefix(_FAMILY), column.type)
        for column in tag_columns(cursor)
        if column.table not in NOBODY_SETS
    }


def check_settable(cursor: Cursor, names: Iterable[str]) -> None:
    """Policies may set these tags, or make them.

    Raises:
        InvalidInput: One is counted by scans, or no tag can have its name.
    """
    known = settable(cursor)
    counted = {column.tag for column in tag_columns(cursor)} - set(known)
    for name in names:
        if name in counted:
            raise InvalidInput(
                f"tag '{name}' is what scans read from labels and file names, or a class group of "
                "that; a policy sets others"
            )
        if name not in known:
            check_tag_name(name)


def check_value(cursor: Cursor, tag: str, value: str) -> None:
    """A tag may have a value.

    Raises:
        InvalidInput: Its type or its kind does not allow it.
    """
    _, kind_of_column = settable(cursor).get(tag, ("", "VARCHAR"))
    kind = tag_kinds.kinds(cursor).get(tag, DEFAULT if tag in settable(cursor) else _NEW)
    spelled = _spelled(kind_of_column, value)
    if spelled is None:
        raise InvalidInput(f"tag '{tag}': value '{value[:80]}' is no {kind_of_column}")
    refusal = kind.refusal(spelled)
    if refusal is not None:
        raise InvalidInput(f"tag '{tag}': value '{value[:80]}' {refusal}")


_NEW = TagKind("Open")
"""Kind of a tag that a policy makes."""


def make_missing(store: WritableCatalog, names: Iterable[str]) -> None:
    """Give the catalog the tags that it lacks: free text of at most 256 characters."""
    names = list(names)
    with store.reading() as cursor:
        check_settable(cursor, names)
        missing = [name for name in names if name not in settable(cursor)]
    for name in missing:
        with suppress(AlreadyExists):  # somebody else was faster
            tags.add_tag(store, name, "text", _NEW.kind)


def usable(store: Catalog, rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """The rows whose values their tags may have.

    Args:
        rows: Text columns with the names of tags, among others.
        names: The tags to look at; where one has no value, that is good.
    """
    with store.reading() as cursor:
        known, kinds = settable(cursor), tag_kinds.kinds(cursor)
    conditions, values = ["true"], []
    for name in names:
        kind = kinds.get(name, DEFAULT)
        text = "CAST({} AS VARCHAR)".format(text_as(f'"{name}"', known[name][1]))
        good = f"{text} NOTNULL AND length({text}) <= {LONGEST[kind.kind]}"
        if kind.kind == "Restricted":
            good += f" AND list_contains(?, {text})"
            values.append(list(kind.allowed))
        conditions.append(f'("{name}" ISNULL OR ({good}))')
    with closing(duckdb.connect(":memory:")) as work:
        work.register("given", rows)
        return work.execute(
            f"SELECT * FROM given WHERE {' AND '.join(conditions)}", values
        ).to_arrow_table()


def set_tags(
    store: WritableCatalog,
    report: Report,
    reason: str,
    rows: pa.Table,
    same: Mapping[str, str] = {},
    *,
    batch_rows: int = BATCH_ROWS,
) -> None:
    """Set tags of files, a commit for each batch; counts files that are done, or removed meanwhile.

    Args:
        reason: What the snapshots are for.
        rows: fkey, and a text column for each tag; a null is no value any more.
        same: Further tags, with a value that is the same for all files.
        batch_rows: Files of one commit.
    """
    report.heed()
    for start in range(0, rows.num_rows, batch_rows):
        batch = rows.slice(start, batch_rows)
        for tag, value in same.items():
            batch = batch.append_column(tag, pa.repeat(value, batch.num_rows))
        report.counts.submitted += batch.num_rows
        missing = _set(store, reason, batch)
        report.counts.completed += batch.num_rows - missing
        report.counts.skipped += missing
        report.heed()


def _set(store: WritableCatalog, reason: str, batch: pa.Table) -> int:
    """Set the tags, and return the number of files that the catalog no longer has."""
    with store.writing(reason, author="policy") as connection:
        families: dict[str, list[str]] = {}
        known = settable(connection)
        for name in batch.column_names:
            if name == "fkey":
                continue
            if name not in known:
                raise InvalidInput(f"tag '{name}' was removed while the policy ran")
            families.setdefault(known[name][0], []).append(name)
        missing = 0
        for family, names in families.items():
            written = put_rows(connection, family, batch.select(["fkey", *names]))
            missing = len(written.unknown)
        return missing


def _spelled(kind: str, value: str) -> str | None:
    """The value as a tag of that type shows it; None where it is none."""
    with closing(duckdb.connect(":memory:")) as work:
        typed = text_as("CAST($1 AS VARCHAR)", kind)
        row = work.execute(f"SELECT CAST({typed} AS VARCHAR)", [value]).fetchone()
    return None if row is None or row[0] is None else str(row[0])
