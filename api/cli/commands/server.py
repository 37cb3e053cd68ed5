"""framesift serve, and framesift mcp, which answers one program."""

import asyncio
import gc
import resource
import socket
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.options.common import open_workspace
from api.cli.terminal import stderr, stdout
from api.server.log_setup import LogFormat, LogLevel
from api.server.loopback import is_loopback
from catalog.errors import InvalidInput, not_installed
from ingest.sources.sealed_keys import check_key

if TYPE_CHECKING:
    from api.mcp.answers import ToolCaller
    from api.server.worker import Serving
    from api.workspace import Workspace

_OBJECTS = 50_000
"""Objects before a server looks for garbage: fewer than commands, which end soon."""


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 picks a free port.")] = 8008,
    no_auth: Annotated[
        bool,
        typer.Option("--no-auth", help="Disable authentication (loopback only)."),
    ] = False,
    tls_cert: Annotated[
        Path | None, typer.Option(help="PEM file of the certificate: serve HTTPS.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="PEM file of its key.")] = None,
    tls_self_signed: Annotated[
        bool,
        typer.Option("--tls-self-signed", help="Serve HTTPS by a certificate made in HOME/tls."),
    ] = False,
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="Number of server processes on the address.")
    ] = 1,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(help="Host name to answer to, beside localhost; repeatable."),
    ] = None,
    login_link: Annotated[
        bool | None,
        typer.Option(
            "--login-link/--no-login-link",
            help="Print a link that logs one browser in as the first admin; done by itself on a "
            "terminal.",
            show_default=False,
        ),
    ] = None,
    shutdown_timeout: Annotated[
        float, typer.Option(min=0, help="Time for accepted requests to finish at shutdown [s].")
    ] = 8.0,
    drain: Annotated[
        float,
        typer.Option(
            min=0, help="Time to go on serving at shutdown while /readyz answers 503 [s]."
        ),
    ] = 0.0,
    log_format: Annotated[LogFormat, typer.Option(help="Format of the log on stderr.")] = "text",
    log_level: Annotated[
        LogLevel, typer.Option(help="Level of the log; info has a line per request.")
    ] = "info",
) -> None:
    """Serve the web page and the REST API: Spectrum Discover's, and Framesift's own /v1."""
    # No other command needs the web framework, half a second to import.
    from api.server.supervisor import supervise
    from api.server.worker import Serving, serve_on
    from api.services.accounts.configured_logins import configured_logins
    from api.settings import read_settings
    from api.workspace import Workspace
    from catalog.accounts.tokens import first_token

    loopback = is_loopback(host)
    if no_auth and not loopback:
        raise InvalidInput(
            f"host {host}: with --no-auth the server listens on loopback only; leave --no-auth "
            "out and make users and tokens, or give --host 127.0.0.1"
        )
    settings = read_settings()
    workspace = Workspace(settings, on_making=stderr.print)
    certificate, key = _tls(tls_cert, tls_key, tls_self_signed, workspace.home / "tls", host)
    serving = Serving(
        settings,
        authenticates=not no_auth,
        hosts=frozenset(allowed_host or ()) if no_auth or allowed_host else None,
        certificate=certificate,
        key=key,
        log_format=log_format,
        log_level=log_level,
        drain_s=drain,
        shutdown_s=shutdown_timeout,
        workers=workers,
    )
    _check(serving)
    configured_logins(settings, authenticates=not no_auth)
    _open_once(workspace)
    _raise_open_files()
    listener = _listen(host, port)
    token = None if no_auth else first_token(workspace.records)
    address, bound = listener.getsockname()[:2]
    host_ = f"[{address}]" if ":" in address else address
    scheme = "https" if certificate is not None else "http"
    stdout.print(f"Framesift serves {settings.home} on {scheme}://{host_}:{bound}")
    if certificate is None and not loopback:
        stderr.print(
            "warning: plain HTTP beyond this machine: passwords and tokens can be read on the "
            "way; give --tls-cert and --tls-key, or --tls-self-signed"
        )
    if token is not None:
        stdout.print(
            "There are no users yet. This token of the new user 'admin' is shown once and lasts "
            f"a day:\n    {token}\nTo give admin a password: framesift user passwd admin"
        )
    if not no_auth and (stdout.is_terminal if login_link is None else login_link):
        _print_link(workspace, f"{scheme}://{host_}:{bound}")
    if workers == 1:
        gc.set_threshold(_OBJECTS)
        serve_on(serving, listener)
    else:
        supervise(serving, listener)


def _print_link(workspace: "Workspace", server: str) -> None:
    """Print a link for a browser of the user who starts the server: once, as the first admin."""
    from catalog.accounts.login_links import MINUTES, new_link

    link = new_link(workspace.records)
    if link is not None:
        stdout.print(
            f"Open the page as '{link[1]}', once within {MINUTES} minutes:\n"
            f"    {server}/login?link={link[0]}",
            soft_wrap=True,
        )


def _open_once(workspace: "Workspace") -> None:
    """Open both stores and close them: what is wrong with the home is said before anyone asks."""
    from catalog.records.sources import recorded_sources

    check_key()
    recorded_sources(workspace.records)
    workspace.catalog.snapshot()
    workspace.close()


def _tls(
    certificate: Path | None, key: Path | None, self_signed: bool, folder: Path, host: str
) -> tuple[Path | None, Path | None]:
    """The files of the server's certificate and key; None for plain HTTP."""
    if (certificate is None) != (key is None) or (self_signed and certificate is not None):
        raise InvalidInput("give --tls-cert and --tls-key together, or --tls-self-signed alone")
    if not self_signed:
        return certificate, key
    from api.server.self_signed import self_signed as made

    return made(folder, host)


def _check(serving: "Serving") -> None:
    """Read the certificate now: what is wrong with it is said in one line."""
    from api.server.worker import config_of

    try:
        config_of(serving, None).load()
    except OSError as error:  # ssl.SSLError is one
        raise InvalidInput(
            f"--tls-cert {serving.certificate}, --tls-key {serving.key}: cannot be used: "
            f"{error.strerror or error}; expected PEM files that belong together"
        ) from error


def _raise_open_files() -> None:
    """Allow as many open files as this process may have: each connection is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _listen(host: str, port: int) -> socket.socket:
    try:
        listener = socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
        )
    except OSError as error:
        raise InvalidInput(
            f"{host}:{port}: {error.strerror}; give another --port (0 takes a free one)"
        ) from error
    # Accepted sockets inherit it. Without it a small answer waits for the client's delayed
    # acknowledgement: 44 ms in place of 0.6.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def mcp() -> None:
    """Answer an assistant on standard input and output (MCP); nothing is changed.

    For a program that starts this itself. A server answers assistants at /mcp.
    """
    if find_spec("mcp") is None:
        raise not_installed("mcp, which assistants are answered by,", "mcp")
    from api.mcp.answers import ToolCaller
    from api.mcp.tools import server_of
    from api.services.session import Session

    caller = ToolCaller(Session(open_workspace()))

    async def caller_of(_: Any) -> "ToolCaller":
        return caller

    asyncio.run(server_of(caller_of).run_stdio_async())
