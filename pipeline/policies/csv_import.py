"""IMPORT_TAGS: values from a CSV file whose first column names the files.

That is `datasource/key` of an object, or path and name of a file. The other columns are tags; one
that is none, or that a policy may not set, is left out.
"""

import csv
import io
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from catalog.errors import InvalidInput
from catalog.lake.catalog import Catalog, WritableCatalog
from catalog.records.policy_tables import Policy
from pipeline.policies.actions import BATCH_ROWS
from pipeline.policies.matching import matching
from pipeline.policies.report import Report
from pipeline.policies.tags import set_tags, settable, usable

_BLANK = " \t\r\n"


@dataclass(frozen=True)
class _TagTable:
    """The content of a file."""

    rows: pa.Table
    """line and key, and a text column for each tag that is to be set."""
    broken: int
    """Rows that have not as many fields as the header."""
    unknown: Sequence[str]
    """Columns that are no tag that a policy may set."""


def run(
    store: WritableCatalog,
    visible: Catalog,
    policy: Policy,
    content: bytes,
    report: Report,
    batch_rows: int = BATCH_ROWS,
) -> None:
    """Set the tags of the files that the policy finds in ``visible`` and the CSV file names.

    Rows without their file, with several, with another number of fields than the header, or with a
    value that its tag may not have count as failed, and so does each column that is left out.
    """
    report.heed()
    with store.reading() as cursor:
        table = _read(content, settable(cursor))
    names = [name for name in table.rows.column_names if name not in ("line", "key")]
    report.counts.total = table.rows.num_rows + table.broken + len(table.unknown)
    files = matching(visible, policy, ["fkey", "path", "filename"])
    named = _named(table.rows, files)
    rows = usable(store, named, names)
    failed = report.counts.total - rows.num_rows
    report.counts.submitted, report.counts.failed = failed, failed
    set_tags(store, report, f"policy {policy.name}", rows, batch_rows=batch_rows)


def _read(content: bytes, known: "dict[str, tuple[str, str]]") -> _TagTable:
    try:
        text = content.decode("utf-8-sig")
        lines = [
            [value.strip(_BLANK) for value in line]
            for line in csv.reader(io.StringIO(text, newline=""))
        ]
    except (UnicodeDecodeError, csv.Error) as error:
        # No message shows what a file holds: who names it may not be who may read it.
        reason = error if isinstance(error, csv.Error) else "it is not UTF-8"
        raise InvalidInput(f"the tag file cannot be read as CSV: {reason}") from error
    if not lines:
        raise InvalidInput("the tag file is empty; expected a line of tag names, and rows")
    header = [name.lower() for name in lines[0]]
    names = header[1:]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise InvalidInput(
                f"the tag file's columns {names.index(name) + 2} and {index + 2} have one name"
            )
    tags = {name: index for index, name in enumerate(header) if index and name in known}
    if not tags:
        raise InvalidInput(
            f"none of the tag file's {len(names)} columns after the first is named as a tag that a "
            "policy may set; add tags first by POST /policyengine/v1/tags"
        )
    complete = [(n, line) for n, line in enumerate(lines[1:], 2) if len(line) == len(header)]
    columns = {
        "line": pa.array([n for n, _ in complete], pa.int64()),
        "key": pa.array([line[0] for _, line in complete], pa.string()),
        **{
            name: pa.array([line[index] or None for _, line in complete], pa.string())
            for name, index in tags.items()
        },
    }
    empty = sum(not line for line in lines[1:])
    unknown = [name for name in names if name not in tags]
    return _TagTable(pa.table(columns), len(lines) - 1 - empty - len(complete), unknown)


def _named(rows: pa.Table, files: pa.Table) -> pa.Table:
    """Tags by fkey, of the rows that name one file and are the first to name it."""
    with closing(duckdb.connect(":memory:")) as work:
        work.register("given", rows)
        work.register("found", files)
        return work.execute(
            "WITH hits AS (SELECT g.line, f.fkey FROM given AS g JOIN found AS f ON "
            "f.path || f.filename = g.key "
            "UNION SELECT g.line, f.fkey FROM given AS g JOIN found AS f ON f.filename = g.key), "
            "one AS (SELECT line, any_value(fkey) AS fkey FROM hits GROUP BY line "
            "HAVING count(*) = 1 QUALIFY row_number() OVER (PARTITION BY any_value(fkey) "
            "ORDER BY line) = 1) "
            "SELECT one.fkey, given.* EXCLUDE (line, key) FROM one JOIN given USING (line) "
            "ORDER BY line"
        ).to_arrow_table()
