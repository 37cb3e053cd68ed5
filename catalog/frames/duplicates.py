"""Frames that are there twice: the same picture and the same label, whatever their files are named.

Scans keep a digest of what every label shows. Frames whose labels show the same, and whose images
are of the same size, may be the same frame; only then is it worth knowing the images' digests,
which cost a read of the file where the object store tells none. Frames alike in all three have one
mark in metaocean's column `duplicate`, which others leave empty. It names no frame, so that a
selection of some of them, by somebody who may not see the others, is treated right.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from catalog.lake.connection import LAKE, snapshot_of
from catalog.lake.cursor import Cursor
from catalog.lake.metadata.own_tables import changed_rows, written_since
from catalog.lake.schema import FILE_DIGESTS, FILES, FRAME_TAGS, FRAME_TREES

_DIGITS = 16
"""Hexadecimal digits of a label's digest; an image's has more."""


@dataclass(frozen=True, slots=True)
class DuplicateCandidate:
    """Frame that may be a duplicate of another."""

    fkey: str
    """Its image's."""
    cluster: str
    """Its source's."""
    datasource: str
    """Its source's."""
    size: int
    """Size of its image [bytes]."""
    etag: str
    """The object store's mark of its image; empty where there is none."""
    label: str
    """Digest of its label."""
    image: str | None
    """Digest of its image; None while it is not known."""
    mark: str | None = None
    """The mark that it has; None where it has none."""


@dataclass(frozen=True, slots=True)
class DuplicateSearch:
    """Frames that may be duplicates, of a snapshot or of what was committed since another."""

    snapshot: int
    """Its number."""
    alike: list[DuplicateCandidate]
    """Frames whose labels show the same and whose images are of the same size, those together."""
    doubtful: dict[str, str] = field(default_factory=dict)
    """Marks by fkey that may be wrong, of other frames too."""

    def changes(self, images: Mapping[str, str]) -> dict[str, str | None]:
        """The right mark of each frame that has another one, by fkey; None for no mark.

        Args:
            images: Digests of images that `alike` has none of, by fkey.
        """
        digests = [frame.image or images.get(frame.fkey) for frame in self.alike]
        same = [(f.label, f.size, image) for f, image in zip(self.alike, digests, strict=True)]
        occurrences = Counter(same)
        marks = {
            frame.fkey: f"{frame.label}{image}"
            for frame, image, key in zip(self.alike, digests, same, strict=True)
            if image is not None and occurrences[key] > 1
        }
        new_marks = self.doubtful | {f.fkey: f.mark for f in self.alike if f.mark is not None}
        return {
            fkey: marks.get(fkey)
            for fkey in sorted(marks.keys() | new_marks.keys())
            if marks.get(fkey) != new_marks.get(fkey)
        }


def search(cursor: duckdb.DuckDBPyConnection, marked: int | None) -> DuplicateSearch:
    """Search for duplicates in the cursor's snapshot.

    Args:
        cursor: Of WritableCatalog.inspecting: the tables of scans are not held in memory.
        marked: Number of a snapshot whose marks are right: only labels that were written or removed
            since are compared with others. None compares all, and so does a snapshot that expired,
            or since which more than rows were changed.
    """
    snapshot = snapshot_of(cursor)
    changed = None if marked is None else _changed_labels(cursor, marked, snapshot)
    if changed is not None and not changed.num_rows:
        return DuplicateSearch(snapshot, [])
    return DuplicateSearch(
        snapshot, _alike(cursor, _shared(cursor, changed)), _doubtful(cursor, changed)
    )


def mark(
    connection: duckdb.DuckDBPyConnection,
    images: Mapping[str, str],
    marks: Mapping[str, str | None],
) -> None:
    """Keep digests of images, and give frames their marks.

    Args:
        connection: Inside WritableCatalog.writing.
        images: Digest by fkey of the image.
        marks: DuplicateSearch.changes.
    """
    if images:
        digests = _texts({"fkey": images.keys(), "digest": images.values()})
        connection.register("image_digests", digests)
        connection.execute(
            f"DELETE FROM {FILE_DIGESTS} WHERE fkey IN (SELECT fkey FROM image_digests)"
        )
        connection.execute(f"INSERT INTO {FILE_DIGESTS} BY NAME SELECT * FROM image_digests")
        connection.unregister("image_digests")
    if marks:
        connection.register("changed_marks", _texts({"fkey": marks.keys(), "mark": marks.values()}))
        connection.execute(
            f"UPDATE {FILES} SET duplicate = m.mark FROM changed_marks AS m "
            f"WHERE m.fkey = {FILES}.fkey"
        )
        connection.unregister("changed_marks")


def is_current(cursor: Cursor, snapshot: int) -> bool:
    """Return whether a search in an earlier snapshot would find the same in the cursor's."""
    written = written_since(cursor, snapshot)
    return written is not None and not {FILES, FILE_DIGESTS, FRAME_TAGS} & {*written.tables}


