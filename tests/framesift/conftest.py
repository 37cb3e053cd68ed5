"""The home and the server of the API's tests, and a client of that server."""

from collections.abc import Iterator

import pytest

import framesift
from tests.api.conftest import home, server

__all__ = ["client", "home", "server"]


@pytest.fixture
def client(server: str) -> Iterator[framesift.Client]:
    """A client of the server."""
    with framesift.connect(server) as connected:
        yield connected
