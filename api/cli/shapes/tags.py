"""Tags and tag families: api.services.tags and framesift.tags."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from api.cli.shapes.record import Record

if TYPE_CHECKING:
    from ingest.imports.options import Key


class Tags(Protocol):
    """See api.services.tags.Tags."""

    def list(self, *, at: int | None = None) -> Iterable[Record]: ...

    def add(
        self,
        name: str,
        type: str = "text",  # noqa: A002
        *,
        kind: str | None = None,
        values: Sequence[str] = (),
        family: str | None = None,
    ) -> Record: ...

    def set(self, tag: str, kind: str, *, values: Sequence[str] = ()) -> Record: ...

    def mark(self, fkeys: Sequence[str], values: Mapping[str, str]) -> Record: ...

    def remove(self, tag: str) -> Record: ...

    def values(self, tag: str, *, at: int | None = None, limit: int = 100) -> Record: ...

    def families(self) -> Iterable[Record]: ...

    def drop(self, family: str) -> Record: ...

    def import_scores(self, job: str) -> Record: ...

    def import_values(
        self,
        file: Path,
        family: str,
        *,
        key: "Key | None" = None,
        key_column: str | None = None,
        type: Sequence[str] = (),  # noqa: A002
        prefix: str = "",
        datasource: str | None = None,
    ) -> Record: ...
