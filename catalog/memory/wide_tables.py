"""A snapshot laid out for questions: files with tags as one wide table, the others beside them.

    tagged_files      metaocean's columns and every tag of every family; has_<family>: whether the
                      family has a row for the file; fkey_hash, filename_hash, label_size
    untagged_files    metaocean's columns, fkey_hash, filename_hash
    both              row_number, another one for each row that is ever put in

So no question joins families on fkey, which is a text. Numbers and fkey are kept as they are, other
texts compressed: at 1,000,000 frames of 38 classes 450 MB instead of 1,665, and as fast. A text tag
of few values, such as camera and scene, is kept as an ENUM.

A class group is a column that is computed where it is read (catalog.lake.group_tags).

Under the catalog's own names lie views, so that every other statement runs on it, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from catalog.lake import views as discover_views
from catalog.lake.connection import LAKE
from catalog.lake.group_tags import sum_of
from catalog.lake.schema import (
    FILES,
    FILES_COLUMNS,
    FRAME_TAGS,
    INTERNAL_FILES_COLUMNS,
    NOT_IN_MEMORY,
)
from catalog.lake.wide_names import (
    EVERY_FILE,
    FILENAME_HASH,
    FKEY_HASH,
    HASH_OF_FILENAME,
    HASH_OF_FKEY,
    LABEL_SIZE,
    ROW_NUMBER,
    TAGGED_FILES,
    UNTAGGED_FILES,
    in_family,
)
from catalog.text.quoting import literal
from catalog.values import TagColumn

_ROW_GROUP = 122_880
"""Rows of DuckDB's row group: so many lie uncompressed in memory at once while loading."""

_ROWS_AT_ONCE = 20_480
"""Rows of one batch while loading, of which there are two copies at once."""

_FILES_AT_ONCE = 2_000_000
"""Most files of one portion while loading: what its joins hold takes 1 GB."""

_PORTIONS, _FEW_FILES = 16, 125_000
"""So many portions, of at least as many files, bound what joins hold to a fraction of the tables.
Each looks for its labels among all files, so that more of them take longer."""

_DRAWN = 64
"""Files drawn for each portion to find where it ends."""

MOST_VALUES = 10_000
"""Text tags of more values are kept as text."""


