"""The committed set, for the tests of the generator."""

import json
from pathlib import Path

import pytest

from sample_data.regenerate import COMMITTED_COUNTS, COMMITTED_SET


@pytest.fixture(scope="session")
def committed() -> Path:
    """The root of the committed set."""
    return COMMITTED_SET


@pytest.fixture(scope="session")
def counts() -> dict[str, dict[str, int]]:
    """counts.json: label file name -> class -> pixels."""
    content: dict[str, dict[str, dict[str, int]]] = json.loads(COMMITTED_COUNTS.read_text())
    return content["frames"]


@pytest.fixture
def small_set(tmp_path: Path) -> Path:
    """A folder name that does not exist yet."""
    return tmp_path / "set"
