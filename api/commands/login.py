"""framesift login, logout."""

import sys
from typing import Annotated

import typer

from api.places import chosen
from api.places.tokens import keep_token, token_of
from api.terminal import stdout
from catalog.errors import InvalidInput

UrlArgument = Annotated[
    str | None,
    typer.Argument(help="Such as https://framesift.example:8008; else FRAMESIFT_SERVER."),
]


def login(
    url: UrlArgument = None,
    user: Annotated[
        str | None,
        typer.Option(help="Ask for this user's password: the token it gives lasts an hour."),
    ] = None,
) -> None:
    """Keep a token for a server, so that commands with --server URL send it.

    It is asked for, or read from standard input where that is no terminal, tried, and written to a
    file that only you may read. 'framesift token create' makes one; so does a password.
    """
    from framesift import NotAuthenticated, connect, log_in

    server, settings = _server(url), chosen.settings()
    bundle = None if settings.server_ca_bundle is None else str(settings.server_ca_bundle)
    secret = _secret("Token" if user is None else "Password")
    try:
        token = secret if user is None else log_in(server, user, secret, ca_bundle=bundle)
        with connect(server, token, ca_bundle=bundle) as client:
            client.call("GET", "/auth/v1/roles")
    except NotAuthenticated as error:
        raise InvalidInput(str(error)) from error
    keep_token(settings.config, server, token)
    lasts = "" if user is None else " for an hour"
    stdout.print(f"the token for {server} is kept in {settings.config.expanduser()}{lasts}")


def logout(url: UrlArgument = None) -> None:
    """Forget the token that is kept for a server. It stays valid: 'framesift token revoke'."""
    server, folder = _server(url), chosen.settings().config
    was_kept = token_of(folder, server) is not None
    keep_token(folder, server, None)
    stdout.print(f"{'forgot the token' if was_kept else 'no token is kept'} for {server}")


def _server(url: str | None) -> str:
    server = url or chosen.server()
    if server is None:
        raise InvalidInput(
            "no server: give its URL, such as https://framesift.example:8008, or set "
            "FRAMESIFT_SERVER"
        )
    return server


def _secret(what: str) -> str:
    """What is typed, or the first line of standard input."""
    if sys.stdin.isatty():
        text = str(typer.prompt(what, hide_input=True, err=True))
    else:
        text = sys.stdin.readline()
    text = text.strip() if what == "Token" else text.rstrip("\r\n")
    if not text:
        raise InvalidInput(f"no {what.lower()}: type one, or give it on standard input")
    return text
