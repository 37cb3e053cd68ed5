"""Pages of frames in an order, and each frame's place in it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.services.accounts.callers import NOBODY_ASKED
from api.services.session import Session
from catalog.errors import InvalidInput, UnknownName
from query.frames.frame_order import FrameOrder
from query.frames.frame_page import PageStart, page_of
from query.frames.frame_place import place_of
from query.question.question import Question
from query.statistics.population import Frames
from tests.pipeline.homes import FRAMES, copy_home, open_home

SOME = Frames(Question(where="truck >= 0"))


@pytest.fixture(scope="module")
def session(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A catalog in which four frames have a weather, and two of them the same."""
    workspace = open_home(copy_home(catalogued, tmp_path_factory.mktemp("ordered")))
    session = Session(workspace, NOBODY_ASKED)
    fkeys = [row["fkey"] for row in rows_of(session, FrameOrder())]
    for fkey, weather in zip(fkeys[3:7], ("rain", "fog", "rain", "sun"), strict=True):
        session.tags.mark([fkey], {"weather": weather})
    yield session
    workspace.close()


def rows_of(session: Session, order: FrameOrder, frames: Frames = SOME) -> list[dict[str, Any]]:
    """All frames, by pages of five, of the first page's snapshot."""
    rows: list[dict[str, Any]] = []
    after = None
    columns = [order.column]
    while True:
        page = page_of(session.workspace.catalog, frames, columns, 5, after, order)
        rows += page.frames
        if page.last is None:
            return rows
        after = PageStart(page.snapshot, page.last)


@pytest.mark.parametrize("text", ["weather", "weather desc", "truck", "truck desc", "scene", ""])
def test_each_frame_comes_once_in_order(session: Session, text: str) -> None:
    """Those without a value last, equal ones by fkey; places say the same."""
    order = FrameOrder.parse(text)
    rows = rows_of(session, order)
    valued = sorted(
        sorted((row for row in rows if row[order.column] is not None), key=lambda row: row["fkey"]),
        key=lambda row: row[order.column],
        reverse=order.falling,
    )
    unvalued = sorted(row["fkey"] for row in rows if row[order.column] is None)
    fkeys = [row["fkey"] for row in rows]
    assert fkeys == [row["fkey"] for row in valued] + unvalued
    assert len(set(fkeys)) == len(fkeys) == FRAMES
    for index in (0, 1, 3, 4, FRAMES - 2, FRAMES - 1):
        place = place_of(session.workspace.catalog, SOME, fkeys[index], order)
        assert place is not None
        assert (place.position, place.count) == (index + 1, FRAMES)
        assert place.previous == (fkeys[index - 1] if index else None)
        assert place.next == (fkeys[index + 1] if index < FRAMES - 1 else None)


def test_a_frame_that_is_not_found_has_no_place(session: Session) -> None:
    """It is in the catalog, and the question leaves it out."""
    found = rows_of(session, FrameOrder(), Frames(Question(cameras=("front_center",))))
    others = {row["fkey"] for row in rows_of(session, FrameOrder())} - {r["fkey"] for r in found}
    frames = Frames(Question(cameras=("front_center",)))
    assert place_of(session.workspace.catalog, frames, min(others)) is None
    assert place_of(session.workspace.catalog, frames, found[0]["fkey"]) is not None


def test_a_wrong_order_says_what_is_wrong(session: Session) -> None:
    """A direction, and a column that frames have not."""
    with pytest.raises(InvalidInput, match="'desc' for falling order"):
        FrameOrder.parse("car down")
    for order in ("carr", 'car" desc'):
        with pytest.raises((UnknownName, InvalidInput)):
            rows_of(session, FrameOrder.parse(order))
    with pytest.raises(UnknownName, match="given in the order"):
        place_of(session.workspace.catalog, SOME, "any", FrameOrder("carr"))
