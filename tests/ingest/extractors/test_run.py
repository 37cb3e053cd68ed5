"""Runs of extractors: what is read, what is kept, what survives."""

import signal
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from catalog.errors import BadFile, CatalogBusy, InvalidInput
from catalog.tags.extractions import coverage, pending_frames, problems
from ingest.extractors import run as runs
from ingest.extractors.base import CataloguedFrame, Extractor, SourceFiles
from ingest.extractors.run import extraction_of, run_extractor
from tests.ingest.extractors.frames import tags_of
from tests.ingest.scene_folders import SCENE, Home, frame_key, make_tree, put
from tests.zygote import Forked

ROOT = Path(__file__).parents[3]


class Notes(Extractor):
    """The number in a text file beside each frame."""

    family: ClassVar[str] = "notes"
    columns: ClassVar[Mapping[str, str]] = {"note": "INTEGER", "half": "DOUBLE"}
    reads: ClassVar[str] = "{stamp}_note_{camera}_{number:09}.txt"

    def __init__(self) -> None:
        self.read: list[int] = []

    def extract(self, source: SourceFiles, frame: CataloguedFrame) -> Mapping[str, object] | None:
        """The number; half of it."""
        self.read.append(frame.number)
        content = source.read(frame.file).decode()
        if content == "bad":
            raise BadFile("says bad")
        if content == "none":
            return None
        return {"note": int(content), "half": int(content) / 2}


def _note(root: Path, number: int, content: str) -> Path:
    stamp = SCENE.replace("_", "")
    key = f"notes/{stamp}_note_frontcenter_{number:09d}.txt"
    return put(root, key, content.encode())


@pytest.mark.wide
def test_only_new_and_changed_frames_are_read(home: Home, tmp_path: Path) -> None:
    """A second run reads nothing and commits nothing; then only what came or changed; --full all.

    Frames whose file or whose image is gone lose their tags.
    """
    root = make_tree(tmp_path / "tree", frames=4)
    for number in (1, 2, 3):
        _note(root, number, str(10 * number))
    source = home.add(root)
    home.scan(source)
    first, second, third, fourth, fifth = (Notes() for _ in range(5))
    counts = run_extractor(home.store, source, first)
    assert (counts.frames, counts.without_file, counts.to_read, counts.tagged) == (4, 1, 3, 3)
    snapshot = home.store.snapshot()
    run_extractor(home.store, source, second)
    assert (second.read, home.store.snapshot()) == ([], snapshot)
    _note(root, 2, "200")
    _note(root, 4, "40")
    home.scan(source)
    run_extractor(home.store, source, third)
    assert sorted(third.read) == [2, 4]
    assert tags_of(home, "notes", "note", "half") == {
        1: (10, 5.0), 2: (200, 100.0), 3: (30, 15.0), 4: (40, 20.0)
    }  # fmt: skip
    run_extractor(home.store, source, fourth, full=True)
    assert sorted(fourth.read) == [1, 2, 3, 4]
    next(root.rglob("*_note_*3.txt")).unlink()
    (root / frame_key("camera", 1)).unlink()
    home.scan(source)
    run_extractor(home.store, source, fifth)
    assert fifth.read == []
    assert tags_of(home, "notes", "note") == {2: (200,), 4: (40,)}


@pytest.mark.wide
def test_bad_files_are_recorded_and_tried_again_when_they_change(
    home: Home, tmp_path: Path
) -> None:
    """A bad file, or an extractor that fails on it, is a problem and no end; older tags go."""
    root = make_tree(tmp_path / "tree", frames=4)
    for number, content in enumerate(("1", "bad", "text", "none"), start=1):
        _note(root, number, content)
    source = home.add(root)
    home.scan(source)
    counts = run_extractor(home.store, source, Notes())
    assert (counts.read, counts.tagged, counts.bad_files) == (4, 1, 2)
    problem_rows = [
        (p.key[-5:-4], p.reason) for p in problems(home.store, extraction_of(source, Notes()))
    ]
    assert problem_rows[0] == ("2", "says bad")
    assert problem_rows[1][0] == "3"
    assert problem_rows[1][1].startswith("ValueError: invalid literal")
    again = Notes()
    assert run_extractor(home.store, source, again).read == 0
    _note(root, 1, "bad")
    _note(root, 2, "22")
    home.scan(source)
    run_extractor(home.store, source, again)
    assert sorted(again.read) == [1, 2]
    assert tags_of(home, "notes", "note") == {2: (22,), 4: (None,)}


