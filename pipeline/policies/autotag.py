"""AUTOTAG: the same values for every file found, or a part of another of its fields."""

from contextlib import closing

import duckdb
import pyarrow as pa

from catalog.errors import UnknownName
from catalog.lake.catalog import Catalog, WritableCatalog
from catalog.lake.snapshot import Snapshot
from catalog.policies import regexes as policy_regexes
from catalog.policies.regexes import check_pattern
from catalog.records.policy_tables import Policy
from catalog.records.store import RecordStore
from pipeline.policies.actions import BATCH_ROWS, Rule, SetTags, TakeFromField
from pipeline.policies.matching import matching
from pipeline.policies.report import Report
from pipeline.policies.tags import check_settable, check_value, make_missing, set_tags, usable
from query.discover.search import VIEW

LONGEST = 256
"""Characters of a value that is taken from a field; the rest is cut."""


def check(snapshot: Snapshot, records: RecordStore, action: SetTags | TakeFromField) -> None:
    """The action can be done, as the catalog is now.

    Raises:
        UnknownName: There is no such field.
    """
    if isinstance(action, SetTags):
        check_settable(snapshot, action.values)
        for tag, value in action.values.items():
            check_value(snapshot, tag, value)
        return
    rule = action.rule
    check_settable(snapshot, [rule.tag.lower()])
    columns = snapshot.schema[VIEW]
    if rule.field.lower() not in columns:
        raise UnknownName("existingField", rule.field[:80], columns)
    if rule.action == "regex":
        check_pattern(_pattern(records, rule))


def run(
    store: WritableCatalog,
    visible: Catalog,
    records: RecordStore,
    policy: Policy,
    action: SetTags | TakeFromField,
    report: Report,
    batch_rows: int = BATCH_ROWS,
) -> None:
    """Set the tags of every file that the policy finds in ``visible``.

    Files from whose field nothing is taken are skipped; a value that the tag may not have counts
    as failed.
    """
    report.heed()
    reason = f"policy {policy.name}"
    with store.reading() as snapshot:
        check(snapshot, records, action)
    if isinstance(action, SetTags):
        make_missing(store, action.values)
        files = matching(visible, policy, ["fkey"])
        report.counts.total = files.num_rows
        set_tags(store, report, reason, files, action.values, batch_rows=batch_rows)
    else:
        tag = action.rule.tag.lower()
        make_missing(store, [tag])
        files = matching(visible, policy, ["fkey", action.rule.field.lower()])
        report.counts.total = files.num_rows
        values = _values_of(files, _expression(records, action.rule), tag)
        rows = usable(store, values, [tag])
        failed, skipped = values.num_rows - rows.num_rows, files.num_rows - values.num_rows
        report.counts.failed, report.counts.skipped = failed, skipped
        report.counts.submitted = failed + skipped
        set_tags(store, report, reason, rows, batch_rows=batch_rows)


def _values_of(files: pa.Table, expression: tuple[str, list[object]], tag: str) -> pa.Table:
    """The tag's value by fkey, where there is one."""
    renamed = files.rename_columns(["fkey", "given"])
    sql, values = expression
    with closing(duckdb.connect(":memory:")) as work:
        work.register("found", renamed)
        return work.execute(
            f'SELECT fkey, left(taken, {LONGEST}) AS "{tag}" FROM '
            f"(SELECT fkey, {sql} AS taken FROM (SELECT fkey, CAST(given AS VARCHAR) AS text "
            "FROM found)) WHERE taken <> ''",
            values,
        ).to_arrow_table()


def _expression(records: RecordStore, rule: Rule) -> tuple[str, list[object]]:
    """DuckDB's SQL for the value that is taken from ``text``."""
    if rule.action == "regex":
        pattern = _pattern(records, rule)
        return "regexp_extract_all(text, ?)[?]", [pattern, rule.match_number]
    # A path begins with its delimiter, and its first part comes after that.
    first = "CASE WHEN starts_with(text, ?) THEN substr(text, length(?) + 1) ELSE text END"
    values: list[object] = [rule.delimiter, rule.delimiter, rule.delimiter, rule.field_number]
    return f"string_split({first}, ?)[?]", values


def _pattern(records: RecordStore, rule: Rule) -> str:
    return rule.pattern or policy_regexes.recorded(records, rule.regex).pattern
