"""One catalog of the drawn frames for all tests of query/, and one of real A2D2 frames.

Tests of what a statement means read it in memory, as a server does, for a fourth of the CPU.
Those of attacks, streams and selections read Parquet, as a command does (docs/decisions/0037).
"""

import os
from pathlib import Path

import pytest

from catalog.store import CatalogStore
from tests.query.catalogs import DrawnFrame, drawn, drawn_frames, in_memory, ingested


@pytest.fixture(scope="session")
def stored(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> CatalogStore:
    """The catalog of the drawn frames, read from Parquet."""
    return drawn(catalogued, tmp_path_factory.mktemp("drawn"))


@pytest.fixture(scope="session")
def store(stored: CatalogStore) -> CatalogStore:
    """The same catalog, read in memory."""
    return in_memory(stored)


@pytest.fixture(scope="session")
def frames() -> list[DrawnFrame]:
    """The drawn frames as plain Python."""
    return drawn_frames()


@pytest.fixture(scope="session")
def a2d2_root() -> Path:
    """The folder of real A2D2 frames."""
    root = os.environ.get("A2D2_ROOT", "")
    if not root or not Path(root).is_dir():
        pytest.skip("A2D2_ROOT names no folder: no real A2D2 frames to test with")
    return Path(root)


@pytest.fixture(scope="session")
def real_store(a2d2_root: Path, tmp_path_factory: pytest.TempPathFactory) -> CatalogStore:
    """The catalog of real A2D2 frames."""
    return ingested(tmp_path_factory.mktemp("real"), a2d2_root)
