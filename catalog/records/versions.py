"""Versions of records: each change gives a record another (docs/decisions/0040)."""

from typing import Any
from uuid import uuid4

from sqlalchemy import String, text
from sqlalchemy.orm import Mapped, declared_attr, mapped_column


def new_version(_before: str | None = None) -> str:
    """A version that no record had before: not even one of the same name or number."""
    return uuid4().hex


class VersionedRecord:
    """A record whose every change through a session gives it another version."""

    version: Mapped[str] = mapped_column(String(32), server_default=text("''"))

    @declared_attr.directive
    def __mapper_args__(cls) -> dict[str, Any]:  # noqa: N805  # of the class, as SQLAlchemy has it
        """Have SQLAlchemy write versions, and compare them in each UPDATE and DELETE."""
        return {"version_id_col": cls.version, "version_id_generator": new_version}
