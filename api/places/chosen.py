"""Which place a command asks: the server that --server or FRAMESIFT_SERVER names, else the home."""

import warnings
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from api.places.own_machine import refusal
from api.places.tokens import token_of
from catalog.errors import InvalidInput

if TYPE_CHECKING:
    from api.settings import Settings
    from api.workspace import Workspace
    from framesift import Client


@dataclass(frozen=True)
class Given:
    """What stands before the command.

    Attributes:
        server: URL of a server; None where it is not given.
        token: A token for it; None where it is not given.
        command: The command's first word.
    """

    server: str | None = None
    token: str | None = None
    command: str = ""


_CHOICE: ContextVar[Given | None] = ContextVar("given", default=None)


def choose(given: Given) -> None:
    """What stands before the command that now runs in this process."""
    _CHOICE.set(given)


def settings() -> "Settings":
    """What the environment says.

    Raises:
        InvalidInput: A variable's value cannot be used; the message names it.
    """
    # It imports pydantic_settings, which takes longer than all that --version does.
    from api.settings import read_settings

    return read_settings()


def server() -> str | None:
    """The server's URL; None where commands ask the home."""
    return _given().server or settings().server


def client() -> "Client":
    """A client of the chosen server.

    Raises:
        StorageError: The file of tokens cannot be read.
        InvalidInput: Other users may read it.
    """
    # It imports httpx, which commands on a home do without.
    from framesift import FramesiftWarning, connect

    warnings.simplefilter("ignore", FramesiftWarning)  # commands say it in a line of their own
    given, url = settings(), server()
    assert url is not None
    bundle = given.server_ca_bundle
    return connect(url, _token(given, url), ca_bundle=None if bundle is None else str(bundle))


def home() -> "Workspace":
    """The home that the environment names (FRAMESIFT_HOME).

    Raises:
        InvalidInput: A server was chosen, and this command cannot ask one.
    """
    url = server()
    if url is not None:
        raise InvalidInput(refusal(_given().command, url))
    # It imports the databases, a second that help, and commands that ask a server, do without.
    from api.workspace import Workspace

    return Workspace(settings())


def _token(settings: "Settings", url: str) -> str | None:
    given = _given().token
    if given is not None:
        return given
    # Of the environment's server only: a token must not go to another one that is named by hand.
    if settings.token is not None and settings.server in (None, url):
        return settings.token.get_secret_value()
    return token_of(settings.config, url)


def _given() -> Given:
    return _CHOICE.get() or Given()
