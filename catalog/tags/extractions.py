"""Records which frames an extractor has read, from which state of their file, and faults.

The table `extracted` has a row per family and frame: the file that was read with its size and
mtime, the extractor's version, and the reason where the file was bad. A frame is read again when
one of these has changed, so that a run of an extractor costs only what is new.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from string import Formatter
from typing import TYPE_CHECKING

import duckdb

from catalog.errors import InvalidInput
from catalog.lake.catalog import Catalog, WritableCatalog
from catalog.lake.connection import LAKE
from catalog.lake.cursor import Cursor
from catalog.lake.schema import FILES, FRAME_TAGS
from catalog.tags.families import (
    define,
    family_columns,
    missing_columns,
    put_rows,
    table_of,
)
from catalog.values import Problem, make_fkey

if TYPE_CHECKING:
    import pyarrow as pa

TABLE = "extracted"
_COLUMNS = {
    "family": "VARCHAR",
    "fkey": "VARCHAR",
    "file": "VARCHAR",
    "size": "BIGINT",
    "mtime": "TIMESTAMP",
    "version": "INTEGER",
    "reason": "VARCHAR",
}

_NOT_READ = -1
"""An extractor's version in the row of a file that could not be read: it is no version's work."""

PAGE_FRAMES = 100_000
"""Frames fetched together: what a run holds in memory, about 60 MB."""

PARTNERS = {
    "image": "image",
    "label": "label_file",
    "lidar": "lidar_file",
    "camera_json": "camera_json_file",
}
"""Files of a frame that an extractor may read, each with the column that names it."""

NAMES = {
    "lidar": "{stamp}_lidar_{camera}_{number:09}.npz",
    "camera_json": "{stamp}_camera_{camera}_{number:09}.json",
}
"""Patterns of partners that other sources of the same data set may hold."""

_FIELDS = {"stamp": 0, "camera": 1, "number": 2, "scene": 3}


@dataclass(frozen=True, slots=True)
class CataloguedFrame:
    """A frame of the catalog, and the file that an extractor is to read of it."""

    fkey: str
    """fkey of the file whose row carries the tags: the camera image, or the label where there is no
    camera image.
    """
    file: str
    """Key of the file to read, below its source's root."""
    file_source: str
    """What fkeys of that source begin with."""
    size: int
    """Its size [bytes]."""
    mtime: datetime
    """Its last change, naive UTC."""
    image: str | None
    """Key of the camera image, if there is one."""
    label: str
    """Key of the label image."""
    lidar: str | None
    """Key of the lidar file, if there is one."""
    camera_json: str | None
    """Key of the camera's description, if there is one."""
    scene: str
    """Scene folder, "YYYYMMDD_hhmmss" in local time."""
    camera: str
    """Camera name such as "front_center"."""
    number: int
    """Frame number within the scene."""
    width: int
    """Image width [pixels]."""
    height: int
    """Image height [pixels]."""
    etag: str = ""
    """The object store's mark of the file to read; empty where there is none."""
    state: str | None = None
    """See catalog.values.File."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """Values or fault from reading one frame."""

    frame: CataloguedFrame
    """The frame."""
    values: Mapping[str, object]
    """Values of its tags; tags left out, and all of them where it is empty, are unknown."""
    reason: str | None = None
    """Why the file cannot be used; None where it can."""
    is_unreadable: bool = False
    """It could not be read this time: the next run tries again."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """Tags that an extractor writes, and the source that it reads."""

    cluster: str
    """The source's cluster."""
    datasource: str
    """The source's datasource."""
    family: str
    """The tag family."""
    columns: Mapping[str, str]
    """Type of each tag."""
    reads: str
    """A key of PARTNERS, or the pattern of a file's base name with {stamp} (of the scene,
    "YYYYMMDDhhmmss"), {camera} (as file names write it, "frontcenter"), {number} and {scene},
    such as "{stamp}_label3D_{camera}_{number:09}.json".
    """
    version: int = 1
    """The extractor's version; another one reads every frame again."""
    other_sources: tuple[tuple[str, str], ...] = ()
    """Cluster and datasource of the data set's other sources, where the file is looked for as well;
    the source's own goes before theirs.
    """
    has_all_columns: bool = True
    """Whether the columns are all that the extractor gives; else a run writes these only, and does
    not count as having read the frames.
    """

    @property
    def prefix(self) -> str:
        """The text that every fkey of the source begins with."""
        return make_fkey(self.cluster, self.datasource, "")


@dataclass(frozen=True, slots=True)
class Coverage:
    """Progress of an extraction over its source."""

    frames: int
    """Labelled frames of the source."""
    with_file: int
    """Those that have the file that the extractor reads."""
    pending: int
    """Those that a run would read."""


