"""Lists that a server sends in pages."""

from collections.abc import Iterator, Mapping
from typing import Any

from framesift.http.transport import Transport


def paged(
    transport: Transport, path: str, name: str, **filters: object
) -> Iterator[Mapping[str, Any]]:
    """The entries of a list, fetched a page at a time as they are wanted.

    Args:
        transport: The server.
        path: Of the list.
        name: Of the field that holds the entries.
        **filters: Query parameters; None is left out.

    Raises:
        FramesiftServerError: The server refuses, or does not answer.
    """
    cursor: str | None = None
    while True:
        body = transport.json("GET", path, query={**filters, "cursor": cursor})
        yield from body[name]
        cursor = body.get("next")
        if cursor is None:
            return
