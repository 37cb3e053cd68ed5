"""Compares two snapshots: files and frames added and removed, tags set and changed.

Rows that both snapshots have as the very same row of the lake are left out by their row number,
so that only what was written in between is compared; in parts, so that memory stays bounded. The
rows of one part and table lie in temporary tables: `a` those before, `b` those after. Tags are
loaded only of files that both snapshots have.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from catalog.lake.cursor import Cursor
from catalog.lake.schema import CLASS_PIXELS, FILES, GROUP_TAGS
from catalog.lake.views import tag_columns
from catalog.store import LAKE, CatalogStore

PART_ROWS = 500_000
"""Rows compared at a time: about 0.3 GB for rows of 44 tags."""

_FETCHED_ROWS = 10_000

_MOST_BYTES = 170 << 20
"""Memory of the engine that compares: its temporary tables stay until the transaction ends, though
others replace them. Without a bound they took 0.5 GB more at a million frames, and no less CPU.
"""

_CONTENT = ("size", "mtime", "etag")
"""Columns of `files` that say whether a file is another one; the rest tells of the scan."""


@dataclass
class TagChanges:
    """Changes of a tag, over the files that both snapshots have."""

    set: int = 0
    """Files that had no value and have one."""
    cleared: int = 0
    """Files that had a value and have none."""
    changed: int = 0
    """Files that have another value."""


@dataclass
class SnapshotDiff:
    """The difference between two snapshots."""

    before: int
    """Number of the one."""
    after: int
    """Number of the other."""
    files_added: int = 0
    """Files that only the second has."""
    files_removed: int = 0
    """Files that only the first has."""
    files_changed: int = 0
    """Files of both with another size, time or etag."""
    frames_added: int = 0
    """Frames with class pixels that only the second has."""
    frames_removed: int = 0
    """Frames with class pixels that only the first has."""
    frames_changed: int = 0
    """Files of both with a tag that differs."""
    tags: dict[str, TagChanges] = field(default_factory=dict)
    """The tags that differ, by name."""
    tags_added: tuple[str, ...] = ()
    """Tags that only the second has."""
    tags_removed: tuple[str, ...] = ()
    """Tags that only the first has."""


@dataclass(frozen=True, slots=True)
class TagChange:
    """One tag of one file, before and after."""

    fkey: str
    tag: str
    before: object
    after: object


def diff(store: CatalogStore, before: int, after: int) -> SnapshotDiff:
    """Count what differs between two snapshots, either way round."""
    families = _families(store, before, after)
    difference = SnapshotDiff(before, after)
    old, new = ({t for one in families for t in one.tags[side]} for side in (0, 1))
    difference.tags_added, difference.tags_removed = (
        tuple(sorted(new - old)),
        tuple(sorted(old - new)),
    )
    with store.inspecting_alone(_MOST_BYTES) as cursor:
        for portion in _parts(cursor, families, before, after):
            _load(cursor, portion, _FILES, _OF_FILES)
            _count_files(cursor, difference)
            _note_passing(cursor)
            cursor.execute("CREATE OR REPLACE TEMP TABLE touched (fkey VARCHAR)")
            for family in portion.families:
                if family.table == CLASS_PIXELS:
                    _load(cursor, portion, family, "fkey")
                    _count_frames(cursor, difference)
                if _load_staying(cursor, portion, family):
                    _count_tags(cursor, family, difference)
            (frames,) = _row(cursor, "SELECT count(DISTINCT fkey) FROM touched")
            difference.frames_changed += frames
    difference.tags = {tag: c for tag, c in difference.tags.items() if c != TagChanges()}
    return difference


def changes(store: CatalogStore, before: int, after: int) -> Iterator[TagChange]:
    """Every tag that differs of the files that both snapshots have, family by family."""
    families = _families(store, before, after)
    with store.inspecting_alone(_MOST_BYTES) as cursor:
        for portion in _parts(cursor, families, before, after):
            _load(cursor, portion, _FILES, "fkey")
            _note_passing(cursor)
            for family in portion.families:
                if not _load_staying(cursor, portion, family):
                    continue
                yield from _changes_of(cursor, family)


@dataclass(frozen=True)
class _Family:
    """A table, and the tags that it has before and after; None where there is no such table."""

    table: str
    sides: tuple[tuple[str, ...] | None, tuple[str, ...] | None]

    @property
    def tags(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The tags before and after."""
        return self.sides[0] or (), self.sides[1] or ()

    def pairs(self) -> dict[str, tuple[str, str]]:
        """For each tag its value before and after; NULL where that side has no such tag."""
        before, after = self.tags
        return {
            tag: (
                f'a."{tag}"' if tag in before else "NULL",
                f'b."{tag}"' if tag in after else "NULL",
            )
            for tag in dict.fromkeys((*before, *after))
        }


