"""What a division holds together, and what it does not."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from pipeline.datasets.division import Division, divide
from query.frames.candidates import DUPLICATE
from query.frames.sampling import hashes_of

HALVES = {"train": Fraction(1, 2), "validation": Fraction(1, 2)}


def scenes_of(drives: list[str | None], frames: int = 5) -> pa.Table:
    """One scene for each drive, an hour apart, none after midnight."""
    rows = [
        {"scene": f"20200101_{hour:02d}0000", "frame_number": number, "drive": drive}
        for hour, drive in enumerate(drives)
        for number in range(frames)
    ]
    return pa.Table.from_pylist(
        rows,
        pa.schema({"scene": pa.string(), "frame_number": pa.int32(), "drive": pa.string()}),
    )


@pytest.mark.parametrize("by", ["scene", "drive"])
@pytest.mark.parametrize("first", [[], [None, None]])
def test_scenes_without_a_drive_are_no_drive(by: str, first: list[str | None]) -> None:
    """Half of the scenes lack the tag: each is divided by itself, the named drives stay whole."""
    drives = ["a", None, "a", None, "b", None, "b", None]
    frames = scenes_of([*first, *drives[: len(drives) - len(first)]])
    hashes = hashes_of(str(n) for n in range(frames.num_rows))
    sides, report = divide(frames, hashes, Division(HALVES, by=by), {})
    assert report["leakage"]["groups"] == (2 + 5 if first else 2 + 4)
    assert np.bincount(sides).tolist() == [20, 20]
    assert (report["leakage"]["shared_drives"], report["leakage"]["shared_scenes"]) == (0, 0)


def test_the_same_frame_twice_stays_on_one_side() -> None:
    """By its mark, though scene and time are others; a frame without one is by itself."""
    frames = scenes_of([None] * 8, frames=1)
    marks = ["m", None, "m", "m2", None, "m2", None, None]
    frames = frames.append_column(DUPLICATE, pa.array(marks, pa.string()))
    hashes = hashes_of(str(n) for n in range(8))
    for seed in range(5):
        sides, report = divide(frames, hashes, Division(HALVES, seed=seed), {})
        assert report["leakage"]["groups"] == 2 + 4
        assert report["leakage"]["shared_duplicates"] == 0
        assert sides[0] == sides[2]
        assert sides[3] == sides[5]
    loose = Division(HALVES, seed=1, allow_leakage=True)
    assert divide(frames, hashes, loose, {})[1]["leakage"]["groups"] == 8


def test_scenes_that_overlap_by_their_first_frames_stay_together() -> None:
    """Though the last frame of neither is near the other's; a third, an hour on, stays apart."""
    frames = pa.Table.from_pylist(
        [
            {"scene": scene, "frame_number": number, "drive": None}
            for scene, numbers in (
                ("20200101_000000", (0, 30_000)),
                ("20200101_000001", (0, 60_000)),
                ("20200101_040000", (0, 1)),
            )
            for number in numbers
        ],
        scenes_of([]).schema,
    )
    hashes = hashes_of(str(n) for n in range(frames.num_rows))
    sides, report = divide(frames, hashes, Division(HALVES), {})
    assert report["leakage"]["groups"] == 2
    assert len(set(sides[:4].tolist())) == 1
    assert sides[4] == sides[5] != sides[0]


def test_frames_without_a_scene_are_no_scene() -> None:
    """Without scene, time and drive nothing holds frames together."""
    frames = scenes_of([None] * 2)
    frames = frames.set_column(0, "scene", pa.nulls(frames.num_rows, pa.string()))
    hashes = hashes_of(str(n) for n in range(frames.num_rows))
    sides, report = divide(frames, hashes, Division(HALVES), {})
    assert report["leakage"]["groups"] == frames.num_rows
    assert report["leakage"]["frames_without_time"] == frames.num_rows
    assert np.bincount(sides).tolist() == [5, 5]