@pytest.mark.wide
def test_versions_and_new_tags(home: Home, tmp_path: Path) -> None:
    """Another version of the extractor reads every frame again and may bring new tags."""

    class Newer(Notes):
        columns: ClassVar[Mapping[str, str]] = {**Notes.columns, "third": "DOUBLE"}
        version: ClassVar[int] = 2

    root = make_tree(tmp_path / "tree", frames=2)
    _note(root, 1, "6")
    source = home.add(root)
    home.scan(source)
    run_extractor(home.store, source, Notes())
    assert run_extractor(home.store, source, Newer()).read == 1
    assert run_extractor(home.store, source, Newer()).read == 0
    assert home.rows("SELECT note, third FROM metaocean_view WHERE note IS NOT NULL") == [
        ("6", None)
    ]


@pytest.mark.wide
def test_values_of_another_type(home: Home, tmp_path: Path) -> None:
    """A value that its column cannot hold makes the frame's file a problem, with the value."""
    odd: list[tuple[dict[str, object], str]] = [
        ({"note": "7"}, "gave '7' for tag note, expected INTEGER"),
        ({"note": 2**31}, f"gave {2**31} for tag note, expected INTEGER"),
        ({"note": True}, "gave True for tag note, expected INTEGER"),
        ({"half": "x"}, "gave 'x' for tag half, expected DOUBLE"),
    ]
    values = iter(odd)

    class Odd(Notes):
        def extract(self, source: SourceFiles, frame: CataloguedFrame) -> Mapping[str, object]:
            return next(values)[0]

    root = make_tree(tmp_path / "tree", frames=len(odd))
    for number in range(1, len(odd) + 1):
        _note(root, number, "6")
    source = home.add(root)
    home.scan(source)
    assert run_extractor(home.store, source, Odd()).bad_files == len(odd)
    reasons = [problem.reason for problem in problems(home.store, extraction_of(source, Odd()))]
    for _, reason in odd:
        assert sum(reason in told for told in reasons) == 1


@pytest.mark.wide
def test_wrong_extractors(home: Home, tmp_path: Path) -> None:
    """A tag beside the columns, a wrong pattern, a taken tag: one error, nothing written."""

    class Extra(Notes):
        def extract(self, source: SourceFiles, frame: CataloguedFrame) -> Mapping[str, object]:
            return {"surprise": 1}

    class Astray(Notes):
        reads: ClassVar[str] = "{stamp}_{colour}.txt"

    class Folder(Notes):
        reads: ClassVar[str] = "notes/{stamp}.txt"

    class Taken(Notes):
        columns: ClassVar[Mapping[str, str]] = {"car": "INTEGER"}

    root = make_tree(tmp_path / "tree", frames=1)
    _note(root, 1, "6")
    source = home.add(root)
    home.scan(source)
    for extractor, words in (
        (Extra(), "surprise"),
        (Astray(), "colour"),
        (Folder(), "base name"),
        (Taken(), "belongs to family class_pixels"),
    ):
        with pytest.raises(InvalidInput, match=words):
            run_extractor(home.store, source, extractor)
    with pytest.raises(InvalidInput, match="workers"):
        run_extractor(home.store, source, Notes(), workers=0)


