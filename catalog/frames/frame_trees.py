"""One frame where a source has its files in several trees.

A2D2 ships the frames of camera_lidar_semantic_bboxes/ in camera_lidar_semantic/ as well. Scene,
camera and number say which frame it is, whatever lies above the scene's folder: it is counted once,
and the files of all trees are its partners. The table `frame_trees` keeps such a frame's row of
each tree, as a scan of that tree alone would have written it; its row in tags_frame and
class_pixels is made of these: by the tree with camera image and label, else the one with the image;
what that tree lacks comes from the others. So whichever tree goes or changes, no label is read
again.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import duckdb

from catalog.lake.schema import (
    CLASS_PIXELS,
    CLASS_PIXELS_COLUMNS,
    FILES,
    FRAME_TAGS,
    FRAME_TAGS_COLUMNS,
    FRAME_TREES,
    POSITION_TAGS,
)
from catalog.text.quoting import literal
from catalog.values import make_fkey

if TYPE_CHECKING:
    import pyarrow as pa

Identity = tuple[str, str, int | None]
"""Scene, camera and number of a frame."""

_IDENTITY = "scene, camera, frame_number"
_OF_LABEL = ("image_width", "image_height", "label_file", "labelled")
_OF_ANY_TREE = ("lidar_file", "camera_json_file")


def create(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the table, in the caller's transaction, with the columns that frames have by now."""
    connection.execute(
        f"CREATE TABLE {FRAME_TREES} AS SELECT f.*, c.* EXCLUDE (fkey) "
        f"FROM {FRAME_TAGS} AS f JOIN {CLASS_PIXELS} AS c USING (fkey) LIMIT 0"
    )


def merge(
    connection: duckdb.DuckDBPyConnection,
    cluster: str,
    datasource: str,
    frames: Iterable[Identity],
) -> int:
    """Make one frame of each of these that several trees have, in the caller's transaction.

    Args:
        connection: Inside WritableCatalog.writing, with the rows of each tree as they are now.
        frames: Those of which a file was written or removed.

    Returns:
        How many frames have several trees.
    """
    import pyarrow as pa

    scenes, cameras, numbers = zip(*frames, strict=True) if (frames := [*frames]) else ((), (), ())
    connection.register(
        "touched_frames",
        pa.table(
            {
                "scene": pa.array(scenes, pa.string()),
                "camera": pa.array(cameras, pa.string()),
                "frame_number": pa.array(numbers, pa.int32()),
            }
        ),
    )
    try:
        connection.register("touched_frames", several := _several(connection, cluster, datasource))
        # Most sources have one tree, and the rows are as wide as all classes.
        if not several.num_rows:
            return 0
        rows = connection.execute(_rows_of_trees(cluster, datasource)).to_arrow_table()
    finally:
        connection.unregister("touched_frames")
    if not rows.num_rows:
        return 0
    connection.register("rows_of_trees", rows)
    try:
        merged = connection.execute(_merged(cluster, datasource, rows)).to_arrow_table()
        connection.register("merged_frames", merged)
        for table in (FRAME_TREES, FRAME_TAGS, CLASS_PIXELS):
            connection.execute(
                f"DELETE FROM {table} WHERE fkey IN (SELECT fkey FROM rows_of_trees)"
            )
        connection.execute(
            f"INSERT INTO {FRAME_TREES} BY NAME "
            "SELECT * EXCLUDE (trees) FROM rows_of_trees WHERE trees > 1"
        )
        for table, columns in (
            (FRAME_TAGS, [*FRAME_TAGS_COLUMNS]),
            (CLASS_PIXELS, ["fkey", *_counted(rows), *POSITION_TAGS]),
        ):
            named = ", ".join(f'"{name}"' for name in columns)
            connection.execute(f"INSERT INTO {table} BY NAME SELECT {named} FROM merged_frames")
        row = connection.execute(
            f"SELECT count(*) FROM (SELECT DISTINCT {_IDENTITY} FROM rows_of_trees WHERE trees > 1)"
        ).fetchone()
        return int(row[0]) if row else 0
    finally:
        connection.unregister("rows_of_trees")
        connection.unregister("merged_frames")