@dataclass(frozen=True)
class Layout:
    """Tables and columns of a snapshot in memory."""

    tags: tuple[TagColumn, ...]
    """Its tags, in the order of their columns."""
    families: tuple[str, ...]
    """The tables that they are of."""
    plain_tables: tuple[str, ...]
    """Tables that are as in the catalog: its format, the kinds of its tags."""

    @staticmethod
    def of(source: duckdb.DuckDBPyConnection) -> "Layout":
        """That of the snapshot that a cursor of WritableCatalog.inspecting reads."""
        tags = tuple(discover_views.tag_columns(source))
        families = tuple(dict.fromkeys(tag.table for tag in tags if not tag.classes))
        return Layout(tags, families, tuple(_other_tables(source, families)))

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns of each of the two tables, but for what numbers and marks their rows."""
        return {
            TAGGED_FILES: tuple(column.name for column in _columns(self)),
            UNTAGGED_FILES: (*_OF_FILES, *_HASHES),
        }

    def rows(self, condition: str) -> dict[str, str]:
        """For each of the two tables a statement that gives its rows.

        Args:
            condition: On fkey: of which files.
        """
        of_files = ", ".join(f"{value} AS {name}" for name, value in _OF_EVERY_FILE.items())
        tagged = " UNION ALL ".join(
            f"SELECT fkey FROM {_rows(family, condition)}" for family in self.families
        )
        return {
            TAGGED_FILES: f"{self.every_row(condition)} WHERE {self._has_tags()}",
            UNTAGGED_FILES: f"SELECT {of_files} FROM {_rows(FILES, condition)} AS f "
            f"ANTI JOIN ({tagged}) AS t ON t.fkey = f.fkey",
        }

    def every_row(self, condition: str) -> str:
        """A statement that gives the rows of both tables, all with the columns of the wide one.

        Args:
            condition: On fkey: of which files.
        """
        values = ", ".join(
            f'{column.value} AS "{column.name}"'
            for column in _columns(self)
            if not column.is_computed
        )
        return (
            f"SELECT {values} FROM {_rows(FILES, condition)} AS f "
            f"{_joins(self.families, condition)} {_join_labels(condition)}"
        )

    def divided(self, rows: pa.Table) -> dict[str, pa.Table]:
        """Divide the rows that `every_row` gives for few files among the two tables."""
        tagged = reduce(pc.or_, (rows[in_family(family)] for family in self.families))
        return {
            TAGGED_FILES: rows.filter(tagged),
            UNTAGGED_FILES: rows.select([*_OF_FILES, *_HASHES]).filter(pc.invert(tagged)),
        }

    def _has_tags(self) -> str:
        return " OR ".join(f"{family}.fkey IS NOT NULL" for family in self.families)


def load(source: duckdb.DuckDBPyConnection, target: duckdb.DuckDBPyConnection) -> Layout:
    """Lay out the snapshot that ``source`` reads.

    Args:
        source: A cursor of WritableCatalog.inspecting.
        target: An empty DuckDB in memory; the tables come into its database `lake`.

    Raises:
        duckdb.OutOfMemoryException: They do not fit into the target's memory limit.
    """
    target.execute(f"ATTACH ':memory:' AS {LAKE} (COMPRESS)")
    target.execute(f"USE {LAKE}.main")
    target.execute(f"CREATE SEQUENCE {ROW_NUMBER} MINVALUE 0 START 0")
    # By itself DuckDB compresses a row group that is not full, and again with each batch.
    target.execute("SET GLOBAL checkpoint_threshold = '1TB'")
    layout = Layout.of(source)
    for table in layout.plain_tables:
        _copy(source, [f'SELECT * FROM {LAKE}.main."{table}"'], target, table)
    of_files = [f'"{name}" {kind}' for name, kind in _OF_FILES.items()]
    of_files += [f'"{name}" UBIGINT USING COMPRESSION uncompressed' for name in _HASHES]
    for table, columns in {
        TAGGED_FILES: (column.definition(source) for column in _columns(layout)),
        UNTAGGED_FILES: of_files,
    }.items():
        numbered = f"{ROW_NUMBER} INTEGER DEFAULT nextval('{LAKE}.main.{ROW_NUMBER}')"
        target.execute(f"CREATE TABLE {table} ({', '.join(columns)}, {numbered})")
    statements = [layout.rows(condition) for condition in _portions(source)]
    for table in (TAGGED_FILES, UNTAGGED_FILES):
        _copy(source, [each[table] for each in statements], target, table)
    target.execute("RESET GLOBAL checkpoint_threshold")
    for view in table_views(layout):
        target.execute(view)
    return layout


_OF_FILES = FILES_COLUMNS | INTERNAL_FILES_COLUMNS

_HASHES = {FKEY_HASH: HASH_OF_FKEY, FILENAME_HASH: HASH_OF_FILENAME}
"""Columns by which a file is found without reading texts, and their values."""

_OF_EVERY_FILE = {f'"{name}"': f'f."{name}"' for name in _OF_FILES} | _HASHES


@dataclass(frozen=True)
class _Column:
    """A column of the wide table: its name, type and storage there, its value in the catalog."""

    name: str
    type: str
    value: str
    fast: bool = False
    tag: TagColumn | None = None
    is_computed: bool = False
    """Of the table's other columns, where it is read."""

    def definition(self, source: duckdb.DuckDBPyConnection) -> str:
        """Its definition; what is few values in ``source`` is an ENUM."""
        if self.is_computed:
            return f'"{self.name}" {self.type} GENERATED ALWAYS AS ({self.value}) VIRTUAL'
        kind = self.type
        if self.tag is not None and kind == "VARCHAR":
            kind = _enum(source, self.tag)
        # A compressed number takes three times as long.
        fast = self.fast or (self.tag is not None and kind != "VARCHAR")
        return f'"{self.name}" {kind} {"USING COMPRESSION uncompressed" if fast else ""}'


