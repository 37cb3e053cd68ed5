"""A request whose body was read, or that has none, for who reads it after that."""

from starlette.types import Message, Receive


def read_again(body: bytes, receive: Receive) -> Receive:
    """What gives a body, once, and then what ``receive`` gives."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again
