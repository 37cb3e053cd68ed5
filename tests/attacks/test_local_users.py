"""What another account of the machine can open, whatever the umask of whoever made it."""

import os
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from catalog.maintenance.backup import back_up, restore
from catalog.records.datasets import recorded_dataset
from pipeline.staging.stage import stage_dataset
from tests.pipeline.homes import SAMPLE, make_home, open_home
from tests.pipeline.test_datasets import make
from tests.pipeline.test_datasets_survive import trained


@pytest.fixture
def no_umask(tmp_path: Path) -> Iterator[Path]:
    """A folder that everybody may enter, and no umask."""
    tmp_path.chmod(0o755)
    before = os.umask(0)
    yield tmp_path
    os.umask(before)


def open_to_others(path: Path) -> list[str]:
    """Files at or below a place that others may read or write, by the modes on their way."""
    mode = stat.S_IMODE(path.lstat().st_mode)
    if path.is_dir():
        if not mode & stat.S_IXOTH:
            return []
        inside = [entry_found for entry in path.iterdir() for entry_found in open_to_others(entry)]
        return inside + ([f"{path}/"] if mode & stat.S_IWOTH else [])
    return [str(path)] if mode & (stat.S_IROTH | stat.S_IWOTH) else []


def test_a_home_and_its_backups(no_umask: Path) -> None:
    """Records, manifests, models, staged copies, a backup in either form, a restored home."""
    home = no_umask / "home"
    make_home(home, SAMPLE)
    workspace = open_home(home)
    dataset = make(workspace)
    stage_dataset(workspace.records, dataset, workspace.cache)
    trained(workspace, dataset)
    backups = [no_umask / "b.tar", no_umask / "folder"]
    for backup in backups:
        back_up(workspace.whole_catalog, workspace.records, backup)
    workspace.close()
    restored = no_umask / "restored"
    restored.mkdir(mode=0o755)  # as it may be there before
    restore(backups[0], restored)
    for folder in (home, *backups, restored):
        assert open_to_others(folder) == [], folder
        assert folder.exists()
    assert (restored / "records" / "records.sqlite").stat().st_size
    with closing(open_home(restored)) as opened:
        assert recorded_dataset(opened.records, "streets").frames == dataset.frames
    assert stat.S_IMODE(restored.stat().st_mode) == 0o700
