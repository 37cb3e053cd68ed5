"""framesift.data beside a staging: programs of users wait for files, in caches of any size."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from api.workspace import Workspace
from catalog.records.tables import Dataset
from framesift.data import Frames, open_frames
from framesift.data.waiting import Turn
from framesift.errors import BadFile
from pipeline.cache.limits import Limits, write_limits
from pipeline.cache.reading import Reading
from pipeline.manifest import Manifest
from pipeline.staging.reading_order import NEVER, ReadingOrder
from pipeline.staging.stage_concurrently import SplitReading
from tests.api.servers import wait_until
from tests.pipeline.conftest import own_source, workspace
from tests.pipeline.homes import FRAMES
from tests.pipeline.test_datasets import make
from tests.pipeline.test_reading_through import SEED, Beside, beside, files_of, size_of, training

__all__ = ["own_source", "workspace"]  # fixtures

SPLITS = "train=0.5,validation=0.5"


def handed_over(staging: Beside, folder: Path, split: str | None = None) -> Frames:
    """The frames as a job with --start-after hands them to its program."""
    assert staging.place is not None
    Manifest.read(Path(staging.place.manifest)).write(folder)
    (folder / "staging.json").write_text(json.dumps({"place": vars(staging.place)}))
    return open_frames(folder, split)


def of_source(dataset: Dataset, split: str | None = None) -> Frames:
    """The same frames where they were catalogued."""
    return open_frames(Path(dataset.manifest), split)


def check_same(frames: Frames, index: int, of: Frames) -> None:
    """See that a frame is that of the source."""
    for array, expected in zip(frames[index], of[index], strict=True):
        assert array is not None
        assert expected is not None
        assert np.array_equal(array, expected)


def test_a_program_reads_what_still_comes(workspace: Workspace, tmp_path: Path) -> None:
    """In its own order, through a cache of half of it, also after it was pickled."""
    dataset, cache = make(workspace), tmp_path / "cache"
    write_limits(cache, Limits(hard_bytes=size_of(dataset) // 2))
    with beside(workspace, dataset, cache, SplitReading(None)) as staging:
        frames = pickle.loads(pickle.dumps(handed_over(staging, tmp_path / "manifest")))
        source = of_source(dataset)
        for index in reversed(range(0, FRAMES, 3)):
            check_same(frames, index, source)
        assert frames.label_size(1) == source[1][0].shape[:2]
    assert 0 < staging.most <= size_of(dataset) // 2


@pytest.mark.wide
def test_the_window_follows_the_order_that_a_program_tells(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Of one split of two: its frames come in that order, and those of the other go."""
    dataset, cache = make(workspace, split=SPLITS), tmp_path / "cache"
    write_limits(cache, Limits(hard_bytes=size_of(dataset) // 4))
    with beside(workspace, dataset, cache, SplitReading(None)) as staging:
        frames = handed_over(staging, tmp_path / "manifest", "validation")
        source = of_source(dataset, "validation")
        rows = [of_source(dataset).names.index(name) for name in source.names]
        assert 2 < len(rows) < FRAMES
        here = files_of(Manifest.read(tmp_path / "manifest"))

        def there() -> set[int]:
            return {row for row in range(FRAMES) if all(Path(path).exists() for path in here[row])}

        reading = frames.tell_order(Reading(0, 1, 2, 0, None, seed=SEED))
        assert reading is not None
        order = ReadingOrder(len(rows), SEED)
        first = [rows[order.row(position)] for position in range(3)]
        wait_until(lambda: there() >= set(first))
        for number in range(2 * len(rows)):
            turn = Turn(order.row(number), Reading(**{**vars(reading), "read": number}))
            check_same(frames, pickle.loads(pickle.dumps(turn)), source)
        epoch = [rows[order.row(position)] for position in range(2 * len(rows), 3 * len(rows))]

        def is_ahead() -> bool:
            # Told every 0.1 s: the last of quick reads with what the process reads then.
            check_same(frames, turn, source)
            return there() >= set(epoch[:2]) and there() <= set(rows)

        wait_until(is_ahead)
    assert staging.error is None


def test_positions_of_some_rows_of_a_split() -> None:
    """Each is read when its order says so, and the split's others never."""
    rows = np.array([5, 2, 8])
    order = ReadingOrder(3, seed=1, rows=rows)
    epoch = [order.row(position) for position in range(3)]
    assert sorted(epoch) == [2, 5, 8]
    assert epoch == [int(rows[index]) for index in ReadingOrder(3, seed=1)._epoch(0)[0]]
    asked = np.arange(12)
    positions = order.next_readings(asked, 1, [1])
    second = [order.row(position) for position in range(3, 6)]
    assert {row: int(positions[row]) for row in rows} == {
        epoch[0]: 3 + second.index(epoch[0]), epoch[1]: 1, epoch[2]: 2,
    }  # fmt: skip
    assert {int(positions[row]) for row in asked if row not in rows} == {NEVER}


def test_several_processes_read_for_a_rank(workspace: Workspace, tmp_path: Path) -> None:
    """The slowest says what is still needed; one of an earlier epoch no more."""
    dataset, cache = make(workspace), tmp_path / "cache"
    with beside(workspace, dataset, cache, SplitReading(None)) as staging:
        frames = handed_over(staging, tmp_path / "manifest")
        workers = [open_frames(tmp_path / "manifest") for _ in range(2)]
        reading = frames.tell_order(Reading(0, 1, 1, 0, None, seed=SEED))
        assert reading is not None
        assert staging.place is not None
        folder = Path(staging.place.folder) / "readers"

        def told() -> list[int]:
            files = [path for path in folder.iterdir() if path.name.startswith("0-")]
            records = [json.loads(path.read_text()) for path in files]
            return sorted(record["read"] for record in records if record["seed"] == SEED)

        rows = training(0, 1, 1, 1)
        for worker, number in ((workers[0], 1), (workers[1], 5)):
            worker[Turn(rows[number], Reading(**{**vars(reading), "read": number}))]
        assert told() == [1, 5]
        frames.tell_order(Reading(0, 1, 1, 0, None, 8, seed=SEED))
        assert told() == []


def test_what_does_not_come_is_an_error(own_source: Workspace, tmp_path: Path) -> None:
    """A file that is gone, one of another split, and all once the staging has ended."""
    dataset = make(own_source, split=SPLITS)
    source = files_of(Manifest.read(Path(dataset.manifest)).split("train"))
    Path(source[2][1]).unlink()
    write_limits(tmp_path / "cache", Limits(hard_bytes=size_of_all(source[:2] + source[3:5])))
    with beside(own_source, dataset, tmp_path / "cache", SplitReading("train")) as staging:
        frames = handed_over(staging, tmp_path / "manifest", "train")
        with pytest.raises(BadFile, match="is the source mounted") as error:
            frames[2]
        assert source[2][1] in str(error.value)
        with pytest.raises(BadFile, match=r"name the split that has it \(--split\)"):
            open_frames(tmp_path / "manifest", "validation")[0]
        check_same(frames, 3, of_source(dataset, "train"))
    here = files_of(Manifest.read(tmp_path / "manifest").split("train"))
    missing = [index for index, pair in enumerate(here) if not Path(pair[0]).exists()]
    with pytest.raises(BadFile, match="the staging that fetches it has ended"):
        frames[missing[-1]]
    (tmp_path / "manifest" / "staging.json").write_text("{}")
    with pytest.raises(BadFile, match="expected the file of a staging"):
        open_frames(tmp_path / "manifest")


def size_of_all(pairs: list[tuple[str, str]]) -> int:
    """Files of frames [bytes]."""
    return sum(Path(path).stat().st_size for pair in pairs for path in pair)
