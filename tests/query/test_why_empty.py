"""What is said of a question without frames."""

from pathlib import Path
from typing import Any

from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from query.frames.select_frames import select_frames
from query.question.question import Question
from query.question.why_empty import why_empty
from tests.query.catalogs import DrawnFrame


def many(tag: str, lowest: int) -> dict[str, Any]:
    """A range without an upper end."""
    return {"tag": tag, "lowest": lowest}


def test_the_condition_that_nothing_meets(store: CatalogStore, frames: list[DrawnFrame]) -> None:
    """It is named; of a range too high, how high it may be."""
    most = max(frame.tags["car"] for frame in frames)
    front = sum(frame.camera == "front_center" for frame in frames)
    bikes = sum(frame.tags["bicycle"] >= 1 for frame in frames)
    side = sum(frame.camera == "side_left" for frame in frames)
    high = f"with at least 5,000,000 car pixels: the most car in a frame is {most:,}"
    of_two = {"kind": "camera", "names": ["side_left"]}
    clash = f"{bikes} frames with at least one bicycle pixel; {front} front-center frames; {side}"
    empty: list[tuple[dict[str, Any], str]] = [
        (
            {"ranges": [many("sky", 0), many("car", 5_000_000)]},
            f"there are no frames {high}",
        ),
        (
            {"ranges": [many("bicycle", 1), many("bicycle", 1), many("car", 5_000_000)]},
            f"there are no frames {high}",
        ),
        (
            {"ranges": [many("car", 5_000_000), many("car", 5_000_000)]},
            f"there are no frames {high}",
        ),
        (
            {"where": "car < 0", "cameras": ["front_center"]},
            "there are no frames for which SQL says car < 0",
        ),
        (
            {
                "cameras": ["front_center"],
                "condition": of_two,
                "ranges": [many("bicycle", 1)],
            },
            f"no frame is all of these: {clash} side-left frames",
        ),
    ]
    for data, reason in empty:
        question = Question.model_validate(data)
        assert len(select_frames(store, question)) == 0
        assert why_empty(store, question) == reason


def test_a_catalog_without_frames(tmp_path: Path) -> None:
    """It is the catalog that is empty."""
    store = CatalogStore(CatalogLocation.in_folder(tmp_path))
    reason = "the catalog has no labelled frames: framesift ingest SOURCE"
    assert why_empty(store, Question(where="scene = 'x'")) == reason
