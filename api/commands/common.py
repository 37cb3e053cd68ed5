"""What commands that work on a home need; the others ask api.places."""

from api.places import chosen
from api.workspace import Workspace


def open_workspace() -> Workspace:
    """The home that the environment names (FRAMESIFT_HOME).

    Raises:
        InvalidInput: A server was chosen.
    """
    return chosen.home()