def _several(connection: duckdb.DuckDBPyConnection, cluster: str, datasource: str) -> "pa.Table":
    """Those of touched_frames that have, or had, several trees."""
    return connection.execute(f"""
        WITH every AS (
            SELECT {_IDENTITY}, fkey, true AS kept FROM {FRAME_TREES}
            UNION ALL SELECT {_IDENTITY}, fkey, false FROM {FRAME_TAGS}
        )
        SELECT {_IDENTITY} FROM every SEMI JOIN touched_frames USING ({_IDENTITY})
        SEMI JOIN {_of_source(cluster, datasource)} USING (fkey)
        GROUP BY {_IDENTITY} HAVING count(*) > 1 OR bool_or(kept)
    """).to_arrow_table()


def _of_source(cluster: str, datasource: str) -> str:
    return (
        f"(SELECT fkey FROM {FILES} WHERE cluster = {literal(cluster)} "
        f"AND datasource = {literal(datasource)})"
    )


def _rows_of_trees(cluster: str, datasource: str) -> str:
    """The statement for each tree's row of the frames that have, or had, several; with `trees`."""
    # Where a frame is in frame_trees, its row in the other two tables is the one made of those.
    return f"""
        WITH kept AS (
            SELECT *, true AS kept FROM {FRAME_TREES} SEMI JOIN touched_frames USING ({_IDENTITY})
        ), alone AS (
            SELECT f.*, c.* EXCLUDE (fkey), false AS kept
            FROM {FRAME_TAGS} AS f SEMI JOIN touched_frames USING ({_IDENTITY})
            JOIN {CLASS_PIXELS} AS c ON c.fkey = f.fkey ANTI JOIN kept ON kept.fkey = f.fkey
        ), every AS (
            SELECT * FROM (FROM kept UNION ALL BY NAME FROM alone)
            SEMI JOIN {_of_source(cluster, datasource)} USING (fkey)
        )
        SELECT * EXCLUDE (kept), count(*) OVER (PARTITION BY {_IDENTITY}) AS trees FROM every
        QUALIFY trees > 1 OR bool_or(kept) OVER (PARTITION BY {_IDENTITY})
    """


def _merged(cluster: str, datasource: str, rows: "pa.Table") -> str:
    """The statement for the frames made of rows_of_trees."""
    prefix = literal(make_fkey(cluster, datasource, ""))
    of_label = [*_OF_LABEL, *_counted(rows)]
    of_image = [
        name for name in rows.column_names if name not in (*of_label, *_OF_ANY_TREE, "trees")
    ]
    columns = [
        *(f'h."{name}"' for name in of_image),
        *(f'l."{name}"' for name in of_label),
        *(f"coalesce(h.{name}, o.{name}) AS {name}" for name in _OF_ANY_TREE),
    ]
    by_tree = "has_image AND labelled = 1 DESC, has_image DESC, labelled DESC, fkey"
    of_any_tree = ", ".join(f"arg_min({name}, fkey) AS {name}" for name in _OF_ANY_TREE)
    return f"""
        WITH ranked AS (
            SELECT *, label_file IS NULL OR fkey <> {prefix} || label_file AS has_image
            FROM rows_of_trees
        ), head AS (
            FROM ranked
            QUALIFY row_number() OVER (PARTITION BY {_IDENTITY} ORDER BY {by_tree}) = 1
        ), label AS (
            FROM ranked QUALIFY
            row_number() OVER (PARTITION BY {_IDENTITY} ORDER BY labelled DESC, {by_tree}) = 1
        ), others AS (SELECT {_IDENTITY}, {of_any_tree} FROM rows_of_trees GROUP BY {_IDENTITY})
        SELECT {", ".join(columns)}
        FROM head AS h JOIN label AS l USING ({_IDENTITY}) JOIN others AS o USING ({_IDENTITY})
    """


def _counted(rows: "pa.Table") -> list[str]:
    """The columns of rows_of_trees that are numbers of pixels."""
    excluded = {*FRAME_TAGS_COLUMNS, *CLASS_PIXELS_COLUMNS, "trees"} - {"unknown_pixels"}
    return [name for name in rows.column_names if name not in excluded]
