"""Files and frames: insert and fetch."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import duckdb
import pyarrow as pa

from catalog.errors import InvalidInput
from catalog.frames import label_segments
from catalog.lake.arrow_types import ARROW
from catalog.lake.connection import LAKE
from catalog.lake.cursor import Cursor
from catalog.lake.schema import (
    CLASS_PIXELS,
    FILE_DIGESTS,
    FILE_DIGESTS_COLUMNS,
    FILES,
    FILES_COLUMNS,
    FRAME_TAGS,
    FRAME_TAGS_COLUMNS,
    FRAME_TREES,
    GROUP_TAGS,
    INTERNAL_FILES_COLUMNS,
    LAYOUT_TAGS,
    NOBODY_SETS,
    OF_SCANS,
    UNKNOWN_PIXELS,
)
from catalog.lake.views import tag_columns
from catalog.tags import confusion_cells, kept_tags
from catalog.tags.extractions import extracted_families
from catalog.tags.families import define, family_of, put_rows
from catalog.text.quoting import quoted
from catalog.values import (
    FKEY_CHARACTERS,
    OBJECT_PLATFORMS,
    File,
    Frame,
    KnownFile,
    TagColumn,
    make_fkey,
)

_FETCHED_ROWS = 10_000


@dataclass(frozen=True)
class SourceNames:
    """Names of a source's files in the catalog."""

    platform: str
    """"IBM COS", "NFS", "local"..."""
    cluster: str
    """Cluster or host that serves it."""
    datasource: str
    """Bucket, export or folder name."""
    root: str
    """Folder its keys are below, as rows of a file system show it."""
    site: str = ""
    """Free text."""


def register(
    connection: duckdb.DuckDBPyConnection,
    source: SourceNames,
    files: Sequence[File],
    frames: Sequence[Frame],
    scan: int,
) -> None:
    """Put files and the tags of their frames into the caller's transaction, replacing older rows.

    Rows are as Spectrum Discover has them: one per file; the camera image's row carries the
    frame's tags and the label file's does not, so that nothing counts twice.

    Args:
        connection: Inside WritableCatalog.writing.
        files: The files; each key once.
        frames: Frames whose files are among ``files``.
        scan: Number of the scan, kept as scangen.

    Raises:
        InvalidInput: A key is given twice, or a name is longer than the catalog allows.
    """
    rows = [_file_row(source, file, scan) for file in files]
    keys = [row["fkey"] for row in rows]
    if len(set(keys)) < len(keys):
        raise InvalidInput(f"source {source.datasource}: a key is listed twice")
    file_table = _table(rows, FILES_COLUMNS | INTERNAL_FILES_COLUMNS)
    if not rows:
        return
    connection.register("new_files", file_table)
    of_layout = {LAYOUT_TAGS} & {column.table for column in tag_columns(connection)}
    label_segments.forget(connection, "SELECT fkey FROM new_files")
    for table in (FILES, CLASS_PIXELS, FRAME_TAGS, *of_layout, *OF_SCANS):
        # Tags go too: a frame whose label became unreadable must not keep its old counts.
        connection.execute(f"DELETE FROM {table} WHERE fkey IN (SELECT fkey FROM new_files)")
    connection.execute(f"INSERT INTO {FILES} BY NAME SELECT * FROM new_files")
    _give_back(connection, "SELECT fkey FROM new_files")
    connection.unregister("new_files")
    if not frames:
        return
    classes = dict.fromkeys((tag for frame in frames for tag in frame.class_pixels), "INTEGER")
    positions = dict.fromkeys(frames[0].positions, "TINYINT")
    columns = {"fkey": "VARCHAR", **positions, UNKNOWN_PIXELS: "INTEGER", **classes}
    for table, rows_of_tags, family in (
        (CLASS_PIXELS, [_class_row(source, frame) for frame in frames], columns),
        (FRAME_TAGS, [_frame_row(source, frame) for frame in frames], FRAME_TAGS_COLUMNS),
        (FILE_DIGESTS, _digest_rows(source, frames), FILE_DIGESTS_COLUMNS),
    ):
        if not rows_of_tags:
            continue
        connection.register("new_tags", _table(rows_of_tags, family))
        connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM new_tags")
        connection.unregister("new_tags")
    label_segments.put(
        connection,
        {
            make_fkey(source.cluster, source.datasource, frame.label): frame.label_segments
            for frame in frames
            if frame.label is not None and frame.label_segments is not None
        },
    )
    _register_layout_tags(connection, source, frames)


