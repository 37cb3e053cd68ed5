"""framesift login, logout, context."""

import sys
from typing import Annotated

import typer

from api.cli import destination
from api.cli.default_server import default_server, keep_default_server
from api.cli.terminal import JsonFlag, emit_json, stdout
from api.cli.tokens import keep_token, token_of
from catalog.errors import InvalidInput
from catalog.text.visible_text import without_user

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
    """Keep a token for a server, and let commands ask that server from now on.

    It is --token's, or asked for, or read from standard input where that is no terminal; tried, and
    written to a file that only you may read. 'framesift token create' makes one; so does a
    password.
    """
    from framesift import NotAuthenticated, connect, log_in

    server, settings = _server(url), destination.settings()
    bundle = None if settings.server_ca_bundle is None else str(settings.server_ca_bundle)
    named = destination.global_options().token
    if named is not None and user is not None:
        raise InvalidInput("--token and --user: a token needs no password; give one of them")
    secret = named or _secret("Token" if user is None else "Password")
    try:
        token = secret if user is None else log_in(server, user, secret, ca_bundle=bundle)
        with connect(server, token, ca_bundle=bundle) as client:
            client.me()
    except NotAuthenticated as error:
        raise InvalidInput(str(error)) from error
    keep_token(settings.config, server, token)
    keep_default_server(settings.config, server)
    lasts = "" if user is None else " for an hour"
    stdout.print(
        f"the token for {without_user(server)} is kept in {settings.config.expanduser()}{lasts}"
    )
    stdout.print(_default_words(server))


def logout(url: UrlArgument = None) -> None:
    """Forget the token that is kept for a server. It stays valid: 'framesift token revoke'."""
    server, folder = _server(url), destination.settings().config
    was_kept = token_of(folder, server) is not None
    keep_token(folder, server, None)
    if default_server(folder) == server:
        keep_default_server(folder, None)
    stdout.print(
        f"{'forgot the token' if was_kept else 'no token is kept'} for {without_user(server)}"
    )


def context(
    place: Annotated[
        str | None,
        typer.Argument(help="URL of a server to ask from now on, or 'home' for the home."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show or change which server or home commands use."""
    settings = destination.settings()
    if place == "home":
        keep_default_server(settings.config, None)
    elif place is not None:
        if not place.startswith(("http://", "https://")):
            raise InvalidInput(
                f"'{place}': expected https://HOST[:PORT] of a server, or the word home"
            )
        keep_default_server(settings.config, place.rstrip("/"))
    server, default = destination.server(), default_server(settings.config)
    home = str(settings.home.expanduser().absolute()) if server is None else None
    if as_json:
        emit_json({"server": server, "home": home, "default_server": default})
        return
    stdout.print(f"commands ask {f'the home {home}' if server is None else without_user(server)}")
    if default is not None and server != default:
        stdout.print(_default_words(default))


def _default_words(server: str) -> str:
    """A sentence on the default server that a login sets."""
    url = without_user(server)
    if destination.server() == server:
        return f"commands ask {url} from now on; 'framesift context home' ends that"
    return f"{url} is the default, but FRAMESIFT_SERVER or FRAMESIFT_HOME is set and comes first"


def _server(url: str | None) -> str:
    server = (url or destination.server() or "").rstrip("/")
    if not server:
        raise InvalidInput(
            "no server: give its URL, such as https://framesift.example:8008, or set "
            "FRAMESIFT_SERVER"
        )
    return server


def _secret(what: str) -> str:
    """The text that the user types, or the first line of standard input."""
    if sys.stdin.isatty():
        text = str(typer.prompt(what, hide_input=True, err=True))
    else:
        text = sys.stdin.readline()
    text = text.strip() if what == "Token" else text.rstrip("\r\n")
    if not text:
        raise InvalidInput(f"no {what.lower()}: type one, or give it on standard input")
    return text
