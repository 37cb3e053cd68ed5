"""Frames that are there twice: the same picture and the same label, whatever their files are named.

Scans keep a digest of what every label shows. Frames whose labels show the same, and whose images
are of the same size, may be the same frame; only then is it worth knowing the images' digests,
which cost a read of the file where the object store tells none. Frames alike in all three have one
mark in metaocean's column `duplicate`, which others leave empty. It names no frame, so that a
selection of some of them, by somebody who may not see the others, is treated right.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from catalog.lake.connection import LAKE
from catalog.lake.cursor import Cursor
from catalog.lake.schema import FILE_DIGESTS, FILES, FRAME_TAGS

_DIGITS = 16
"""Hexadecimal digits of a label's digest; an image's has more."""


@dataclass(frozen=True, slots=True)
class DuplicateCandidate:
    """Frame that may be a duplicate of another.

    Attributes:
        fkey: Its image's.
        cluster: Its source's.
        datasource: Its source's.
        size: Size of its image [bytes].
        etag: The object store's mark of its image; empty where there is none.
        label: Digest of its label.
        image: Digest of its image; None while it is not known.
    """

    fkey: str
    cluster: str
    datasource: str
    size: int
    etag: str
    label: str
    image: str | None


def alike(cursor: Cursor) -> list[DuplicateCandidate]:
    """Frames whose labels show the same and whose images are of the same size, those together.

    Args:
        cursor: Of WritableCatalog.inspecting: the tables of scans are not held in memory.
    """
    rows = cursor.execute(f"{_alike()} SELECT * FROM alike ORDER BY label, size, fkey").fetchall()
    return [DuplicateCandidate(*row) for row in rows]


def mark(connection: duckdb.DuckDBPyConnection, images: Mapping[str, str]) -> int:
    """Keep digests of images, and mark the frames that are there more than once.

    Args:
        connection: Inside WritableCatalog.writing.
        images: Digest by fkey of the image.

    Returns:
        How many frames' marks changed.
    """
    if images:
        rows = {"fkey": pa.array(images.keys(), pa.string())}
        connection.register("image_digests", pa.table({**rows, "digest": [*images.values()]}))
        connection.execute(
            f"DELETE FROM {FILE_DIGESTS} WHERE fkey IN (SELECT fkey FROM image_digests)"
        )
        connection.execute(f"INSERT INTO {FILE_DIGESTS} BY NAME SELECT * FROM image_digests")
        connection.unregister("image_digests")
    changes = connection.execute(_changes()).to_arrow_table()
    if changes.num_rows:
        connection.register("changed_marks", changes)
        connection.execute(
            f"UPDATE {FILES} SET duplicate = m.mark FROM changed_marks AS m "
            f"WHERE m.fkey = {FILES}.fkey"
        )
        connection.unregister("changed_marks")
    return int(changes.num_rows)


def are_marked(cursor: Cursor) -> bool:
    """Return whether every mark is right by what is known; see `mark`."""
    return not cursor.execute(f"{_changes()} LIMIT 1").fetchall()


def _alike() -> str:
    """The common table expression `alike`, with DuplicateCandidate's columns."""
    digests, files = f"{LAKE}.main.{FILE_DIGESTS}", f"{LAKE}.main.{FILES}"
    return f"""
        WITH shared AS (
            SELECT digest FROM {digests} WHERE length(digest) = {_DIGITS}
            GROUP BY digest HAVING count(*) > 1
        ), labels AS (
            FROM {digests} SEMI JOIN shared USING (digest)
        ), framed AS (
            SELECT f.fkey, f.cluster, f.datasource, f.size, coalesce(f.etag, '') AS etag,
                labels.digest AS label
            FROM {LAKE}.main.{FRAME_TAGS} AS t JOIN {files} AS f ON f.fkey = t.fkey
            JOIN labels ON labels.fkey = f.cluster || ':' || f.datasource || ':' || t.label_file
            WHERE labels.fkey <> t.fkey
            QUALIFY count(*) OVER (PARTITION BY label, f.size) > 1
        ), alike AS (
            SELECT framed.*, d.digest AS image
            FROM framed LEFT JOIN {digests} AS d ON d.fkey = framed.fkey
        )"""


def _changes() -> str:
    """The statement for the frames whose mark is another one than it has: fkey, mark."""
    return f"""{_alike()}, marks AS (
            SELECT fkey, label || image AS mark FROM alike WHERE image IS NOT NULL
            QUALIFY count(*) OVER (PARTITION BY label, size, image) > 1
        ), has AS (
            SELECT fkey, duplicate FROM {LAKE}.main.{FILES} WHERE duplicate IS NOT NULL
        )
        SELECT coalesce(marks.fkey, has.fkey) AS fkey, mark
        FROM marks FULL JOIN has ON has.fkey = marks.fkey
        WHERE duplicate IS DISTINCT FROM mark"""
