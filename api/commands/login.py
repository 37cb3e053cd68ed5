"""framesift login, logout."""

import sys
from typing import Annotated

import typer

from api.places.tokens import keep_token
from api.settings import read_settings
from api.terminal import stdout
from catalog.errors import InvalidInput

UrlArgument = Annotated[str, typer.Argument(help="Such as https://framesift.example:8008.")]


def register(app: typer.Typer) -> None:
    """Add this subject's commands."""
    app.command("login")(login)
    app.command("logout")(logout)


def login(url: UrlArgument) -> None:
    """Keep a token for a server, so that commands with --server URL send it.

    It is asked for, or read from standard input where that is no terminal, tried, and written to a
    file that only you may read. 'framesift token create' makes one.
    """
    from framesift import connect

    settings = read_settings()
    if sys.stdin.isatty():
        token = typer.prompt("Token", hide_input=True, err=True)
    else:
        token = sys.stdin.readline()
    token = token.strip()
    if not token:
        raise InvalidInput("no token: type one, or give it on standard input")
    bundle = settings.server_ca_bundle
    with connect(url, token, ca_bundle=None if bundle is None else str(bundle)) as client:
        client.call("GET", "/auth/v1/roles")
    keep_token(settings.config, url, token)
    stdout.print(f"the token for {url} is kept in {settings.config.expanduser()}")


def logout(url: UrlArgument) -> None:
    """Forget the token that is kept for a server. It stays valid: 'framesift token revoke'."""
    settings = read_settings()
    keep_token(settings.config, url, None)
    stdout.print(f"no token is kept for {url}")