def begin(store: WritableCatalog, extraction: Extraction) -> None:
    """Make the family and its bookkeeping where needed, and drop the tags of vanished files.

    Commits only where there is something to change.
    """
    with store.reading() as cursor:
        ready = _has_table(cursor) and family_columns(cursor, extraction.family)
        missing = missing_columns(cursor, extraction.family, extraction.columns)
        vanished = f"{_vanished_fkeys(extraction)} LIMIT 1"
        if ready and not missing and not cursor.execute(vanished).fetchall():
            return
    reason = f"tag family {extraction.family}: made ready"
    with store.writing(reason, author="extract") as connection:
        _make_table(connection)
        define(connection, extraction.family, extraction.columns)
        gone_rows = connection.execute(_vanished_fkeys(extraction)).to_arrow_table()
        connection.register("gone_rows", gone_rows)
        for table, condition in (
            (table_of(extraction.family), "true"),
            (TABLE, f"family = {_text(extraction.family)}"),
        ):
            connection.execute(
                f"DELETE FROM {LAKE}.main.{table} "
                f"WHERE {condition} AND fkey IN (SELECT fkey FROM gone_rows)"
            )


def coverage(store: Catalog, extraction: Extraction, *, full: bool) -> Coverage:
    """Counts of the frames to read; `begin` must have run."""
    with store.reading() as cursor:
        row = cursor.execute(
            f"WITH {_frames_with_file(extraction)} SELECT (SELECT count(*) FROM frame), "
            f"(SELECT count(*) FROM found), (SELECT count(*) {_pending(extraction, full)})"
        ).fetchone()
    frames, with_file, pending = row or (0, 0, 0)
    return Coverage(frames, with_file, pending)


def pending_frames(
    store: Catalog, extraction: Extraction, *, full: bool, page: int = PAGE_FRAMES
) -> Iterator[CataloguedFrame]:
    """The frames to read, by fkey, fetched a page at a time; `begin` must have run.

    Each page is of the newest snapshot: what was committed meanwhile is not given again.
    """
    last = ""
    while True:
        with store.reading() as cursor:
            rows = cursor.execute(
                f"WITH {_frames_with_file(extraction)} SELECT found.* {_pending(extraction, full)} "
                f"AND found.fkey > ? ORDER BY found.fkey LIMIT {page}",
                [last],
            ).to_arrow_table()
        for batch in rows.to_batches(max_chunksize=1_000):
            for row in batch.to_pylist():
                yield CataloguedFrame(**row)
        if rows.num_rows < page:
            return
        last = rows["fkey"][-1].as_py()


def commit(store: WritableCatalog, extraction: Extraction, done: Sequence[Extracted]) -> int:
    """Keep what reading some frames gave, in one commit; how many frames were kept.

    Frames that a scan removed meanwhile are left out. A bad file's frame loses its older tags; one
    whose file could not be read keeps those that were read from the file as it is now.
    """
    import pyarrow as pa

    from catalog.lake.arrow_types import ARROW

    done = _without_still_valid(store, extraction, done)
    if not done:
        return 0
    good = [item for item in done if item.reason is None]
    columns = {tag: ARROW[kind] for tag, kind in extraction.columns.items()}
    rows = pa.table(
        {
            "fkey": pa.array([item.frame.fkey for item in good], pa.string()),
            **{
                tag: pa.array([item.values.get(tag) for item in good], kind)
                for tag, kind in columns.items()
            },
        }
    )
    reason = f"tag family {extraction.family}: {len(done)} frames"
    with store.writing(reason, author="extract") as connection:
        written = put_rows(connection, extraction.family, rows)
        connection.register("done_rows", _done_table(extraction, done))
        table = f"{LAKE}.main.{table_of(extraction.family)}"
        bad = "WHERE fkey IN (SELECT fkey FROM done_rows WHERE reason IS NOT NULL)"
        if extraction.has_all_columns:
            connection.execute(f"DELETE FROM {table} {bad}")
        else:
            unknown = ", ".join(f'"{tag}" = NULL' for tag in columns)
            connection.execute(f"UPDATE {table} SET {unknown} {bad}")
        # Of a part of the tags only what was bad is noted: the others are still to be read.
        noted = "" if extraction.has_all_columns else " WHERE reason IS NOT NULL"
        void = "" if extraction.has_all_columns else " AND reason IS NOT NULL"
        connection.execute(
            f"DELETE FROM {LAKE}.main.{TABLE} "
            f"WHERE family = ? AND fkey IN (SELECT fkey FROM done_rows{noted}){void}",
            [extraction.family],
        )
        connection.execute(
            f"INSERT INTO {LAKE}.main.{TABLE} BY NAME SELECT * FROM done_rows{noted}"
        )
        return written.rows