@pytest.mark.wide
def test_pages_and_batches_do_not_matter(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small pages give every frame once; small batches end in the same rows."""
    root = make_tree(tmp_path / "tree", frames=7)
    for number in range(1, 8):
        _note(root, number, str(number))
    source = home.add(root)
    home.scan(source)
    monkeypatch.setattr(runs, "BATCH_FRAMES", 3)
    before = home.store.snapshot()
    run_extractor(home.store, source, Notes(), workers=3)
    assert home.store.snapshot() == before + 1 + 3  # made ready, then 3 + 3 + 1 frames
    assert tags_of(home, "notes", "note") == {n: (n,) for n in range(1, 8)}
    extraction = extraction_of(source, Notes())
    numbers = [f.number for f in pending_frames(home.store, extraction, full=True, page=2)]
    assert numbers == list(range(1, 8))
    assert coverage(home.store, extraction, full=False).pending == 0


@pytest.mark.wide
def test_two_sources_share_a_family(home: Home, tmp_path: Path) -> None:
    """Each source has its own frames and files; one's run leaves the other's rows alone."""
    sources = []
    for name in ("one", "two"):
        root = make_tree(tmp_path / name, frames=1)
        _note(root, 1, str(len(name) + (name == "two")))
        sources.append(home.add(root, name=name))
        home.scan(sources[-1])
    for source in sources:
        assert run_extractor(home.store, source, Notes()).read == 1
    assert home.rows("SELECT note FROM lake.main.tags_notes ORDER BY fkey") == [(3,), (4,)]


@pytest.mark.wide
def test_one_run_at_a_time(home: Home, tmp_path: Path) -> None:
    """A second run of the same extractor on the same source is told who runs it."""
    root = make_tree(tmp_path / "tree", frames=1)
    _note(root, 1, "6")
    source = home.add(root)
    home.scan(source)
    inside, leave = threading.Event(), threading.Event()

    class Slow(Notes):
        def extract(self, source: SourceFiles, frame: CataloguedFrame) -> None:
            inside.set()
            leave.wait(300)

    running = threading.Thread(target=run_extractor, args=(home.store, source, Slow()))
    running.start()
    assert inside.wait(300)
    with pytest.raises(CatalogBusy, match="tag family notes"):
        run_extractor(home.store, source, Notes())
    leave.set()
    running.join()


_KILLED = """
import sys, time
from pathlib import Path
from catalog.records.sources import recorded_source
from ingest.extractors import run
from tests.ingest.extractors.test_run import Notes
from tests.ingest.scene_folders import Home

run.BATCH_FRAMES = 5
home = Home.at(Path(sys.argv[1]))
def tell(counts):
    if counts.read == int(sys.argv[2]):
        print(counts.read, flush=True)
        time.sleep(600)  # here it is killed
source = recorded_source(home.records, "a2d2")
run.run_extractor(home.store, source, Notes(), workers=1, progress=tell)
"""


@pytest.mark.wide
def test_killed_runs_leave_their_last_commit(home: Home, tmp_path: Path) -> None:
    """SIGKILL at several points: whole batches stay, nothing else, and a rerun completes."""
    frames = 40
    root = make_tree(tmp_path / "tree", frames=frames)
    for number in range(1, frames + 1):
        _note(root, number, str(number))
    source = home.add(root)
    home.scan(source)
    committed = 0
    for stop_at in (2, 8, 13):
        command = ["-c", _KILLED, str(tmp_path / "home"), str(stop_at)]
        with Forked(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == f"{stop_at}\n"
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
        stored = tags_of(home, "notes", "note") if "tags_notes" in _tables(home) else {}
        assert len(stored) % 5 == 0
        assert len(stored) >= committed
        committed = len(stored)
    assert 0 < committed < frames
    last = Notes()
    assert run_extractor(home.store, source, last).read == frames - committed
    assert len(last.read) == frames - committed
    assert tags_of(home, "notes", "note") == {n: (n,) for n in range(1, frames + 1)}
    marks = "SELECT count(*), count(DISTINCT fkey) FROM lake.main.extracted"
    assert home.rows(marks) == [(frames, frames)]


def _tables(home: Home) -> set[object]:
    return {row[0] for row in home.rows("SELECT table_name FROM duckdb_tables()")}
