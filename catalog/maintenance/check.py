"""Checks that the catalog's contents fit together, and repairs what can be put right.

fkeys are compared by their 64-bit hash first: ten million then take 0.1 GB and not 1. A repair
deletes what is there twice or belongs to nothing and remakes views; it never makes up what is
missing.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

import duckdb

from catalog.lake import views as discover_views
from catalog.lake.metadata.column_statistics import wrong_columns
from catalog.lake.metadata.own_tables import commits, orphans, row_counts
from catalog.lake.schema import CLASS_PIXELS, FILES, FRAME_TAGS, GROUP_TAGS
from catalog.lake.views import tag_columns
from catalog.maintenance.damage import damage
from catalog.maintenance.findings import EXAMPLES, Finding, listed
from catalog.store import DISCOVER, LAKE, CatalogStore
from catalog.text.quoting import quoted

__all__ = ["Finding", "check"]

AUTHOR = "check"

_REPAIR = "framesift catalog check --repair"


def check(
    store: CatalogStore,
    named: Mapping[str, int],
    *,
    sources: Collection[tuple[str, str]] | None = None,
    repair: bool = False,
) -> list[Finding]:
    """Look at everything that can be wrong; what is wrong.

    Args:
        named: Snapshots that must be there, by who names them, such as "dataset val@1".
        sources: Cluster and datasource of each source that the records know; None where they are
            not to be compared.
        repair: Put right what can be, each kind of thing in a commit of its own.
    """
    damaged = damage(store.location, store.lock_wait_s)
    findings, lost = list(damaged.findings), damaged.tables
    if not damaged.opens:
        return findings
    findings += _strays(store, repair)
    findings += _snapshots(store, named)
    findings += _views(store, repair)
    findings += _statistics(store, repair)
    with store.reading() as cursor:
        of_tags = dict.fromkeys(
            column.table for column in tag_columns(cursor) if column.table != GROUP_TAGS
        )
    readable = [table for table in (FILES, *of_tags) if table not in lost]
    if sources is not None and FILES in readable:
        findings += _sources(store, sources)
    for table in readable:
        findings += _count(store, table)
        findings += _double(store, table, repair)
        if table != FILES and FILES in readable:
            findings += _loose(store, table, repair)
    if not {FILES, CLASS_PIXELS, FRAME_TAGS} & lost:
        findings += _incomplete(store)
    return findings


def _strays(store: CatalogStore, repair: bool) -> list[Finding]:
    with store.quiesced("the catalog is being checked"), store.inspecting() as cursor:
        strays = orphans(cursor, store.location)
        if repair:
            store.location.delete(strays)
    if not strays:
        return []
    what = f"{len(strays)} files that belong to no commit: {listed(strays)}"
    return [Finding("orphan_file", what, _REPAIR, repair)]


def _sources(store: CatalogStore, known: Collection[tuple[str, str]]) -> list[Finding]:
    with store.inspecting() as cursor:
        rows = cursor.execute(
            f"SELECT DISTINCT cluster, datasource FROM {LAKE}.main.{FILES} ORDER BY ALL"
        ).fetchall()
    unknown = [f"{row[0]}:{row[1]}" for row in rows if tuple(row) not in known]
    if not unknown:
        return []
    what = f"{len(unknown)} sources whose files are catalogued, and no record is: {listed(unknown)}"
    remedy = (
        "restore the records from a backup, or add the sources again: framesift source add with "
        "the same --cluster and --datasource"
    )
    return [Finding("records_gone", what, remedy)]


def _snapshots(store: CatalogStore, named: Mapping[str, int]) -> list[Finding]:
    with store.inspecting() as cursor:
        there = {commit.number for commit in commits(cursor)}
    return [
        Finding(
            "snapshot_gone",
            f"{holder} names snapshot {number}, which is not there",
            "its frames are in its manifest; the question can be asked of other snapshots only",
        )
        for holder, number in named.items()
        if number not in there
    ]


def _statistics(store: CatalogStore, repair: bool) -> list[Finding]:
    with store.inspecting() as cursor:
        wrong = wrong_columns(cursor)
    if not wrong:
        return []
    if repair:
        store.restore_statistics()
    what = (
        f"{len(wrong)} columns have values that are less than the least or more than the greatest "
        "that the catalog knows of: questions can leave out files and show other numbers"
    )
    return [Finding("wrong_statistics", what, _REPAIR, repair)]


class _UndoneError(Exception):
    """Ends a write that was made to look at what it would change."""


def _views(store: CatalogStore, repair: bool) -> list[Finding]:
    """Makes every view again, compares, and keeps the new ones in a repair."""
    wrong: list[str] = []
    with suppress(_UndoneError), store.writing("views remade", AUTHOR) as connection:
        before = _view_texts(connection)
        expected = {"metaocean", "metaocean_view"}
        expected |= {f"t_{column.tag}" for column in tag_columns(connection)}
        for name in before.keys() - expected:
            connection.execute(f'DROP VIEW {LAKE}.{DISCOVER}."{name}"')
        discover_views.create(connection, anew=True)
        after = _view_texts(connection)
        wrong = sorted(
            name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
        )
        if not (wrong and repair):
            raise _UndoneError
    if not wrong:
        return []
    what = f"{len(wrong)} views missing, wrong or of no tag: {listed(wrong)}"
    return [Finding("view", what, _REPAIR, repair)]


def _view_texts(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    return dict(
        connection.execute(
            "SELECT view_name, sql FROM duckdb_views() WHERE database_name = ? AND schema_name = ?",
            [LAKE, DISCOVER],
        ).fetchall()
    )


def _count(store: CatalogStore, table: str) -> list[Finding]:
    with store.inspecting() as cursor:
        written = row_counts(cursor).get(table, 0)
        # The fkeys are looked at: a mere count(*) is answered by what was written down.
        row = cursor.execute(f"SELECT count(nullif(fkey, '')) FROM {LAKE}.main.{table}").fetchone()
    read = row[0] if row else 0
    if read == written:
        return []
    what = f"{table}: {read:,} rows can be read, {written:,} were written"
    return [Finding("wrong_count", what, "restore the catalog from a backup")]


def _double(store: CatalogStore, table: str, repair: bool) -> list[Finding]:
    rows = f"{LAKE}.main.{table}"
    doubled = (
        f"SELECT fkey FROM {rows} WHERE hash(fkey) IN "
        f"(SELECT hash(fkey) AS h FROM {rows} GROUP BY h HAVING count(*) > 1) "
        "GROUP BY fkey HAVING count(*) > 1"
    )
    count, fkeys = _counted(store, doubled)
    if not count:
        return []
    if repair:
        with store.writing(f"{table}: one row for each file", AUTHOR) as connection:
            # Gathered first: a change in several steps leaves files that no commit holds.
            connection.execute(
                f"CREATE TEMP TABLE kept_rows AS SELECT * FROM {rows} WHERE fkey IN ({doubled}) "
                "QUALIFY row_number() OVER (PARTITION BY fkey ORDER BY rowid DESC) = 1"
            )
            connection.execute(f"DELETE FROM {rows} WHERE fkey IN (SELECT fkey FROM kept_rows)")
            connection.execute(f"INSERT INTO {rows} BY NAME SELECT * FROM kept_rows")
            connection.execute("DROP TABLE kept_rows")
    what = f"{table}: {count:,} files with several rows: {listed(fkeys, count)}"
    return [Finding("double_fkey", what, f"{_REPAIR} keeps the newest row of each", repair)]


def _loose(store: CatalogStore, table: str, repair: bool) -> list[Finding]:
    loose = _lacking(f"SELECT fkey, hash(fkey) AS h FROM {LAKE}.main.{table}", FILES)
    count, fkeys = _counted(store, loose)
    if not count:
        return []
    if repair:
        with store.writing(f"{table}: rows of no file deleted", AUTHOR) as connection:
            connection.execute(f"DELETE FROM {LAKE}.main.{table} WHERE fkey IN ({loose})")
    what = f"{table}: {count:,} rows of files that are not catalogued: {listed(fkeys, count)}"
    return [Finding("row_without_file", what, _REPAIR, repair)]


def _incomplete(store: CatalogStore) -> list[Finding]:
    """Frames with counts and no names, or names and no counts, or whose label file is gone."""
    with store.inspecting() as cursor:
        sources = cursor.execute(
            f"SELECT DISTINCT cluster || ':' || datasource || ':' FROM {LAKE}.main.{FILES}"
        ).fetchall()
    prefixes = sorted((quoted(row[0]) for row in sources), key=len, reverse=True)
    source = "".join(f" WHEN starts_with(fkey, '{one}') THEN '{one}'" for one in prefixes)
    label = f"CASE{source} END || label_file" if source else "CAST(NULL AS VARCHAR)"
    pixels, frames = (f"FROM {LAKE}.main.{table}" for table in (CLASS_PIXELS, FRAME_TAGS))
    findings = []
    for what, rows, table in (
        ("without scene and camera", f"SELECT fkey, hash(fkey) AS h {pixels}", FRAME_TAGS),
        ("without class pixels", f"SELECT fkey, hash(fkey) AS h {frames}", CLASS_PIXELS),
        (
            "whose label file is not catalogued",
            f"SELECT fkey, hash({label}) AS h {frames} WHERE {label} IS NOT NULL",
            FILES,
        ),
    ):
        count, fkeys = _counted(store, _lacking(rows, table))
        if count:
            message = f"{count:,} frames {what}: {listed(fkeys, count)}"
            findings.append(Finding("frame_incomplete", message, "framesift ingest SOURCE --full"))
    return findings


def _lacking(rows: str, table: str) -> str:
    """The statement for the fkeys of rows (fkey, h) whose h is the hash of no fkey of a table."""
    hashes = f"SELECT hash(fkey) AS h FROM {LAKE}.main.{table}"
    return f"SELECT fkey FROM ({rows}) ANTI JOIN ({hashes}) USING (h)"


def _counted(store: CatalogStore, statement: str) -> tuple[int, Sequence[str]]:
    """The number of fkeys that a statement gives, and the first of them."""
    # Counted alone first: DuckDB's join then keeps no fkey, 100 MB of 1,000,000 frames.
    with store.inspecting() as cursor:
        (count,) = cursor.execute(f"SELECT count(*) FROM ({statement})").fetchone() or (0,)
        if not count:
            return 0, ()
        row = cursor.execute(f"SELECT min(fkey, {EXAMPLES}) FROM ({statement})").fetchone()
    return count, row[0] if row else ()
