"""Policies: api.services.policies.service and framesift.policies."""

from collections.abc import Iterable
from typing import Protocol

from api.cli.shapes.record import Record


class Policies(Protocol):
    """See api.services.policies.service.Policies."""

    def list(self) -> Iterable[Record]: ...

    def start_due(self) -> Iterable[Record]: ...
