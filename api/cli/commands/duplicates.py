"""framesift duplicates."""

from itertools import groupby
from typing import Any

from api.cli.options.common import AtOption
from api.cli.tables.table import emit_table
from api.cli.target import target
from api.cli.terminal import JsonFlag, emit_json, stderr, stdout

_STATEMENT = (
    "select duplicate, fkey, scene, camera, frame_number from metaocean_view "
    "where duplicate is not null order by duplicate, fkey"
)


def duplicates(at: AtOption = None, as_json: JsonFlag = False) -> None:
    """List the frames that are there more than once, those that are the same together.

    Their labels show the same and their images have the same bytes, whatever they are named.
    Samples and matched sets take one of them, and splits never part them.
    """
    rows = target().statements.run(_STATEMENT, at=at)
    with rows.reader() as reader:
        frames = [row for batch in reader for row in batch.to_pylist()]
    groups = _groups(frames)
    if as_json:
        emit_json([{"duplicate": mark, "frames": frames} for mark, frames in groups])
    else:
        _show(groups)
    if rows.truncated:
        stderr.print(f"only the first {rows.max_rows:,} frames (FRAMESIFT_QUERY_MAX_ROWS)")


def _groups(rows: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Frames by mark; left out where the user may see only one frame of a group."""
    lower = [{name.lower(): value for name, value in row.items()} for row in rows]
    groups = [(mark, [*frames]) for mark, frames in groupby(lower, lambda row: row["duplicate"])]
    return [(mark, frames) for mark, frames in groups if len(frames) > 1]


def _show(groups: list[tuple[str, list[dict[str, Any]]]]) -> None:
    if not groups:
        stdout.print("no frame is there more than once")
        return
    emit_table(
        ("duplicate", "scene", "camera", "number", "fkey"),
        [
            (mark[-8:], row["scene"], row["camera"], row["frame_number"], row["fkey"])
            for mark, members in groups
            for row in members
        ],
    )
    frames = sum(len(members) for _, members in groups)
    stdout.print(f"{frames:,} frames are {len(groups):,} different ones")