def _register_layout_tags(
    connection: duckdb.DuckDBPyConnection, source: SourceNames, frames: Sequence[Frame]
) -> None:
    names = dict.fromkeys(name for frame in frames for name in frame.tags)
    if not names:
        return
    columns = dict.fromkeys(names, "VARCHAR")
    define(connection, family_of(LAYOUT_TAGS), columns, of_scan=True)
    rows = [
        {"fkey": make_fkey(source.cluster, source.datasource, frame.image), **frame.tags}
        for frame in frames
    ]
    connection.register("new_tags", _table(rows, {"fkey": "VARCHAR", **columns}))
    connection.execute(f"INSERT INTO {LAYOUT_TAGS} BY NAME SELECT * FROM new_tags")
    connection.unregister("new_tags")


def count_files(cursor: Cursor, source: SourceNames) -> int:
    """Number of a source's files in the cursor's snapshot."""
    row = cursor.execute(
        f"SELECT count(*) FROM {LAKE}.main.{FILES} WHERE cluster = ? AND datasource = ?",
        [source.cluster, source.datasource],
    ).fetchone()
    return int(row[0]) if row else 0


def known_files(cursor: Cursor, source: SourceNames, below: str = "") -> Iterator[KnownFile]:
    """A source's files as the cursor's snapshot has them, in byte order of the keys.

    Streamed: the cursor must not be used for anything else meanwhile.

    Args:
        cursor: Of Catalog.reading_files.
        below: Only what lies in this folder (ends in a slash), or this one file.
    """
    prefix = make_fkey(source.cluster, source.datasource, "")
    # Bounds and not starts_with: DuckDB skips Parquet row groups by them.
    first, last = prefix + below, prefix + below
    if not below or below.endswith("/"):
        last += "\U0010ffff"
    cursor.execute(
        f"SELECT substr(fkey, {len(prefix) + 1}), size, mtime, coalesce(etag, ''), fkey IN "
        f"(SELECT fkey FROM {LAKE}.main.{FRAME_TAGS} "
        f"UNION ALL SELECT fkey FROM {LAKE}.main.{FRAME_TREES}), state, tier "
        f"FROM {LAKE}.main.{FILES} WHERE cluster = ? AND datasource = ? "
        "AND fkey BETWEEN ? AND ? ORDER BY fkey",
        [source.cluster, source.datasource, first, last],
    )
    while rows := cursor.fetchmany(_FETCHED_ROWS):
        yield from (KnownFile(*row) for row in rows)


def restate(
    connection: duckdb.DuckDBPyConnection, source: SourceNames, files: Sequence[File]
) -> None:
    """Note state and tier of files whose content is as it was, inside the caller's transaction.

    Their tags stay: nothing was read.
    """
    if not files:
        return
    columns = {"fkey": "VARCHAR", "state": "VARCHAR", "tier": "VARCHAR", "sizeconsumed": "BIGINT"}
    rows = [
        {
            "fkey": make_fkey(source.cluster, source.datasource, file.key),
            "state": file.state,
            "tier": file.tier,
            "sizeconsumed": file.size_consumed,
        }
        for file in files
    ]
    connection.register("restated_files", _table(rows, columns))
    connection.execute(
        f"UPDATE {FILES} SET state = n.state, tier = n.tier, migloc = NULL, "
        f"sizeconsumed = n.sizeconsumed FROM restated_files AS n WHERE {FILES}.fkey = n.fkey"
    )
    connection.unregister("restated_files")


