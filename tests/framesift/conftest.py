"""A catalogued home and a server of it, made once; copies of the home per test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.servers import serving
from tests.pipeline.homes import SAMPLE, copy_home, make_home


@pytest.fixture(scope="session")
def catalogued(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample frames catalogued; not to be changed."""
    home = tmp_path_factory.mktemp("catalogued") / "home"
    make_home(home, SAMPLE)
    return home


@pytest.fixture
def home(catalogued: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return copy_home(catalogued, tmp_path)


@pytest.fixture(scope="session")
def server(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a server."""
    copied = copy_home(catalogued, tmp_path_factory.mktemp("served"))
    with serving(copied) as (url, _):
        yield url