_FILES = _Family(FILES, ((), ()))
_OF_FILES = ", ".join(("fkey", *_CONTENT))


@dataclass(frozen=True)
class _Portion:
    """The files of which the hash of the fkey has one remainder, and families that differ."""

    before: int
    after: int
    families: tuple[_Family, ...]
    condition: str


def _families(store: CatalogStore, before: int, after: int) -> list[_Family]:
    sides: list[dict[str, tuple[str, ...]]] = [{}, {}]
    for tags, number in zip(sides, (before, after), strict=True):
        with store.reading(number) as cursor:
            for column in tag_columns(cursor):
                tags[column.table] = (*tags.get(column.table, ()), column.tag)
    return [
        _Family(table, (sides[0].get(table), sides[1].get(table)))
        for table in dict.fromkeys((*sides[0], *sides[1]))
    ]


def _parts(cursor: Cursor, families: list[_Family], before: int, after: int) -> list[_Portion]:
    """Parts of at most about PART_ROWS rows, of the families that have any that differ."""
    written = {}
    families = [family for family in families if family.table != GROUP_TAGS]
    for family in (_FILES, *families):
        old, new = _rows(family, before, after)
        (written[family],) = _row(
            cursor,
            f"SELECT greatest((SELECT count(*) FROM ({old})), (SELECT count(*) FROM ({new})))",
        )
    changed = tuple(family for family in families if written[family])
    parts = 1 + max(written.values()) // PART_ROWS
    return [
        _Portion(before, after, changed, f"hash(fkey) % {parts} = {number}")
        for number in range(parts)
    ]


def _rows(family: _Family, before: int, after: int) -> tuple[str, str]:
    """The rows of a table that only one of two snapshots has: those before and those after."""
    none = "SELECT NULL::VARCHAR AS fkey WHERE false"
    states = [
        f"{LAKE}.main.{family.table} AS state AT (VERSION => {int(number)})"
        for number in (before, after)
    ]
    if None in family.sides:
        old, new = (
            none if tags is None else f"SELECT * FROM {state}"
            for tags, state in zip(family.sides, states, strict=True)
        )
        return old, new
    earlier, later = states if before <= after else states[::-1]
    # What was there at the earlier one and still is at the later one has the same row number, and
    # came with the earlier one at the latest.
    removed = (
        f"SELECT * FROM {earlier} ANTI JOIN (SELECT rowid AS number, snapshot_id AS since "
        f"FROM {later} WHERE snapshot_id <= {min(before, after)}) AS other "
        "ON number = state.rowid AND since = state.snapshot_id"
    )
    added = f"SELECT * FROM {later} WHERE snapshot_id > {min(before, after)}"
    return (removed, added) if before <= after else (added, removed)


def _load(
    cursor: Cursor, portion: _Portion, family: _Family, columns: str = "*", among: str = "true"
) -> None:
    """Load the rows of one table that differ.

    Args:
        columns: Which of its columns.
        among: The condition for the rows, beside the portion's.
    """
    for name, rows in zip("ab", _rows(family, portion.before, portion.after), strict=True):
        cursor.execute(
            f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {columns} FROM ({rows}) AS differing "
            f"WHERE {portion.condition} AND {among}"
        )