def _other_tables(source: duckdb.DuckDBPyConnection, families: Sequence[str]) -> list[str]:
    """Tables that are laid out as they are: the catalog's format, the kinds of its tags."""
    not_asked = (FILES, *NOT_IN_MEMORY, *families)
    rows = source.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = ? AND "
        "schema_name = 'main' ORDER BY table_oid",
        [LAKE],
    ).fetchall()
    return [table for (table,) in rows if table not in not_asked]


def _copy(
    source: duckdb.DuckDBPyConnection,
    statements: Sequence[str],
    target: duckdb.DuckDBPyConnection,
    table: str,
) -> None:
    """Put statements' rows into a table, which is made where it is missing.

    A row group is compressed when it is full, and the last one at the end: to add to a compressed
    one takes four times as long, and memory for all of it.
    """
    rows = 0
    for statement in statements:
        reader = source.execute(statement).to_arrow_reader(_ROWS_AT_ONCE)
        target.register("incoming", reader.schema.empty_table())
        target.execute(f'CREATE TABLE IF NOT EXISTS "{table}" AS SELECT * FROM incoming')
        for batch in reader:
            room = _ROW_GROUP - rows % _ROW_GROUP
            for slice_ in (batch[:room], batch[room:]):
                if not slice_.num_rows:
                    continue
                target.register("incoming", pa.Table.from_batches([slice_]))
                target.execute(f'INSERT INTO "{table}" BY NAME SELECT * FROM incoming')
                rows += slice_.num_rows
                if rows % _ROW_GROUP == 0:
                    target.execute(f"CHECKPOINT {LAKE}")
    target.execute(f"CHECKPOINT {LAKE}")
    target.unregister("incoming")


