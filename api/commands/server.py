"""framesift serve."""

import ipaddress
import socket
from typing import Annotated

import typer

from api.settings import read_settings
from api.terminal import stdout
from catalog.errors import InvalidInput


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

    _need_loopback(host)
    listener = _listen(host, port)
    address, bound = listener.getsockname()[:2]
    shown = f"[{address}]" if ":" in address else address
    stdout.print(f"Framesift serves {read_settings().home} on http://{shown}:{bound}")
    # h11 keeps the case of header names, which clients of Spectrum Discover compare.
    config = uvicorn.Config(
        create_app(read_settings()), http="h11", log_level="warning", timeout_graceful_shutdown=10
    )
    uvicorn.Server(config).run(sockets=[listener])


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