def _load_staying(cursor: Cursor, portion: _Portion, family: _Family) -> bool:
    """Load the rows of files that both snapshots have; return whether there are any."""
    _load(cursor, portion, family, "fkey", "fkey NOT IN (FROM passing)")
    cursor.execute("CREATE OR REPLACE TEMP TABLE staying AS SELECT fkey FROM a UNION FROM b")
    if not _row(cursor, "SELECT count(*) FROM staying")[0]:
        return False  # and no other column is read
    _load(cursor, portion, family, "*", "fkey IN (FROM staying)")
    return True


_SIDES = "FROM a FULL JOIN b ON a.fkey = b.fkey"


def _note_passing(cursor: Cursor) -> None:
    """From the loaded rows of `files`: those that one side only has."""
    cursor.execute(
        "CREATE OR REPLACE TEMP TABLE passing AS SELECT coalesce(a.fkey, b.fkey) AS fkey "
        f"{_SIDES} WHERE a.fkey IS NULL OR b.fkey IS NULL"
    )


def _count_files(cursor: Cursor, difference: SnapshotDiff) -> None:
    changed = " OR ".join(f'a."{name}" IS DISTINCT FROM b."{name}"' for name in _CONTENT)
    added, removed, differ = _row(
        cursor,
        "SELECT count(*) FILTER (a.fkey IS NULL), count(*) FILTER (b.fkey IS NULL), "
        f"count(*) FILTER (a.fkey IS NOT NULL AND b.fkey IS NOT NULL AND ({changed})) "
        f"{_SIDES}",
    )
    difference.files_added += added
    difference.files_removed += removed
    difference.files_changed += differ


def _count_tags(cursor: Cursor, family: _Family, difference: SnapshotDiff) -> None:
    pairs = family.pairs()
    measures = ", ".join(
        f"count(*) FILTER ({old} IS NULL AND {new} IS NOT NULL), "
        f"count(*) FILTER ({old} IS NOT NULL AND {new} IS NULL), "
        f"count(*) FILTER ({old} IS NOT NULL AND {new} IS NOT NULL AND {old} <> {new})"
        for old, new in pairs.values()
    )
    counts = _row(cursor, f"SELECT {measures} {_SIDES}")
    for index, tag in enumerate(pairs):
        so_far = difference.tags.setdefault(tag, TagChanges())
        so_far.set += counts[3 * index]
        so_far.cleared += counts[3 * index + 1]
        so_far.changed += counts[3 * index + 2]
    cursor.execute(
        f"INSERT INTO touched SELECT coalesce(a.fkey, b.fkey) {_SIDES} WHERE {_differ(pairs)}"
    )


def _count_frames(cursor: Cursor, difference: SnapshotDiff) -> None:
    added, removed = _row(
        cursor,
        f"SELECT count(*) FILTER (a.fkey IS NULL), count(*) FILTER (b.fkey IS NULL) {_SIDES}",
    )
    difference.frames_added += added
    difference.frames_removed += removed


def _changes_of(cursor: Cursor, family: _Family) -> Iterator[TagChange]:
    pairs = family.pairs()
    columns = ", ".join(f"{old}, {new}" for old, new in pairs.values())
    cursor.execute(
        f"SELECT coalesce(a.fkey, b.fkey), {columns} {_SIDES} WHERE {_differ(pairs)} ORDER BY 1"
    )
    while rows := cursor.fetchmany(_FETCHED_ROWS):
        for fkey, *values in rows:
            for index, tag in enumerate(pairs):
                before, after = values[2 * index : 2 * index + 2]
                both_nan = before != before and after != after  # no NaN is equal
                if before != after and not both_nan:
                    yield TagChange(fkey, tag, before, after)


def _differ(pairs: Mapping[str, tuple[str, str]]) -> str:
    return " OR ".join(f"{old} IS DISTINCT FROM {new}" for old, new in pairs.values())


def _row(cursor: Cursor, statement: str) -> tuple[int, ...]:
    row = cursor.execute(statement).fetchone()
    return tuple(map(int, row or ()))
