"""Attacks on whoever looks at what a server wrote down."""

import base64
import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from tests.api.servers import framesift
from tests.attacks.arena import arena
from tests.attacks.conftest import Watched


def test_a_stranger_writes_to_the_admins_terminal(home: Path, watched: Watched) -> None:
    """Escape sequences and line feeds in paths, names and headers: audit and log show them."""
    with arena(home) as server, watched(server):
        address = urlsplit(server.url)
        for path in (
            "/v1/users/%1b]52;c;cm0gLXJmIH4=%07",
            "/v1/users/x%0a2026-01-01%20admin%20deleted%20everything",
            "/v1/users/%c2%9b2J%e2%80%ae%7f",
        ):
            with socket.create_connection((str(address.hostname), address.port or 0), 60) as client:
                head = f"DELETE {path} HTTP/1.1\r\nHost: {address.netloc}\r\nConnection: close\r\n"
                client.sendall(f"{head}Authorization: Bearer fs_guessed\r\n\r\n".encode())
                while client.recv(4096):
                    pass
        name = base64.b64encode(b"\x1b]52;c;eA==\x07\nadmin:x").decode()
        with httpx.Client(base_url=server.url, timeout=60) as stranger:
            stranger.get("/auth/v1/token", headers={"Authorization": f"Basic {name}"})
    run = framesift(home, "audit")
    assert run.returncode == 0, run.stderr
    assert "]52;c;" in run.stdout
    lines = run.stdout.splitlines()
    assert all(line.isprintable() for line in lines), lines
    assert not any(line.startswith("2026-01-01") for line in lines)
    assert all(line.rstrip("\n").isprintable() for line in server.log)
