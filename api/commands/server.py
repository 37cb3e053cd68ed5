"""framesift serve."""

import ipaddress
import os
import socket
import threading
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from api.settings import read_settings
from api.terminal import stderr, stdout
from api.workspace import Workspace
from catalog.errors import InvalidInput
from catalog.first_admin import first_token

if TYPE_CHECKING:
    import uvicorn

_SHUTDOWN_S = 5


def register(app: typer.Typer) -> None:
    """Add this subject's commands."""
    app.command("serve")(serve)


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8008,
    no_auth: Annotated[
        bool,
        typer.Option("--no-auth", help="Ask nobody who they are; on loopback only."),
    ] = False,
    tls_cert: Annotated[
        Path | None, typer.Option(help="PEM file of the certificate: serve HTTPS.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="PEM file of its key.")] = None,
    tls_self_signed: Annotated[
        bool,
        typer.Option("--tls-self-signed", help="Serve HTTPS by a certificate made in HOME/tls."),
    ] = False,
) -> None:
    """Serve the REST API: Spectrum Discover's, and Framesift's own /v1."""
    import uvicorn  # no other command needs the web framework, half a second to import

    from api.app import create_app
    from api.h11_protocol import TolerantH11Protocol

    class Server(uvicorn.Server):
        """Ends in time even where a query runs on, which no one can end from outside."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            """The handler of SIGTERM and SIGINT."""
            # What a request writes is committed whole or not at all, so it may be cut short.
            timer = threading.Timer(_SHUTDOWN_S + 1, os._exit, (128 + sig,))
            timer.daemon = True
            timer.start()
            super().handle_exit(sig, frame)

    loopback = _is_loopback(host)
    if no_auth and not loopback:
        raise InvalidInput(
            f"host {host}: with --no-auth the server listens on loopback only; leave --no-auth "
            "out and make users and tokens, or give --host 127.0.0.1"
        )
    settings = read_settings()
    workspace = Workspace(settings)
    certificate, key = _tls(tls_cert, tls_key, tls_self_signed, workspace.home / "tls", host)
    # h11 keeps the case of header names, which clients of Spectrum Discover compare.
    config = uvicorn.Config(
        create_app(settings, authenticates=not no_auth),
        http=TolerantH11Protocol,
        ws="none",
        log_level="warning",
        timeout_graceful_shutdown=_SHUTDOWN_S,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    _load(config, certificate, key)
    _open_once(workspace)
    listener = _listen(host, port)
    token = None if no_auth else first_token(workspace.records)
    address, bound = listener.getsockname()[:2]
    shown = f"[{address}]" if ":" in address else address
    scheme = "https" if certificate is not None else "http"
    stdout.print(f"Framesift serves {settings.home} on {scheme}://{shown}:{bound}")
    if certificate is None and not loopback:
        stderr.print(
            "warning: plain HTTP beyond this machine: passwords and tokens can be read on the "
            "way; give --tls-cert and --tls-key, or --tls-self-signed"
        )
    if token is not None:
        stdout.print(
            "There are no users yet. This token of the new user 'admin' is shown once and lasts "
            f"a day:\n    {token}\nA password of its own: framesift user passwd admin"
        )
    Server(config).run(sockets=[listener])


def _open_once(workspace: Workspace) -> None:
    """Open both stores and close them: what is wrong with the home is said before anyone asks."""
    workspace.records.sources()
    workspace.catalog.snapshot()
    workspace.close()


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _tls(
    certificate: Path | None, key: Path | None, self_signed: bool, folder: Path, host: str
) -> tuple[Path | None, Path | None]:
    """The files of the server's certificate and key; None for plain HTTP."""
    if (certificate is None) != (key is None) or (self_signed and certificate is not None):
        raise InvalidInput("give --tls-cert and --tls-key together, or --tls-self-signed alone")
    if not self_signed:
        return certificate, key
    from api.self_signed import self_signed as made

    return made(folder, host)


def _load(config: "uvicorn.Config", certificate: Path | None, key: Path | None) -> None:
    """Read the certificate now: what is wrong with it is said in one line."""
    try:
        config.load()
    except OSError as error:  # ssl.SSLError is one
        raise InvalidInput(
            f"--tls-cert {certificate}, --tls-key {key}: cannot be used: "
            f"{error.strerror or error}; expected PEM files that belong together"
        ) from error


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
