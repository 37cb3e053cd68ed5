"""Writing a set: determinism, repetition, refusal and interruption."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from catalog.errors import InvalidInput, StorageError
from sample_data.classes import PALETTE
from sample_data.draw import draw_frame
from sample_data.drawn_layout import drawn_layout
from sample_data.generate import MANIFEST_FILE, write_sample_data
from sample_data.plan import plan_frame
from tests.api.servers import wait_until

REPOSITORY = Path(__file__).parents[2]


def files_of(root: Path) -> dict[str, bytes]:
    """Relative path -> content of every file."""
    return {
        file.relative_to(root).as_posix(): file.read_bytes()
        for file in root.rglob("*")
        if file.is_file()
    }


@pytest.mark.wide
@pytest.mark.parametrize("index", [0, 13])
def test_committed_frames_can_be_made_again(committed: Path, index: int) -> None:
    """Drawing a committed frame again gives exactly the committed pixels."""
    frame = plan_frame(index, 2026)
    picture, ids = draw_frame(
        frame.spec, np.random.default_rng(np.random.SeedSequence(frame.entropy))
    )
    image, label = (
        committed / drawn_layout("a2d2").path(frame, kind) for kind in ("image", "label")
    )
    assert (np.array(Image.open(image)) == picture).all()
    assert (np.array(Image.open(label)) == PALETTE[ids]).all()


@pytest.mark.wide
def test_workers_do_not_change_the_set(tmp_path: Path) -> None:
    """One process and two processes write byte-equal sets."""
    alone = write_sample_data(tmp_path / "one", frames=3, seed=5, workers=1)
    pair = write_sample_data(tmp_path / "two", frames=3, seed=5, workers=2)
    assert alone.scenes == pair.scenes
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


@pytest.mark.wide
def test_a_second_call_makes_nothing(small_set: Path) -> None:
    """The same call again leaves every file untouched and says so."""
    calls: list[tuple[int, int]] = []
    first = write_sample_data(
        small_set, frames=2, workers=1, progress=lambda done, total: calls.append((done, total))
    )
    stamps = {file: file.stat().st_mtime_ns for file in small_set.rglob("*")}
    second = write_sample_data(small_set, frames=2, workers=1)
    assert (first.made, second.made) == (True, False)
    assert calls == [(1, 2), (2, 2)]
    assert stamps == {file: file.stat().st_mtime_ns for file in small_set.rglob("*")}
    manifest = json.loads((small_set / MANIFEST_FILE).read_text())
    assert (manifest["seed"], manifest["frames"]) == (2026, 2)
    assert len(manifest["counts"]["frames"]) == 2


@pytest.mark.wide
def test_another_set_in_the_folder_is_refused(small_set: Path) -> None:
    """A folder with a set of another seed or length is not mixed with a new one."""
    write_sample_data(small_set, frames=1, workers=1)
    before = files_of(small_set)
    with pytest.raises(InvalidInput, match=r"seed 2026.*seed 7"):
        write_sample_data(small_set, frames=1, seed=7)
    with pytest.raises(InvalidInput, match="name another folder"):
        write_sample_data(small_set, frames=2)
    assert files_of(small_set) == before


def test_a_foreign_folder_or_file_is_refused(tmp_path: Path) -> None:
    """Files that are not a sample set are left alone."""
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="holds other files"):
        write_sample_data(tmp_path, frames=1)
    with pytest.raises(InvalidInput, match="is a file"):
        write_sample_data(tmp_path / "thesis.txt", frames=1)
    assert files_of(tmp_path) == {"thesis.txt": b"mine"}


def test_a_place_below_a_file_is_a_storage_error(tmp_path: Path) -> None:
    """What the disk refuses comes out as StorageError with the path."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="file"):
        write_sample_data(tmp_path / "file" / "set", frames=1, workers=1)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [({"frames": 0}, "frames is 0"), ({"frames": 1, "seed": -1}, "seed is -1"),
     ({"frames": 1, "workers": 0}, "workers is 0")],
)  # fmt: skip
def test_numbers_out_of_range_are_refused(
    small_set: Path, arguments: dict[str, int], named: str
) -> None:
    """The message names the argument and what is expected; nothing is written."""
    with pytest.raises(InvalidInput, match=named):
        write_sample_data(small_set, **arguments)  # type: ignore[arg-type]
    assert not small_set.exists()


def test_a_larger_set_begins_with_the_smaller(committed: Path) -> None:
    """Frames do not depend on how many there are: names of the first ones stay the same."""
    manifest = json.loads((committed / MANIFEST_FILE).read_text())
    planned = [drawn_layout("a2d2").label_name(plan_frame(index, 2026)) for index in range(24)]
    assert list(manifest["counts"]["frames"]) == planned


@pytest.mark.wide
@pytest.mark.parametrize(("seed", "index"), [(1, 0), (2, 0), (3, 0), (3, 72)])
def test_the_example_query_is_answered_for_any_seed(seed: int, index: int) -> None:
    """The frame made for the example query meets its ranges whatever the seed."""
    frame = plan_frame(index, seed)
    assert frame.name.camera == "front_center"
    _, ids = draw_frame(frame.spec, np.random.default_rng(np.random.SeedSequence(frame.entropy)))
    counts = drawn_layout("a2d2").count(ids)
    assert 10_000 <= counts["Car"] <= 20_000
    assert 3_000 <= counts["Bicycle"] <= 5_000
    assert 5_000 <= counts["Pedestrian"] <= 6_000


@pytest.mark.wide
def test_a_killed_run_leaves_no_half_file(small_set: Path) -> None:
    """After SIGKILL every PNG under a final name is whole, and the same call completes the set."""
    code = """
import sys, time
from pathlib import Path
from sample_data.generate import write_sample_data
replace, whole = Path.replace, []
def replace_some(part, file):  # then it waits to be killed, with a file that is not named yet
    whole.append(file)
    if len(whole) > 9:
        time.sleep(600)
    return replace(part, file)
Path.replace = replace_some
write_sample_data(Path(sys.argv[1]), frames=6, workers=1)
"""
    child = subprocess.Popen([sys.executable, "-c", code, str(small_set)], cwd=REPOSITORY)
    wait_until(lambda: len(list(small_set.rglob("*.png"))) >= 3)
    child.send_signal(signal.SIGKILL)
    child.wait(timeout=120)
    whole = list(small_set.rglob("*.png"))
    assert 3 <= len(whole) < 12
    for file in whole:
        with Image.open(file) as picture:
            picture.load()
    assert not (small_set / MANIFEST_FILE).exists()
    assert write_sample_data(small_set, frames=6, workers=1).made
    assert len(list(small_set.rglob("*.png"))) == 12
    assert not list(small_set.rglob("*.part"))