def remove(connection: duckdb.DuckDBPyConnection, source: SourceNames, keys: Sequence[str]) -> None:
    """Remove files with the tags of every family, inside the caller's transaction.

    They leave the current snapshot and stay in older ones. Tags that people gave are kept, and
    return with the file; see kept_tags.
    """
    if not keys:
        return
    fkeys = [make_fkey(source.cluster, source.datasource, key) for key in keys]
    connection.register("gone_files", pa.table({"fkey": pa.array(fkeys, pa.string())}))
    kept_tags.keep(connection, peoples_tags(connection), "SELECT fkey FROM gone_files")
    label_segments.forget(connection, "SELECT fkey FROM gone_files")
    for table in _tables_of_tags(connection):
        connection.execute(f"DELETE FROM {table} WHERE fkey IN (SELECT fkey FROM gone_files)")
    connection.unregister("gone_files")


def remove_source_files(connection: duckdb.DuckDBPyConnection, source: SourceNames) -> int:
    """Remove every file of a source as `remove` does; how many there were."""
    of_source = _fkeys_of(source)
    row = connection.execute(f"SELECT count(*) FROM ({of_source})").fetchone()
    kept_tags.keep(connection, peoples_tags(connection), of_source)
    label_segments.forget(connection, of_source)
    for table in _tables_of_tags(connection):
        connection.execute(f"DELETE FROM {table} WHERE fkey IN ({of_source})")
    return int(row[0]) if row else 0


def label_keys(cursor: Cursor, source: SourceNames, most: int | None = None) -> list[str]:
    """Keys of the labels of a source's frames in the cursor's snapshot, in their order.

    Args:
        most: At most so many of them, spread over all; every one when None.
    """
    some = "" if most is None else f"ORDER BY hash(fkey) LIMIT {most}"
    rows = cursor.execute(
        f"SELECT label_file FROM (SELECT label_file, fkey FROM {LAKE}.main.{FRAME_TAGS} "
        f"WHERE label_file IS NOT NULL AND fkey IN ({_fkeys_of(source)}) {some}) ORDER BY 1"
    ).fetchall()
    return [str(key) for (key,) in rows]


def source_contents(cursor: Cursor, source: SourceNames) -> tuple[int, int, dict[str, int]]:
    """Counts of a source's files, frames and given tags in the cursor's snapshot.

    Returns:
        Its files, its labelled frames, and of each family of tags that people gave (that no scan
        and no extractor gives again) how many of its files have some.
    """
    of_source = _fkeys_of(source)

    def count(table: str) -> int:
        row = cursor.execute(
            f'SELECT count(*) FROM {LAKE}.main."{table}" WHERE fkey IN ({of_source})'
        ).fetchone()
        return int(row[0]) if row else 0

    tables = dict.fromkeys(column.table for column in peoples_tags(cursor))
    counted = {family_of(table): count(table) for table in tables}
    people_gave = {family: files for family, files in counted.items() if files}
    row = cursor.execute(
        f"SELECT count(label_file) FROM {LAKE}.main.{FRAME_TAGS} WHERE fkey IN ({of_source})"
    ).fetchone()
    return count(FILES), int(row[0]) if row else 0, people_gave


def peoples_tags(cursor: Cursor) -> list[TagColumn]:
    """The tags that no scan and no extractor gives again."""
    read = extracted_families(cursor)
    return [
        column
        for column in tag_columns(cursor)
        if column.table not in NOBODY_SETS and family_of(column.table) not in read
    ]


def _give_back(connection: duckdb.DuckDBPyConnection, files: str) -> None:
    """Give files that have returned the tags that people had given them.

    A value that its tag no longer takes stays where it is kept.
    """
    tags = kept_tags.tags_with_kept_values(connection, files)
    for column in tag_columns(connection) if tags else ():
        if column.tag not in tags:
            continue
        rows = connection.execute(kept_tags.values_of([column.tag], files)).to_arrow_table()
        with suppress(InvalidInput):
            put_rows(connection, family_of(column.table), rows)
            kept_tags.forget(connection, [column.tag], files)


