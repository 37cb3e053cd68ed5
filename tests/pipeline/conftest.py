"""A catalogued home, made once and copied per test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from api.workspace import Workspace
from tests.pipeline.homes import SAMPLE, copy_home, make_home, open_home


@pytest.fixture(scope="session")
def catalogued(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample frames catalogued; not to be changed."""
    home = tmp_path_factory.mktemp("catalogued") / "home"
    make_home(home, SAMPLE)
    return home


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
