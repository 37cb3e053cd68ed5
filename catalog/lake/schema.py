"""The tables of the catalog: their columns, and nothing else.

`files` has Spectrum Discover's METAOCEAN columns, names, order and types, as a Presto client of
the product shows them. `class_pixels` gets one integer column per class when the first source
with that class is ingested. Every other tag family is a side table `tags_<family>`.
"""

FORMAT = 2
"""Version of these tables; a catalog of another one is refused."""

FILES = "files"
CLASS_PIXELS = "class_pixels"
FRAME_TAGS = "tags_frame"
LAYOUT_TAGS = "tags_layout"
"""Tags that files' names give by the layouts of their sources; made when the first has some."""

GROUP_TAGS = "tags_class_groups"
"""Class groups: a view, made when there is the first (catalog.lake.group_tags)."""

NOBODY_SETS = (CLASS_PIXELS, FRAME_TAGS, LAYOUT_TAGS, GROUP_TAGS)
"""Tables of the tags that scans give, and that are computed of those."""

FRAME_TREES = "frame_trees"
FILE_DIGESTS = "file_digests"
UNKNOWN_PIXELS = "unknown_pixels"
LABELLED = "labelled"
"""The tag that says whether a frame has a label: 0 or 1."""

POSITION_TAGS = ("front", "side", "rear", "center", "left_", "right_")
"""Position tags, 1 where the camera has the position and 0 elsewhere.

LEFT and RIGHT are reserved words, hence the underscores.
"""

FILES_COLUMNS: dict[str, str] = {
    "datasource": "VARCHAR",
    "operation": "VARCHAR",
    "ingesttype": "VARCHAR",
    "revision": "VARCHAR",
    "site": "VARCHAR",
    "platform": "VARCHAR",
    "cluster": "VARCHAR",
    "inode": "BIGINT",
    "owner": "VARCHAR",
    "group": "VARCHAR",
    "permissions": "VARCHAR",
    "fileset": "VARCHAR",
    "uid": "BIGINT",
    "gid": "BIGINT",
    "path": "VARCHAR",
    "filename": "VARCHAR",
    "filetype": "VARCHAR",
    "recordversion": "VARCHAR",
    "state": "VARCHAR",
    "migloc": "VARCHAR",
    "mtime": "TIMESTAMP",
    "atime": "TIMESTAMP",
    "ctime": "TIMESTAMP",
    "inserttime": "TIMESTAMP",
    "updatedtime": "TIMESTAMP",
    "requesttime": "TIMESTAMP",
    "scangen": "BIGINT",
    "tier": "VARCHAR",
    "size": "BIGINT",
    "qpart": "SMALLINT",
    "fkey": "VARCHAR",
    "collection": "VARCHAR",
    "temperature": "VARCHAR",
    "duplicate": "VARCHAR",
    "sizeconsumed": "BIGINT",
}

INTERNAL_FILES_COLUMNS: dict[str, str] = {"etag": "VARCHAR"}
"""Columns of `files` that no view shows."""

VIEW_COLUMNS = (
    "path", "filename", "filetype", "datasource", "owner", "group", "revision", "site",
    "platform", "cluster", "inode", "permissions", "fileset", "uid", "gid", "recordversion",
    "state", "migloc", "mtime", "atime", "ctime", "tier", "size", "fkey", "collection",
    "temperature", "duplicate", "sizeconsumed", "nodename", "filespace", "mgmtclass",
)  # fmt: skip
"""metaocean_view's columns before the tags, in the documented order."""

CLASS_PIXELS_COLUMNS: dict[str, str] = {
    "fkey": "VARCHAR",
    **dict.fromkeys(POSITION_TAGS, "TINYINT"),
    UNKNOWN_PIXELS: "INTEGER",
}
"""class_pixels before any class: a column per class tag, INTEGER, is added by the first ingest.

A row per frame; where it has no label, only the position tags have values.
"""

GIVEN_SPLIT = "given_split"
"""Tag of the split that a data set's makers put a frame into."""

FRAME_TAGS_COLUMNS: dict[str, str] = {
    "fkey": "VARCHAR",
    "scene": "VARCHAR",
    "camera": "VARCHAR",
    "frame_number": "INTEGER",
    "image_width": "INTEGER",
    "image_height": "INTEGER",
    "label_file": "VARCHAR",
    "lidar_file": "VARCHAR",
    "camera_json_file": "VARCHAR",
    "labelled": "TINYINT",
}
"""Columns of a frame; *_file are keys below the source's root, labelled is 0 or 1."""

FILE_DIGESTS_COLUMNS: dict[str, str] = {"fkey": "VARCHAR", "digest": "VARCHAR"}
"""Columns of digests: of a label's decoded runs, of an image's bytes
(catalog.frames.duplicates)."""

CONFUSION_CELLS = "confusion_cells"
"""Table of the pixels that models confused, by frame and pair of classes
(catalog.tags.confusion_cells)."""

OF_SCANS = (FRAME_TREES, FILE_DIGESTS)
"""Tables that scans read and write and no question asks.

frame_trees has the columns of tags_frame and class_pixels: see catalog.frames.frame_trees.
"""

LABEL_SEGMENTS = "label_segments"
"""Table of the segments of panoptic labels, made when the first is counted
(catalog.frames.label_segments)."""

NOT_IN_MEMORY = (*OF_SCANS, CONFUSION_CELLS, LABEL_SEGMENTS)
"""Tables that a snapshot in memory goes without: no question asks them, or they have many rows,
which few questions name.

To read frame_trees while it is empty takes DuckLake 3 ms of CPU for each of its columns, 160 in
all, as no statistics of it are known.
"""
