"""A frame's place among the frames that a question finds, and the ones beside it."""

from dataclasses import dataclass

from catalog.lake.catalog import Catalog
from query.frames.frame_order import FrameOrder
from query.statistics.population import POPULATION, Frames, population


@dataclass(frozen=True)
class FramePlace:
    """A frame's place."""

    position: int
    """From 1."""
    count: int
    """Frames in all."""
    previous: str | None
    """fkey of the frame before; None of the first."""
    next: str | None
    """fkey of the frame behind; None of the last."""


def place_of(
    store: Catalog, frames: Frames, fkey: str, order: FrameOrder | None = None
) -> FramePlace | None:
    """The place of a frame; None where the frame is not among them.

    Args:
        order: By fkey when None.

    Raises:
        UnknownName: There is no such column, class, camera or scene.
    """
    order = FrameOrder() if order is None else order
    with population(store, frames) as members:
        order.check(members.relation.columns)
        among = f"{POPULATION}, here WHERE {members.relation.has_label}"
        is_before, is_behind = order.is_before, order.is_behind
        values: tuple[object, ...] = (fkey,)
        if order == FrameOrder():  # a constant finds its place in sorted rows
            is_before, is_behind, values = "fkey < ?", "fkey > ?", (fkey,) * 4
        (row,) = members.ask(
            f", here AS ({order.here}) SELECT "
            f"(SELECT count(*) FROM {among}) AS frames, "
            f"(SELECT count(*) FROM {among} AND {is_before}) AS earlier, "
            f"(SELECT fkey FROM {among} AND {is_before} ORDER BY {order.turned} LIMIT 1) "
            "AS previous, "
            f"(SELECT fkey FROM {among} AND {is_behind} ORDER BY {order.by} LIMIT 1) "
            "AS following",
            values,
        )
    if not row["frames"]:
        return None
    return FramePlace(row["earlier"] + 1, row["frames"], row["previous"], row["following"])
