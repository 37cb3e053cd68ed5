"""Copies of the catalogued home, and a server of one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.servers import serving
from tests.pipeline.homes import copy_home


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