def _fkeys_of(source: SourceNames) -> str:
    """The statement for the fkeys of a source's files."""
    cluster, datasource = (quoted(text) for text in (source.cluster, source.datasource))
    return (
        f"SELECT fkey FROM {LAKE}.main.{FILES} "
        f"WHERE cluster = '{cluster}' AND datasource = '{datasource}'"
    )


def _tables_of_tags(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """The tables of every tag family, of models and of scans, and last the files' own."""
    families = dict.fromkeys(
        column.table for column in tag_columns(connection) if column.table != GROUP_TAGS
    )
    return [*families, *confusion_cells.tables(connection), *OF_SCANS, FILES]


def _file_row(source: SourceNames, file: File, scan: int) -> dict[str, object]:
    is_object = source.platform in OBJECT_PLATFORMS
    folder, _, name = file.key.rpartition("/")
    now = datetime.now(UTC).replace(tzinfo=None)
    fkey = make_fkey(source.cluster, source.datasource, file.key)
    if len(fkey) > FKEY_CHARACTERS:
        raise InvalidInput(
            f"{file.key}: its name is longer than the {FKEY_CHARACTERS:,} characters of an fkey"
        )
    return {
        "datasource": source.datasource,
        "operation": "INDEX",
        "ingesttype": "SCAN",
        "revision": "MO1",
        "site": source.site,
        "platform": source.platform,
        "cluster": source.cluster,
        "inode": file.inode,
        "owner": file.owner,
        "group": file.group,
        "permissions": file.permissions,
        "fileset": "" if is_object else "NA",
        "uid": file.uid,
        "gid": file.gid,
        # Objects: the bucket and the whole key. Files: the folder and the base name.
        "path": f"{source.datasource}/"
        if is_object
        else f"{source.root.rstrip('/')}/{folder}{'/' if folder else ''}",
        "filename": file.key if is_object else name,
        "filetype": name.rpartition(".")[2].lower() if "." in name else "",
        "recordversion": "",
        "state": file.state,
        "migloc": None,  # where a tape system put it: no listing tells
        "mtime": file.mtime,
        "atime": file.atime,
        "ctime": file.ctime,
        "inserttime": now,
        "updatedtime": now,
        "requesttime": now,
        "scangen": scan,
        "tier": file.tier,
        "size": file.size,
        "qpart": None,
        "fkey": fkey,
        "collection": None,
        "temperature": None,
        "duplicate": None,
        "sizeconsumed": file.size_consumed,
        "etag": file.etag,
    }


def _class_row(source: SourceNames, frame: Frame) -> dict[str, object]:
    return {
        "fkey": make_fkey(source.cluster, source.datasource, frame.image),
        UNKNOWN_PIXELS: frame.unknown_pixels,
        **frame.positions,
        **frame.class_pixels,
    }


def _frame_row(source: SourceNames, frame: Frame) -> dict[str, object]:
    return {
        "fkey": make_fkey(source.cluster, source.datasource, frame.image),
        "scene": frame.scene,
        "camera": frame.camera,
        "frame_number": frame.number,
        "image_width": frame.width,
        "image_height": frame.height,
        "label_file": frame.label,
        "lidar_file": frame.lidar,
        "camera_json_file": frame.camera_json,
        "labelled": int(frame.label is not None),
    }


def _digest_rows(source: SourceNames, frames: Sequence[Frame]) -> list[dict[str, object]]:
    return [
        {
            "fkey": make_fkey(source.cluster, source.datasource, frame.label),
            "digest": frame.label_digest,
        }
        for frame in frames
        if frame.label is not None and frame.label_digest
    ]


def _table(rows: Sequence[Mapping[str, object]], columns: Mapping[str, str]) -> pa.Table:
    schema = pa.schema([pa.field(name, ARROW[kind]) for name, kind in columns.items()])
    return pa.Table.from_pylist(list(rows), schema=schema)
