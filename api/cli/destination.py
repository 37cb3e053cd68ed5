"""Chooses the server or the home that a command asks.

--server, FRAMESIFT_SERVER, FRAMESIFT_HOME, the server of 'framesift login', ~/.framesift: the first
of them that there is.
"""

import warnings
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from api.cli.default_server import default_server
from api.cli.own_machine import OWN_HOMES, refusal
from api.cli.tokens import token_of
from catalog.errors import InvalidInput

if TYPE_CHECKING:
    from api.settings import Settings
    from api.workspace import Workspace
    from framesift import Client


@dataclass(frozen=True)
class GlobalOptions:
    """The options before the command."""

    server: str | None = None
    """URL of a server; None where it is not given."""
    token: str | None = None
    """A token for it; None where it is not given."""
    command: str = ""
    """The command's first word."""


_CHOICE: ContextVar[GlobalOptions | None] = ContextVar("global_options", default=None)


def choose(options: GlobalOptions) -> None:
    """Choose by the options before the command that now runs in this process."""
    _CHOICE.set(options)


def settings() -> "Settings":
    """The settings that the environment gives."""
    # Its table of settings takes a tenth of all that --version does.
    from api.settings import read_settings

    return read_settings()


def server() -> str | None:
    """The server's URL; None where commands ask the home.

    Named for this command, else for this environment, which a home is too, else by
    ``framesift login`` or ``framesift context``.
    """
    return _named_server() or _default_server()


def _named_server() -> str | None:
    return global_options().server or settings().server


def _default_server() -> str | None:
    known = settings()
    return None if "home" in known.named else default_server(known.config)


def client() -> "Client":
    """A client of the chosen server."""
    # It imports httpx, which commands on a home do without.
    from framesift import FramesiftWarning, connect

    warnings.simplefilter("ignore", FramesiftWarning)  # commands say it in a line of their own
    known, url = settings(), server()
    assert url is not None
    bundle = known.server_ca_bundle
    return connect(url, _token(known, url), ca_bundle=None if bundle is None else str(bundle))


def home(*, makes: bool = False) -> "Workspace":
    """The home that the environment names (FRAMESIFT_HOME).

    Args:
        makes: Make its stores where there are none, and say so on the error output; otherwise
            asking for one that is not there raises NotMade.

    Raises:
        InvalidInput: A server was chosen, and this command cannot ask one.
    """
    url, command = server(), global_options().command
    if url is not None and (_named_server() or command not in OWN_HOMES):
        raise InvalidInput(refusal(command, url, is_default=_named_server() is None))
    # It imports the databases, a second that help, and commands that ask a server, do without.
    from api.workspace import Workspace

    return Workspace(settings(), on_making=tell if makes else None)


def tell(text: str) -> None:
    """Say something beside the answer, on the error output."""
    from api.cli.terminal import stderr

    stderr.print(text)


def _token(settings: "Settings", url: str) -> str | None:
    named = global_options().token
    if named is not None:
        return named
    # Of the environment's server only: a token must not go to another one that is named by hand.
    if settings.token is not None and settings.server in (None, url):
        return settings.token.text
    return token_of(settings.config, url)


def global_options() -> GlobalOptions:
    """The options before the command, or its own --server and --token."""
    return _CHOICE.get() or GlobalOptions()
