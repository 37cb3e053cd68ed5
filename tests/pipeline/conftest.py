"""Copies of the catalogued home, opened."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from api.workspace import Workspace
from tests.pipeline.homes import copy_home, open_home

# Its assertions tell what they compared.
pytest.register_assert_rewrite("tests.pipeline.backend_suite")


@pytest.fixture
def workspace(catalogued: Path, tmp_path: Path) -> Iterator[Workspace]:
    """A copy that a test may change."""
    opened = open_home(copy_home(catalogued, tmp_path))
    yield opened
    opened.close()


@pytest.fixture
def own_source(catalogued: Path, tmp_path: Path) -> Iterator[Workspace]:
    """A copy whose source's files, in tmp_path / "source", may be changed too."""
    opened = open_home(copy_home(catalogued, tmp_path, with_source=True))
    yield opened
    opened.close()
