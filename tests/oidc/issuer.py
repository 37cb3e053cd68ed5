"""An issuer whose keys and tokens a test makes: what no honest provider would sign."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, Key, RSAKey

AUDIENCE = "https://framesift.example.com/api"


@dataclass
class Issuer:
    """A real HTTP server of a discovery document and keys."""

    keys: list[Key] = field(
        default_factory=lambda: [
            RSAKey.generate_key(2048, {"kid": "r1", "use": "sig"}, auto_kid=False)
        ]
    )
    document: dict[str, Any] = field(default_factory=dict)
    """Fields that differ from the right ones."""
    asked: list[str] = field(default_factory=list)
    """Paths, in their order."""
    body: bytes | None = None
    """Sent in place of every answer."""
    stalls: threading.Event = field(default_factory=threading.Event)
    """Nothing is answered until it is set, where `is_stalling`."""
    is_stalling: bool = False
    url: str = ""

    def answer(self, path: str) -> bytes:
        """The body for a path."""
        self.asked.append(path)
        if self.is_stalling:
            self.stalls.wait(300)
        if self.body is not None:
            return self.body
        if path == "/jwks":
            return json.dumps({"keys": [key.as_dict(private=False) for key in self.keys]}).encode()
        return json.dumps(
            {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/jwks",
            }
            | self.document
        ).encode()

    def claims(self, **different: Any) -> dict[str, Any]:
        """Claims of a good access token, but for those; None leaves one out."""
        now = int(time.time())
        claims = {
            "iss": self.url, "sub": "u-1", "aud": AUDIENCE, "iat": now, "exp": now + 300,
            "preferred_username": "anna", "groups": ["perception"],
        } | different  # fmt: skip
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, key: Key | None = None, alg: str = "RS256", **different: Any) -> str:
        """A token with these claims, signed by a key: the first one's where none is given."""
        key = key or self.keys[0]
        header = {"alg": alg, "kid": key.kid, "typ": "at+jwt"}
        header |= different.pop("header", {})
        header = {name: value for name, value in header.items() if value is not None}
        return jwt.encode(
            header, self.claims(**different), key, algorithms=[alg], default_type=None
        )

    def rotate(self, kid: str) -> None:
        """Have another key, and not the one before."""
        self.keys = [ECKey.generate_key("P-256", {"kid": kid, "use": "sig"}, auto_kid=False)]


@contextmanager
def issuer() -> Iterator[Issuer]:
    """One that listens on loopback until the block's end."""
    made = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = made.answer(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield made
    finally:
        made.stalls.set()
        server.shutdown()
        server.server_close()