def _without_still_valid(
    store: Catalog, extraction: Extraction, done: Sequence[Extracted]
) -> Sequence[Extracted]:
    """What was done, but for frames whose file could not be read, and was before, as it is now."""
    unreadable = [item.frame for item in done if item.is_unreadable]
    if not unreadable:
        return done
    with store.reading() as cursor:
        rows = cursor.execute(
            f"SELECT fkey, file, size, mtime FROM {LAKE}.main.{TABLE} "
            "WHERE family = ? AND reason IS NULL AND fkey IN (SELECT unnest(?))",
            [extraction.family, [frame.fkey for frame in unreadable]],
        ).fetchall()
    read = set(rows)
    return [
        item
        for item in done
        if not item.is_unreadable
        or (
            item.frame.fkey, _frame_text(extraction, item.frame), item.frame.size, item.frame.mtime
        )
        not in read
    ]  # fmt: skip


def problems(store: Catalog, extraction: Extraction) -> list[Problem]:
    """The files that the extractor could not use, by key."""
    with store.reading() as cursor:
        if not _has_table(cursor):
            return []
        rows = cursor.execute(
            f"SELECT DISTINCT file, reason, version FROM {LAKE}.main.{TABLE} "
            "WHERE family = ? AND starts_with(fkey, ?) AND reason IS NOT NULL ORDER BY ALL",
            [extraction.family, extraction.prefix],
        ).fetchall()
    return [
        Problem("unreadable" if version == _NOT_READ else "bad_file", str(file), str(reason))
        for file, reason, version in rows
    ]


def is_extracted(cursor: Cursor, family: str) -> bool:
    """Return whether an extractor has written a family, as the cursor's snapshot has it."""
    if not _has_table(cursor):
        return False
    row = cursor.execute(
        f"SELECT count(*) FROM (FROM {LAKE}.main.{TABLE} WHERE family = ? LIMIT 1)", [family]
    ).fetchone()
    return bool(row and row[0])


def extracted_families(cursor: Cursor) -> set[str]:
    """The tag families that extractors have written, as the cursor's snapshot has them."""
    if not _has_table(cursor):
        return set()
    rows = cursor.execute(f"SELECT DISTINCT family FROM {LAKE}.main.{TABLE}").fetchall()
    return {str(row[0]) for row in rows}


def _done_table(extraction: Extraction, done: Sequence[Extracted]) -> "pa.Table":
    import pyarrow as pa

    frames = [item.frame for item in done]
    return pa.table(
        {
            "family": pa.array([extraction.family] * len(done), pa.string()),
            "fkey": pa.array([frame.fkey for frame in frames], pa.string()),
            "file": pa.array([_frame_text(extraction, frame) for frame in frames], pa.string()),
            "size": pa.array([frame.size for frame in frames], pa.int64()),
            "mtime": pa.array([frame.mtime for frame in frames], pa.timestamp("us")),
            "version": pa.array(
                [_NOT_READ if item.is_unreadable else extraction.version for item in done],
                pa.int32(),
            ),
            "reason": pa.array([item.reason for item in done], pa.string()),
        }
    )


def _frame_text(extraction: Extraction, frame: CataloguedFrame) -> str:
    """A file's key; its fkey where it is another source's."""
    own = frame.file_source == extraction.prefix
    return frame.file if own else frame.file_source + frame.file


def _has_table(cursor: Cursor) -> bool:
    return bool(
        cursor.execute(
            "SELECT 1 FROM duckdb_tables() WHERE database_name = ? AND table_name = ?",
            [LAKE, TABLE],
        ).fetchall()
    )


def _make_table(connection: duckdb.DuckDBPyConnection) -> None:
    if not _has_table(connection):
        body = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
        connection.execute(f"CREATE TABLE {LAKE}.main.{TABLE} ({body})")


