"""Queries larger than their memory limit: they spill, each process apart, and leave nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.wide

REPOSITORY = Path(__file__).parent.parent.parent
PROGRAM = """
import sys
from pathlib import Path
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
store = CatalogStore(CatalogLocation.in_folder(Path(sys.argv[1])), memory_limit="60MB", threads=1)
with store.reading() as cursor:
    print(cursor.execute(
        "SELECT count(*), sum(n) FROM (SELECT i, count(*) AS n FROM "
        "(SELECT md5((i % 700000)::VARCHAR) AS i FROM range(1400000) AS r(i)) GROUP BY i)"
    ).fetchall())
store.close()
"""


def test_two_processes_spill_at_once(tmp_path: Path, folder: Path) -> None:
    """Both are right, in a current folder that is left as it was, and the temporary one too."""
    (tmp_path / "temporary").mkdir()
    here = tmp_path / "here"
    here.mkdir()
    variables = {**os.environ, "TMPDIR": str(tmp_path / "temporary"), "PYTHONPATH": str(REPOSITORY)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(folder / "catalog")],
            cwd=here, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    for process in processes:
        out, err = process.communicate(timeout=600)
        assert out == "[(700000, 1400000)]\n", err
    assert list(here.iterdir()) == []
    (of_user,) = (tmp_path / "temporary").iterdir()
    assert of_user.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in of_user.rglob("*")] == ["spilled", "lock"]


def test_a_name_that_somebody_took(tmp_path: Path) -> None:
    """A link, a file or an open folder of the user's name is not used."""
    program = "from catalog.storage.spill_folder import new_spill_folder; print(new_spill_folder())"
    for how in ("link", "file", "open"):
        path = tmp_path / how
        path.mkdir()
        name = path / f"framesift-{os.getuid()}"
        if how == "link":
            name.symlink_to(tmp_path)
        elif how == "file":
            name.touch()
        else:
            name.mkdir(mode=0o777)
            name.chmod(0o777)
        run = subprocess.run(
            [sys.executable, "-c", program],
            cwd=REPOSITORY, env={**os.environ, "TMPDIR": str(path)},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        parent = Path(run.stdout.strip()).parents[2]
        assert parent != name
        assert parent.parent == path
        assert parent.stat().st_mode & 0o777 == 0o700


_HOLDS = """
import sys
from pathlib import Path
from catalog.storage.spill_folder import new_spill_folder
folder = Path(new_spill_folder())
folder.mkdir()
(folder / "spilled").touch()
print(folder, flush=True)
sys.stdin.read()
"""


def test_what_a_killed_process_spilled_is_cleared_by_the_next(tmp_path: Path) -> None:
    """What a running one spilled stays, and nothing is left of one that ends."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", _HOLDS],
            cwd=REPOSITORY, env={**os.environ, "TMPDIR": str(tmp_path)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    killed, running = started
    folders = [Path(process.stdout.readline().strip()) for process in started if process.stdout]
    killed.kill()
    killed.communicate()
    assert [(folder / "spilled").exists() for folder in folders] == [True, True]
    subprocess.run(
        [sys.executable, "-c", _HOLDS],
        cwd=REPOSITORY, env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    assert [(folder / "spilled").exists() for folder in folders] == [False, True]
    running.communicate()
    assert [path.name for path in tmp_path.rglob("*")][1:] == ["spilled", "lock"]


_TOO_LITTLE = """
import sys
from pathlib import Path
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
store = CatalogStore(
    CatalogLocation.in_folder(Path(sys.argv[1])), memory_limit="60MB", spill_limit="1MB", threads=1
)
with store.reading() as cursor:
    cursor.execute(
        "SELECT max(a) FROM (SELECT a, row_number() OVER (ORDER BY a) AS n FROM "
        "(SELECT md5(i::VARCHAR) || md5((i + 1)::VARCHAR) AS a FROM range(2000000) AS r(i)))"
    )
"""


def test_the_disk_that_may_be_taken(tmp_path: Path, folder: Path) -> None:
    """Beyond it a query fails by itself, before the disk is full."""
    done = subprocess.run(
        [sys.executable, "-c", _TOO_LITTLE, str(folder / "catalog")],
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(REPOSITORY)},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode != 0
    assert "max_temp_directory_size" in done.stderr
