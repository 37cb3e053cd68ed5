"""Columns of the records that hold paths: relative in the database, absolute everywhere else."""

from typing import Any

from sqlalchemy import JSON, Dialect, String
from sqlalchemy.types import TypeDecorator
from typing_extensions import override

from catalog.records.home_layout import HomeLayout


def use(dialect: Dialect, home_layout: HomeLayout | None) -> None:
    """Have an engine's paths be relative to these folders in its database."""
    dialect.framesift_places = home_layout  # type: ignore[attr-defined]  # types get nothing else


def _places(dialect: Dialect) -> HomeLayout | None:
    return getattr(dialect, "framesift_places", None)


class PathText(TypeDecorator[str]):
    """A path; in the database relative to the home's folders."""

    impl = String
    cache_ok = True

    @override
    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        home_layout = _places(dialect)
        return value if value is None or home_layout is None else home_layout.short(value)

    @override
    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        home_layout = _places(dialect)
        return value if value is None or home_layout is None else home_layout.full(value)


class PathsJson(TypeDecorator[dict[str, Any]]):
    """JSON whose texts may be paths; in the database relative to the home's folders."""

    impl = JSON
    cache_ok = True

    @override
    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        home_layout = _places(dialect)
        return value if home_layout is None else home_layout.mapped(value, home_layout.short)

    @override
    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        home_layout = _places(dialect)
        return value if home_layout is None else home_layout.mapped(value, home_layout.full)
