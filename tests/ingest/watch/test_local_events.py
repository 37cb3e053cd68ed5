"""Changes below a real folder, as the kernel tells them."""

import os
import shutil
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from catalog.errors import StorageError
from ingest.watch import local_events
from ingest.watch.local_events import LocalEvents
from tests.api.servers import wait_until


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a folder."""
    (tmp_path / "root" / "old").mkdir(parents=True)
    return tmp_path / "root"


@pytest.fixture
def warnings() -> list[str]:
    """What the events warn of."""
    return []


@pytest.fixture
def events(root: Path, warnings: list[str]) -> Iterator[LocalEvents]:
    """The folder's events."""
    opened = LocalEvents(root, warnings.append)
    yield opened
    opened.close()


marks = count()


def seen(events: LocalEvents, *expected: str) -> set[str]:
    """All places up to those that are wanted, and whatever the kernel told of until then."""
    paths = told(events, *expected)
    mark = f"mark {next(marks)}"
    (events._folder / mark).write_bytes(b"")  # the kernel tells of it after all else
    return (paths | told(events, mark)) - {mark}


def told(events: LocalEvents, *expected: str) -> set[str]:
    """All places up to those that are wanted."""
    paths: set[str] = set()
    end = time.monotonic() + 120
    while not paths.issuperset(expected):
        assert time.monotonic() < end, paths
        changes = events.poll(1.0)
        paths |= set(changes.paths) if changes else set()
    return paths


def poll_often(events: LocalEvents) -> None:
    """Poll for a minute."""
    for _ in range(600):
        events.poll(0.1)


def test_a_file_counts_when_it_is_closed(events: LocalEvents, root: Path) -> None:
    """While it is open it is unfinished and nothing has changed."""
    with (root / "old" / "a").open("wb") as file:
        file.write(b"1")
        file.flush()
        wait_until(lambda: events.unfinished() == ("old/a",))
        assert events.poll(0.3) is None
    assert seen(events, "old/a") == {"old/a"}
    assert events.unfinished() == ()


def test_links_moves_and_removals(events: LocalEvents, root: Path, tmp_path: Path) -> None:
    """A link is never closed and counts at once; a move is gone here and new there."""
    (tmp_path / "outside").write_bytes(b"1")
    os.link(tmp_path / "outside", root / "hard")
    (root / "soft").symlink_to(tmp_path / "outside")
    assert seen(events, "hard", "soft") == {"hard", "soft"}
    (root / "hard").rename(root / "old" / "hard")
    assert seen(events, "hard", "old/hard") == {"hard", "old/hard"}
    (root / "old" / "hard").rename(tmp_path / "away")
    (tmp_path / "away").rename(root / "back")
    (root / "soft").unlink()
    assert seen(events, "old/hard", "back", "soft") == {"old/hard", "back", "soft"}


def test_times_that_are_set_after_closing(events: LocalEvents, root: Path) -> None:
    """As shutil.copy2 does: the catalog keeps the time of last change."""
    (root / "a").write_bytes(b"1")
    seen(events, "a")
    os.utime(root / "a", (1, 1))
    assert seen(events, "a") == {"a"}


def test_new_folders_are_watched_all_the_way_down(events: LocalEvents, root: Path) -> None:
    """What is written before the kernel's event was read is covered by the folder itself."""
    (root / "new" / "deep").mkdir(parents=True)
    (root / "new" / "deep" / "a").write_bytes(b"1")
    assert seen(events, "new/") <= {"new/", "new/deep/", "new/deep/a"}
    (root / "new" / "deep" / "b").write_bytes(b"1")
    assert seen(events, "new/deep/b") == {"new/deep/b"}


def test_a_moved_folder_is_watched_under_its_new_name(
    events: LocalEvents, root: Path, tmp_path: Path
) -> None:
    """Renamed, moved into the tree and out of it, at once and many times."""
    (root / "old" / "sub").mkdir()
    seen(events, "old/sub/")
    for number in range(50):
        (root / "old").rename(root / f"x{number}")
        (root / f"x{number}").rename(root / "old")
    (root / "old").rename(root / "new")
    assert seen(events, "new/") >= {"old/", "new/"}
    (root / "new" / "sub" / "a").write_bytes(b"1")
    assert seen(events, "new/sub/a") == {"new/sub/a"}
    (root / "new").rename(tmp_path / "outside")
    assert seen(events, "new/") == {"new/"}
    (tmp_path / "outside" / "sub" / "b").write_bytes(b"1")
    assert events.poll(0.3) is None
    (tmp_path / "outside").rename(root / "again")
    assert seen(events, "again/") == {"again/"}
    (root / "again" / "sub" / "c").write_bytes(b"1")
    assert seen(events, "again/sub/c") == {"again/sub/c"}


def test_a_folder_made_again_is_watched_again(events: LocalEvents, root: Path) -> None:
    """Removed and made under the same name, many times in a row."""
    for _ in range(50):
        shutil.rmtree(root / "old")
        (root / "old").mkdir()
    assert "old/" in seen(events, "old/")
    (root / "old" / "a").write_bytes(b"1")
    assert seen(events, "old/a") == {"old/a"}


def test_a_forgotten_open_file_counts_in_the_end(
    events: LocalEvents, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody wrote to it for long enough."""
    monkeypatch.setattr(local_events, "OPEN_AT_MOST_S", 0.3)
    with (root / "a").open("wb") as file:
        file.write(b"1")
        file.flush()
        assert seen(events, "a") == {"a"}
        assert events.unfinished() == ()


def test_a_root_that_goes_away_is_an_error(events: LocalEvents, root: Path) -> None:
    """Moved, another folder put in its place: what is watched is no longer the source."""
    root.rename(root.with_name("elsewhere"))
    root.mkdir()
    with pytest.raises(StorageError, match=r"removed, moved or unmounted|replaced"):
        poll_often(events)


def test_lost_events_are_an_error(events: LocalEvents, root: Path) -> None:
    """The kernel's queue really overflows while nobody reads it."""
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if limit > 50_000:
        pytest.skip(f"fs.inotify.max_queued_events is {limit}: filling it takes too long")
    paths = [root / "a", root / "b"]
    with events._changed:  # its thread waits here, and nobody empties the queue
        for _ in range(limit // 4 + 2_000):
            for path in paths:  # events of one file in a row would be merged
                path.write_bytes(b"")
    with pytest.raises(StorageError, match=r"fs\.inotify\.max_queued_events"):
        poll_often(events)


def test_very_many_changes_stand_for_the_whole(
    events: LocalEvents, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is held of places and open files is bounded."""
    monkeypatch.setattr(local_events, "_MOST_PATHS", 5)
    for number in range(20):
        (root / str(number)).write_bytes(b"")
    wait_until(lambda: "" in events._paths)  # before a poll takes fewer, one by one
    assert "" in seen(events, "")