def _text(value: str) -> str:
    """A text as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def _frames_with_file(extraction: Extraction) -> str:
    """The common table expressions `frame` (all of the source) and `found` (with their file)."""
    prefix = _text(extraction.prefix)
    source = (
        f"cluster = {_text(extraction.cluster)} AND datasource = {_text(extraction.datasource)}"
    )
    frame = (
        f"frame AS (SELECT fkey, nullif(substr(fkey, length({prefix}) + 1), label_file) AS image,"
        " label_file,"
        " lidar_file, camera_json_file, scene, camera, frame_number, image_width, image_height"
        f" FROM {LAKE}.main.{FRAME_TAGS} SEMI JOIN"
        f" (SELECT fkey FROM {LAKE}.main.{FILES} WHERE {source}) USING (fkey))"
    )
    partner = PARTNERS.get(extraction.reads)
    pattern = NAMES.get(extraction.reads) if extraction.other_sources else None
    if partner is not None and pattern is None:
        key, best = f"p.fkey = {prefix} || frame.{partner}", ""
        frame += (
            f", partner AS (SELECT fkey, size, mtime, etag, state, {prefix} AS source"
            f" FROM {LAKE}.main.{FILES} WHERE {source})"
        )
    else:
        key, name = _pattern_join(pattern or extraction.reads)
        sources = ", ".join(
            f"({_text(cluster)}, {_text(datasource)})"
            for cluster, datasource in (
                (extraction.cluster, extraction.datasource), *extraction.other_sources
            )
        )  # fmt: skip
        frame += (
            ", partner AS (SELECT fkey, size, mtime, etag, state,"
            " split_part(fkey, '/', -1) AS name, cluster || ':' || datasource || ':' AS source"
            f" FROM {LAKE}.main.{FILES} WHERE (cluster, datasource) IN ({sources})"
            f" AND ends_with(fkey, {_text(name)}))"
        )
        # Several of that name: the one in the frame's own source and tree, else the first.
        own_tree = "starts_with(p.fkey, split_part(frame.fkey, scene || '/', 1))"
        best = (
            " QUALIFY row_number() OVER (PARTITION BY frame.fkey"
            f" ORDER BY p.source = {prefix} DESC, {own_tree} DESC, p.fkey) = 1"
        )
    with_file = (
        "found AS (SELECT frame.fkey, substr(p.fkey, length(p.source) + 1) AS file,"
        " p.source AS file_source, p.size,"
        " p.mtime, image, label_file AS label, lidar_file AS lidar,"
        " camera_json_file AS camera_json, scene, camera, frame_number AS number,"
        " image_width AS width, image_height AS height, coalesce(p.etag, '') AS etag, p.state"
        f" FROM frame JOIN partner AS p ON {key}{best})"
    )
    return f"{frame}, {with_file}"


def _pattern_join(pattern: str) -> tuple[str, str]:
    """A pattern's condition on `partner`, and what every name that fits it ends with."""
    translated, ending = "", ""
    try:
        for literal, field, spec, _ in Formatter().parse(pattern):
            translated += literal.replace("{", "{{").replace("}", "}}")
            ending = literal
            if field is not None:
                number = f":{spec.rstrip('d')}d" if spec else ""
                translated += f"{{{_FIELDS[field]}{number}}}"
                ending = ""
    except (ValueError, KeyError) as error:
        raise InvalidInput(
            f"extractor reads '{pattern}': expected {', '.join(PARTNERS)}, or a base name with "
            f"{', '.join(f'{{{name}}}' for name in _FIELDS)}"
        ) from error
    if "/" in pattern or "{" not in translated:
        raise InvalidInput(
            f"extractor reads '{pattern}': expected {', '.join(PARTNERS)}, or the pattern of a "
            'base name, such as "{stamp}_label3D_{camera}_{number:09}.json"'
        )
    values = "replace(scene, '_', ''), replace(camera, '_', ''), frame_number, scene"
    return f"p.name = format({_text(translated)}, {values})", ending


def _pending(extraction: Extraction, full: bool) -> str:
    """FROM and WHERE of the frames of `found` that are to be read."""
    family = table_of(extraction.family)
    own = f"found.file_source = {_text(extraction.prefix)}"
    file = f"CASE WHEN {own} THEN found.file ELSE found.file_source || found.file END"
    changed = (
        f"e.fkey IS NULL OR e.version <> {int(extraction.version)}"
        f" OR (e.file, e.size, e.mtime) IS DISTINCT FROM ({file}, found.size, found.mtime)"
        " OR (e.reason IS NULL AND d.fkey IS NULL)"
    )
    return (
        f"FROM found LEFT JOIN (SELECT * FROM {LAKE}.main.{TABLE}"
        f" WHERE family = {_text(extraction.family)}) AS e ON e.fkey = found.fkey"
        f" LEFT JOIN (SELECT fkey FROM {LAKE}.main.{family}) AS d ON d.fkey = found.fkey"
        f" WHERE ({'true' if full else changed})"
    )


def _vanished_fkeys(extraction: Extraction) -> str:
    """The statement for fkeys whose frame or file is no longer there."""
    return (
        f"WITH {_frames_with_file(extraction)} SELECT e.fkey FROM {LAKE}.main.{TABLE} AS e"
        " ANTI JOIN found ON found.fkey = e.fkey"
        f" WHERE family = {_text(extraction.family)}"
        f" AND starts_with(e.fkey, {_text(extraction.prefix)})"
    )
