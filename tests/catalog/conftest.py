"""A catalog of its own for each test."""

import shutil
from pathlib import Path

import pytest

from catalog.store import CatalogStore
from tests.catalog.some_rows import open_store


@pytest.fixture(scope="session")
def empty_catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an empty catalog, made once: making one takes a third of a second."""
    folder = tmp_path_factory.mktemp("empty")
    open_store(folder).close()
    return folder


@pytest.fixture
def folder(empty_catalog: Path, tmp_path: Path) -> Path:
    """A folder of the test's own with an empty catalog."""
    return Path(shutil.copytree(empty_catalog, tmp_path / "home"))


@pytest.fixture
def store(folder: Path) -> CatalogStore:
    """An empty catalog."""
    return open_store(folder)
