"""Frames of an answer: a home's are typed rows, a server's are JSON, which knows no types."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from api.cli import destination
from api.cli.target import Answer, home_session
from api.cli.terminal import document

if TYPE_CHECKING:
    import pyarrow as pa

    from api.services.selections import Answer as HomeAnswer
    from query.question.question import Question


def asked(question: "Question", at: int | None, columns: Sequence[str], *, only: bool) -> Answer:
    """The answer to a question.

    Args:
        columns: Tags and columns of the frames beside those that each answer has.
        only: No others need be read.
    """
    if destination.server() is not None:
        return destination.client().selections.ask(question, at=at, columns=columns)
    return home_session().selections.ask(
        question, at=at, columns=columns, only=only and bool(columns)
    )


def _of_home(_answer: Answer) -> "TypeGuard[HomeAnswer]":
    return destination.server() is None


def rows_of(answer: Answer, columns: Sequence[str]) -> Iterator[Sequence[Any]]:
    """Values of some columns, frame by frame."""
    if _of_home(answer):
        for batch in answer.rows.batches(columns):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
        return
    for frame in answer.document["frames"]:
        yield [frame[column] for column in columns]


def batches_of(
    answer: Answer, columns: Sequence[str]
) -> "tuple[pa.Schema, Iterable[pa.RecordBatch]]":
    """The frames, typed as the catalog has them; some columns, or all where none is named."""
    import pyarrow as pa

    if _of_home(answer):
        schema = answer.rows.schema
        if columns:
            schema = pa.schema([schema.field(name) for name in columns])
        return schema, answer.rows.batches(columns)
    from framesift.selection import COLUMN_TYPES

    frames = answer.document["frames"]
    aliases = {**COLUMN_TYPES, **dict.fromkeys(answer.classes, "int32")}
    types = {name: pa.type_for_alias(alias) for name, alias in aliases.items()}
    names = columns or (list(frames[0]) if frames else [*COLUMN_TYPES, *answer.classes])
    # A newer server may have columns that this version does not know.
    new = {name: pa.infer_type([f[name] for f in frames]) for name in names if name not in types}
    schema = pa.schema([(name, (types | new)[name]) for name in names])
    return schema, pa.Table.from_pylist(frames, schema).to_batches()


def json_of(answer: Answer, columns: Sequence[str]) -> Iterator[bytes]:
    """One JSON document in UTF-8; some columns of the frames, or all where none is named."""
    if _of_home(answer):
        from query.run.result_format import indented_json

        yield from indented_json(answer.about, "frames", answer.rows.batches(columns))
        return
    body: Mapping[str, Any] = answer.document
    if columns:
        frames = [{name: frame[name] for name in columns} for frame in body["frames"]]
        body = {**body, "frames": frames}
    yield json.dumps(body, indent=2, ensure_ascii=False, default=document).encode()
