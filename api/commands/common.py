"""What every command needs."""

from api.settings import read_settings
from api.workspace import Workspace


def open_workspace() -> Workspace:
    """The home that the environment names (FRAMESIFT_HOME)."""
    return Workspace(read_settings())
