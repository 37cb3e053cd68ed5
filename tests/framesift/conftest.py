"""The catalogued home and the server of the API's tests."""

from tests.api.conftest import catalogued, home, server

__all__ = ["catalogued", "home", "server"]