def _changed_labels(
    cursor: duckdb.DuckDBPyConnection, marked: int, snapshot: int
) -> pa.Table | None:
    """Digests of labels that were written or removed since a snapshot, and whether any was removed.

    None where that cannot be told. Whatever changes of a frame, its label's row is written again.
    """
    written = written_since(cursor, marked) if marked <= snapshot else None
    # A frame of several trees may change its label for one that was there before.
    if written is None or FRAME_TREES in written.tables:
        return None
    if FILE_DIGESTS not in written.tables:
        return _texts({"digest": []})
    return _rows(
        cursor,
        "SELECT digest, bool_or(change_type IN ('delete', 'update_preimage')) AS was_removed "
        f"FROM ({changed_rows(FILE_DIGESTS, written.spans)}) "
        f"WHERE length(digest) = {_DIGITS} GROUP BY digest",
    )


def _shared(cursor: duckdb.DuckDBPyConnection, changed: pa.Table | None) -> pa.Table:
    """The digests that several labels have, all or those among the changed ones."""
    every = (
        f"SELECT digest FROM {LAKE}.main.{FILE_DIGESTS} WHERE length(digest) = {_DIGITS} "
        "GROUP BY digest HAVING count(*) > 1"
    )
    if changed is None:
        return _rows(cursor, every)
    among = every.replace("WHERE", "SEMI JOIN changed USING (digest) WHERE")
    return _rows(cursor, among, changed=changed)


def _alike(cursor: duckdb.DuckDBPyConnection, shared: pa.Table) -> list[DuplicateCandidate]:
    """See DuplicateSearch.alike.

    One statement for each step: the rows of one, which are few, say which row groups of the next
    table are read at all. Equalities only, and no text put together: a join on anything else
    compares each frame with each shared label.
    """
    if not shared.num_rows:
        return []
    digests, files = f"{LAKE}.main.{FILE_DIGESTS}", f"{LAKE}.main.{FILES}"
    labels = _rows(cursor, f"FROM {digests} SEMI JOIN shared USING (digest)", shared=shared)
    placed = _rows(
        cursor,
        "SELECT labels.digest, labels.fkey, f.cluster, f.datasource, "
        "substr(labels.fkey, length(f.cluster) + length(f.datasource) + 3) AS key "
        f"FROM {files} AS f JOIN labels ON labels.fkey = f.fkey",
        labels=labels,
    )
    named = _rows(
        cursor,
        "SELECT t.fkey, placed.digest, placed.cluster, placed.datasource "
        f"FROM {LAKE}.main.{FRAME_TAGS} AS t JOIN placed ON placed.key = t.label_file "
        "WHERE placed.fkey <> t.fkey",
        placed=placed,
    )
    framed = _rows(
        cursor,
        "SELECT f.fkey, f.cluster, f.datasource, f.size, coalesce(f.etag, '') AS etag, "
        "named.digest AS label, f.duplicate AS mark "
        f"FROM {files} AS f JOIN named ON named.fkey = f.fkey "
        "WHERE f.cluster = named.cluster AND f.datasource = named.datasource "
        "QUALIFY count(*) OVER (PARTITION BY label, f.size) > 1",
        named=named,
    )
    rows = _rows(
        cursor,
        "SELECT framed.* EXCLUDE (mark), d.digest AS image, framed.mark "
        f"FROM framed LEFT JOIN {digests} AS d ON d.fkey = framed.fkey ORDER BY label, size, fkey",
        framed=framed,
    )
    columns = (column.to_pylist() for column in rows.columns)
    return [DuplicateCandidate(*row) for row in zip(*columns, strict=True)]


def _doubtful(cursor: duckdb.DuckDBPyConnection, changed: pa.Table | None) -> dict[str, str]:
    """See DuplicateSearch.doubtful: a mark is wrong once a label of it is gone."""
    marks = f"SELECT fkey, duplicate FROM {LAKE}.main.{FILES} WHERE duplicate IS NOT NULL"
    if changed is None:
        rows = _rows(cursor, marks)
    else:
        removed = changed.filter(changed["was_removed"])
        if not removed.num_rows:
            return {}
        of_removed = f"{marks} AND left(duplicate, {_DIGITS}) IN (SELECT digest FROM removed)"
        rows = _rows(cursor, of_removed, removed=removed)
    return dict(zip(rows["fkey"].to_pylist(), rows["duplicate"].to_pylist(), strict=True))


def _rows(cursor: duckdb.DuckDBPyConnection, statement: str, **tables: pa.Table) -> pa.Table:
    """The rows of a statement over tables of the catalog and these."""
    for name, table in tables.items():
        cursor.register(name, table)
    try:
        return cursor.execute(statement).to_arrow_table()
    finally:
        for name in tables:
            cursor.unregister(name)


def _texts(columns: Mapping[str, Iterable[str | None]]) -> pa.Table:
    return pa.table({name: pa.array([*texts], pa.string()) for name, texts in columns.items()})
