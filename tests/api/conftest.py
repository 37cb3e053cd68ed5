"""Copies of the catalogued home, and servers of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.servers import serving
from tests.pipeline.homes import copy_home


@pytest.fixture
def home(catalogued: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return copy_home(catalogued, tmp_path)


@pytest.fixture(scope="module")
def shared_home(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy for all tests of a file."""
    return copy_home(catalogued, tmp_path_factory.mktemp("shared"))


@pytest.fixture(scope="module")
def shared_url(shared_home: Path) -> Iterator[str]:
    """URL of a server of it."""
    with serving(shared_home) as (url, _):
        yield url


@pytest.fixture(scope="session")
def server(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a server."""
    copied = copy_home(catalogued, tmp_path_factory.mktemp("served"))
    with serving(copied) as (url, _):
        yield url
