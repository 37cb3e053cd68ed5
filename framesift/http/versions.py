"""Versions of client and server: every one of a major number works with every other.

A newer server says more than this client reads, which is passed over. An older one lacks a route or
a field, which is an error only where it is asked for.
"""

import re
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from framesift.errors import MissingField

HEADER = "Framesift-Version"


def own_version() -> str:
    """This client's version; "0" where only its folder lies on a path."""
    try:
        return version("framesift-client")
    except PackageNotFoundError:
        return "0"


def major(text: str) -> str:
    """The number that client and server must share."""
    return text.partition(".")[0]


def is_older(server: str) -> bool:
    """Return whether a server of that version is older than this client; False without one."""
    return bool(server) and _numbers(server) < _numbers(own_version())


def difference(server: str) -> str:
    """The end of an error where a server's version is not the client's; else empty."""
    if server == own_version():
        return ""
    if not server:
        return ": the server does not say its version; is it a Framesift server?"
    help_ = ", which it may not know yet" if is_older(server) else ""
    return f": the server is of version {server}, this client of {own_version()}{help_}"


class Document(dict[str, Any]):
    """A JSON object of an answer. A field that it lacks is a MissingField where it is read."""

    __slots__ = ("server",)

    def __init__(self, fields: Mapping[str, Any], server: str) -> None:
        super().__init__(fields)
        self.server = server

    def __missing__(self, name: str) -> Any:
        """A field that there is not.

        Raises:
            MissingField: Always.
        """
        raise MissingField(f"the server's answer has no '{name}'{difference(self.server)}")


def documents_of(server: str) -> Callable[[dict[str, Any]], Document]:
    """The function that makes the objects of a server's answer from those of JSON."""
    return lambda fields: Document(fields, server)


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)[:3]]
