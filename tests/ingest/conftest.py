"""A home of its own for each test of a scan."""

import shutil
from pathlib import Path

import pytest

from tests.ingest.scene_folders import Home


@pytest.fixture(scope="session")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty catalog and records, made once: making one takes half a second."""
    folder = tmp_path_factory.mktemp("empty")
    home = Home.at(folder)
    home.close()
    return folder


@pytest.fixture
def home(empty_home: Path, tmp_path: Path) -> Home:
    """An empty catalog and records of the test's own."""
    shutil.copytree(empty_home, tmp_path / "home")
    return Home.at(tmp_path / "home")
