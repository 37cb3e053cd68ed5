"""What is written aside: gone when its writer is, and nobody else's work."""

import subprocess
import sys
from pathlib import Path

import pytest

from catalog.part_path import clear_parts, part_of

REPOSITORY = Path(__file__).resolve().parents[2]

_WRITES = """
import sys
from pathlib import Path
from catalog.part_path import part_of
with part_of(Path(sys.argv[1]), is_folder=sys.argv[2] == "folder") as part:
    written = part / "file" if part.is_dir() else part
    written.write_text("half")
    print(part, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_writer_left_is_cleared_by_the_next(tmp_path: Path, kind: str) -> None:
    """A living one's part stays, one of another target too, and a file that only looks alike."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITES, str(tmp_path / name), kind], cwd=REPOSITORY,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for name in ("out[1].csv", "out[1].csv", "other.csv")
    ]  # fmt: skip
    parts = [Path(process.stdout.readline().strip()) for process in started if process.stdout]
    assert [part.is_dir() for part in parts] == [kind == "folder"] * 3
    (mine := tmp_path / "out[1].csv.part").touch()
    for killed in (started[0], started[2]):
        killed.kill()
        killed.communicate()
    with part_of(tmp_path / "out[1].csv") as part:
        assert [path.exists() for path in (*parts, mine, part)] == [False, True, True, True, True]
    assert not part.exists()
    clear_parts(tmp_path.glob("*.part"))
    assert [path.exists() for path in (*parts, mine)] == [False, True, False, False]
    started[1].communicate()
    assert list(tmp_path.iterdir()) == []
