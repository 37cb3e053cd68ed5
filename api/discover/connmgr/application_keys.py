"""Refuses the keys that the product's applications fetch to open connections' files themselves.

There they get every connection with its keys, and what decrypts these. Here they are extractors,
which are given the files; keys leave the server for nobody.
"""

from fastapi import Response

from api.discover.replies import discover_router, failure
from api.http.rules import READ_ALL_ROWS

connections, ciphers = discover_router("connmgr"), discover_router("api/application")

_NO_KEYS = (
    "this server hands out no keys of connections: its applications are extractors that are "
    "installed on it and given the files (docs/extractors.md); GET /connmgr/v1/connections lists "
    "connections without keys"
)


@connections.get("/internal/connections", rule=READ_ALL_ROWS, refuses=True)
async def get_connections_with_keys() -> Response:
    """Refused: keys of connections are shown to nobody."""
    return _refused()


@ciphers.get("/cipherkey", rule=READ_ALL_ROWS, refuses=True)
async def get_cipher_key() -> Response:
    """Refused: nothing is handed out that this would decrypt."""
    return _refused()


def _refused() -> Response:
    return Response(failure(_NO_KEYS), 404, media_type="application/json")
