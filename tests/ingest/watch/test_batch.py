"""When a batch closes, and what a scan looks at for it."""

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from ingest.layouts.read_layout import preset
from ingest.watch.batch import (
    LONGEST_S,
    MOST_PATHS,
    QUIET_S,
    WHOLE,
    Batch,
    belongs_to,
    folders_to_scan,
)
from tests.ingest.scene_folders import SCENE, frame_key

A2D2 = preset("a2d2")


def test_a_batch_closes_after_quiet_or_at_the_latest() -> None:
    """Half a second after the last change; two seconds after the first, if they never end."""
    batch = Batch()
    assert batch.due == inf
    batch.add(["a"], 10.0)
    assert batch.due == 10.0 + QUIET_S
    for tenth in range(1, 40):
        batch.add(["a", "b"], 10.0 + tenth / 10)
    assert batch.due == 10.0 + LONGEST_S
    assert batch.paths == {"a", "b"}


def test_what_was_noticed_before_counts_from_then() -> None:
    """``since`` is the earliest change, so that the time to the commit is told in full."""
    batch = Batch()
    batch.add(["a"], 10.0, since=7.0)
    batch.add(["b"], 11.0)
    assert batch.since == 7.0
    assert batch.due == 11.0 + QUIET_S


def test_a_full_batch_and_the_whole_source_are_due_at_once() -> None:
    """Neither waits for more."""
    full, whole = Batch(), Batch()
    full.add(map(str, range(MOST_PATHS)), 10.0)
    whole.add([WHOLE], 10.0)
    assert full.full
    assert not full.is_whole_source
    assert full.due == whole.due == 10.0
    assert whole.is_whole_source


def test_names_that_are_no_utf8_do_not_open_a_batch() -> None:
    """The catalog cannot hold them; the next listing of all records them."""
    batch = Batch()
    batch.add(["a\udcff"], 10.0)
    assert batch.due == inf


def test_a_frames_file_stands_for_its_scene() -> None:
    """Files of a scene become its folder, once; others stay single keys; in byte order."""
    label, image = frame_key("label", 1), frame_key("camera", 2)
    paths = ["z.json", f"deep/er/{label}", label, image, "ä", "a"]
    assert folders_to_scan(paths, A2D2) == [f"{SCENE}/", "a", f"deep/er/{SCENE}/", "z.json", "ä"]


def test_nothing_below_a_folder_is_looked_at_twice() -> None:
    """The whole source covers all; a folder covers what lies in it, and no neighbour."""
    label = frame_key("label", 1)
    assert folders_to_scan([f"a/{label}", "a/", "a/b/c", "a", "a-b", "a0"], A2D2) == [
        "a", "a-b", "a/", "a0"
    ]  # fmt: skip
    assert folders_to_scan(["b", WHOLE, label], A2D2) == [WHOLE]


@given(st.sets(st.text("ab/", max_size=6)))
def test_every_place_is_covered_once(paths: set[str]) -> None:
    """Whatever the places: in order, each covered, none below another."""

    def covers(folder: str, path: str) -> bool:
        return folder == path or (folder[-1:] in ("", "/") and path.startswith(folder))

    folders = folders_to_scan(paths, A2D2)
    assert folders == sorted(folders)
    assert all(any(covers(folder, path) for folder in folders) for path in paths)
    assert not any(covers(a, b) for a in folders for b in folders if a != b)


def test_an_unfinished_file_holds_its_whole_frame_back() -> None:
    """A label still being written keeps its camera image, and nobody else, out of a batch."""
    pattern = belongs_to([frame_key("label", 1), "notes.txt"], A2D2)
    assert pattern(frame_key("label", 1))
    assert pattern(frame_key("camera", 1))
    assert pattern(frame_key("camera", 1, "json"))
    assert pattern("notes.txt")
    assert not pattern(frame_key("camera", 2))
    assert not pattern("x/" + frame_key("camera", 1))
    assert not belongs_to([], A2D2)(frame_key("label", 1))
