"""A request's body: read whole, and given to who reads it after that."""

from starlette.types import Message, Receive


def read_again(body: bytes, receive: Receive) -> Receive:
    """A receive that gives a body, once, and then what ``receive`` gives."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


async def whole_body(receive: Receive) -> bytes | None:
    """A request's body; None where the client left before its end."""
    parts, more = [], True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)
