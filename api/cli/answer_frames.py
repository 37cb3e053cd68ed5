"""Frames of an answer: a home's are a table, those of a server are JSON, which knows no types."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from api.cli import destination
from api.cli.target import Answer

if TYPE_CHECKING:
    import pyarrow as pa


def columns_of(answer: Answer) -> list[str]:
    """Names of the frames' columns."""
    if destination.server() is None:
        names: list[str] = answer.to_arrow().column_names
        return names
    from framesift.selection import COLUMN_TYPES  # and with it httpx, which a home does without

    frames = answer.document["frames"]
    return list(frames[0]) if frames else [*COLUMN_TYPES, *answer.classes]


def rows_of(answer: Answer, columns: Sequence[str]) -> Sequence[Mapping[str, Any]]:
    """Some columns of the frames."""
    if destination.server() is None:
        rows: list[dict[str, Any]] = answer.to_arrow().select(columns).to_pylist()
        return rows
    return [{column: frame[column] for column in columns} for frame in answer.document["frames"]]


def table_of(answer: Answer, columns: Sequence[str]) -> "pa.Table":
    """The frames, typed as the catalog has them; some columns, or all where none is named."""
    if destination.server() is None:
        table = answer.to_arrow()
        return table.select(columns) if columns else table
    import pyarrow as pa

    from framesift.selection import COLUMN_TYPES

    frames = answer.document["frames"]
    aliases = {**COLUMN_TYPES, **dict.fromkeys(answer.classes, "int32")}
    types = {name: pa.type_for_alias(alias) for name, alias in aliases.items()}
    names = columns or columns_of(answer)
    # A newer server may have columns that this version does not know.
    new = {name: pa.infer_type([f[name] for f in frames]) for name in names if name not in types}
    schema = pa.schema([(name, (types | new)[name]) for name in names])
    return pa.Table.from_pylist(frames, schema)