def _portions(source: duckdb.DuckDBPyConnection) -> list[str]:
    """Conditions on fkey that divide the files into portions whose joins fit into memory.

    The joins of 10,000,000 frames at once spill 10 GB to disk. A scan lists files in order, so that
    a range of fkeys lies in few Parquet files.
    """
    row = source.execute(f"SELECT count(*) FROM {LAKE}.main.{FILES}").fetchone()
    files = row[0] if row else 0
    portions = max(min(_PORTIONS, files // _FEW_FILES), -(-files // _FILES_AT_ONCE))
    if portions < 2:
        return ["true"]
    drawn = source.execute(
        f"SELECT fkey FROM {LAKE}.main.{FILES} USING SAMPLE {_DRAWN * portions} ROWS ORDER BY fkey"
    ).fetchall()
    ends = [literal(fkey) for (fkey,) in drawn[_DRAWN::_DRAWN]]
    return [
        f"fkey < {ends[0]}",
        *(f"fkey >= {low} AND fkey < {high}" for low, high in pairwise(ends)),
        f"fkey >= {ends[-1]}",
    ]


def _rows(table: str, condition: str) -> str:
    return f"(FROM {LAKE}.main.{table} WHERE {condition})"


def _joins(families: Sequence[str], condition: str) -> str:
    return " ".join(
        f"LEFT JOIN {_rows(family, condition)} AS {family} ON {family}.fkey = f.fkey"
        for family in families
    )


def _join_labels(condition: str) -> str:
    """The files that frames of a portion name as their labels, wherever those lie."""
    key = f"f.cluster || ':' || f.datasource || ':' || {FRAME_TAGS}.label_file"
    named = (
        f"SELECT {key} FROM {_rows(FILES, condition)} AS f {_joins([FRAME_TAGS], condition)} "
        f"WHERE {FRAME_TAGS}.fkey IS NOT NULL"
    )
    return f"LEFT JOIN {_rows(FILES, f'fkey IN ({named})')} AS l ON l.fkey = {key}"


def _columns(layout: Layout) -> list[_Column]:
    """The wide table's columns."""
    return [
        *(
            _Column(name, kind, f'f."{name}"', fast=name == "fkey")
            for name, kind in _OF_FILES.items()
        ),
        *map(_of_tag, layout.tags),
        *(
            _Column(in_family(family), "BOOLEAN", f"{family}.fkey IS NOT NULL")
            for family in layout.families
        ),
        *(_Column(name, "UBIGINT", value, fast=True) for name, value in _HASHES.items()),
        _Column(LABEL_SIZE, "BIGINT", "l.size"),
    ]


def _of_tag(tag: TagColumn) -> _Column:
    if tag.classes:
        return _Column(tag.tag, tag.type, sum_of(tag.classes), is_computed=True)
    return _Column(tag.tag, tag.type, f'{tag.table}."{tag.tag}"', tag=tag)


def _enum(source: duckdb.DuckDBPyConnection, tag: TagColumn) -> str:
    """The type of a text tag: an ENUM where it has few values."""
    of_tag = f'FROM {LAKE}.main.{tag.table} WHERE "{tag.tag}" IS NOT NULL'
    row = source.execute(f'SELECT approx_count_distinct("{tag.tag}") {of_tag}').fetchone()
    if row is None or not 0 < row[0] <= MOST_VALUES:
        return "VARCHAR"
    rows = source.execute(f'SELECT DISTINCT "{tag.tag}" {of_tag} ORDER BY 1').fetchall()
    return enum_type([value for (value,) in rows])


def enum_type(values: Sequence[str]) -> str:
    """The type of a text that is one of these values, in the order in which they compare."""
    return f"ENUM ({', '.join(literal(value) for value in values)})"


def table_views(
    layout: Layout, database: str = LAKE, mark: str = "", barrier: str = ""
) -> list[str]:
    """Statements that make views of the catalog's own names, and every_file.

    They read the tables themselves: each view that stands between is bound with all its columns.

    Args:
        database: Gets the views.
        mark: Column of the tables that is above 0 in the rows that the views have; all when empty.
        barrier: What ends each SELECT of them.
    """
    main = f"{database}.main"
    visible = f"{mark} > 0" if mark else "true"

    def union(tagged: str, untagged: str) -> str:
        return " UNION ALL ".join(
            f"(SELECT {values} FROM {LAKE}.main.{table} WHERE {visible} {barrier})"
            for table, values in {TAGGED_FILES: tagged, UNTAGGED_FILES: untagged}.items()
        )

    names = ", ".join(f'"{name}"' for name in _OF_FILES)
    rows = union(names, names)
    if mark:
        # DuckDB counts the rows of a UNION by its first column: 3.3 ms of 1,000,000 marked texts,
        # and 1.8 of the marks, which are read anyway.
        rows = f"SELECT {names} FROM ({union(f'{mark}, {names}', f'{mark}, {names}')})"
    views = [f"CREATE VIEW {main}.{FILES} AS {rows}"]
    expressions = {tag.tag: f'"{tag.tag}"' for tag in layout.tags}
    for tag in layout.tags:
        if tag.type == "VARCHAR":
            expressions[tag.tag] = f'CAST("{tag.tag}" AS VARCHAR)'
    for family in layout.families:
        values = "".join(
            f', {expressions[tag.tag]} AS "{tag.tag}"' for tag in layout.tags if tag.table == family
        )
        views.append(
            f"CREATE VIEW {main}.{family} AS SELECT fkey{values} FROM {LAKE}.main.{TAGGED_FILES} "
            f"WHERE {in_family(family)} AND {visible} {barrier}"
        )
    names += "".join(f", {name}" for name in _HASHES)
    every = "".join(f', {expressions[tag.tag]} AS "{tag.tag}"' for tag in layout.tags)
    nulls = "".join(f', CAST(NULL AS {tag.type}) AS "{tag.tag}"' for tag in layout.tags)
    views.append(f"CREATE VIEW {main}.{EVERY_FILE} AS {union(names + every, names + nulls)}")
    return views
