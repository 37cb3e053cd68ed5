"""The commit that a run's record names."""

import subprocess
from importlib.metadata import version
from pathlib import Path

from training.run.code_version import code_version


def git(folder: Path, *command: str) -> str:
    """What git says."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    ended = subprocess.run(
        ["git", "-C", str(folder), *identity, *command], capture_output=True, text=True, check=True
    )
    return ended.stdout.strip()


def test_a_clone_has_a_commit_and_changes(tmp_path: Path) -> None:
    """The clone's own; an environment within somebody's repository has none from there."""
    package = tmp_path / "clone" / "training"
    package.mkdir(parents=True)
    (package / "train.py").write_text("1")
    git(package.parent, "init", "-q")
    git(package.parent, "add", ".")
    git(package.parent, "commit", "-qm", "first")
    said = {"version": version("framesift"), "commit": git(package, "rev-parse", "HEAD")}
    assert code_version(package) == said | {"modified": False}
    (package / "train.py").write_text("2")
    assert code_version(package) == said | {"modified": True}
    installed = tmp_path / "clone" / "venv" / "site-packages" / "training"
    installed.mkdir(parents=True)
    assert code_version(installed)["commit"] is None
    assert code_version(tmp_path)["modified"] is None
