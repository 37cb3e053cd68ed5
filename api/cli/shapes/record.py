"""The JSON of a noun."""

from typing import Any, Protocol


class Record(Protocol):
    """A schema of a home's service, or a server's answer."""

    def __getitem__(self, name: str, /) -> Any: ...

    def get(self, name: str, /) -> Any: ...
