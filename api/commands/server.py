"""framesift serve."""

import ipaddress
import os
import socket
import threading
from types import FrameType
from typing import Annotated

import typer

from api.settings import read_settings
from api.terminal import stdout
from api.workspace import Workspace
from catalog.errors import InvalidInput

_SHUTDOWN_S = 5


def register(app: typer.Typer) -> None:
    """Add this subject's commands."""
    app.command("serve")(serve)


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on; loopback only.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8008,
) -> None:
    """Serve the REST API: Spectrum Discover's sql_query, and Framesift's own /v1."""
    import uvicorn  # no other command needs the web framework, half a second to import

    from api.app import create_app

    class Server(uvicorn.Server):
        """Ends in time even where a query runs on, which no one can end from outside."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            """The handler of SIGTERM and SIGINT."""
            # What a request writes is committed whole or not at all, so it may be cut short.
            timer = threading.Timer(_SHUTDOWN_S + 1, os._exit, (128 + sig,))
            timer.daemon = True
            timer.start()
            super().handle_exit(sig, frame)

    _need_loopback(host)
    settings = read_settings()
    _open_once(Workspace(settings))
    listener = _listen(host, port)
    address, bound = listener.getsockname()[:2]
    shown = f"[{address}]" if ":" in address else address
    stdout.print(f"Framesift serves {settings.home} on http://{shown}:{bound}")
    # h11 keeps the case of header names, which clients of Spectrum Discover compare.
    config = uvicorn.Config(
        create_app(settings),
        http="h11",
        log_level="warning",
        timeout_graceful_shutdown=_SHUTDOWN_S,
    )
    Server(config).run(sockets=[listener])


def _open_once(workspace: Workspace) -> None:
    """Open both stores and close them: what is wrong with the home is said before anyone asks."""
    workspace.records.sources()
    workspace.catalog.snapshot()
    workspace.close()


def _need_loopback(host: str) -> None:
    """There are no users and tokens yet, so nobody but this machine may ask."""
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise InvalidInput(
            f"host {host}: without users and tokens the server listens on loopback only; "
            "give 127.0.0.1, and reach it through a proxy that knows who may ask"
        )


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
        )
    except OSError as error:
        raise InvalidInput(
            f"{host}:{port}: {error.strerror}; give another --port (0 takes a free one)"
        ) from error
