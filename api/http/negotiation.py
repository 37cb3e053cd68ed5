"""Chooses the format that a client wants by its header Accept (RFC 9110, 12.5.1)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

import pyarrow as pa
from fastapi import HTTPException, Request
from fastapi.responses import Response, StreamingResponse

from api.http.openapi.rows import in_rows
from api.http.sql_response import CONTENT_TYPES
from query.run.result_format import MEDIA_TYPES, Format, encoded

Figures = TypeVar("Figures")

JSON = "application/json"

ROW_TYPES = (JSON, *(kind for kind in MEDIA_TYPES if kind != JSON))
"""Media types of rows, the one that is sent to who has no wish first."""

VARY = {"Vary": "Accept"}

_BATCH_ROWS = 2_000

_PORTION_BYTES = 262_144
"""Least size of what is sent at once, but for the last."""


def row_contents(of_json: dict[str, Any], example: Mapping[str, Any]) -> dict[str, Any]:
    """The content of an answer with rows, for the OpenAPI document.

    Args:
        of_json: That of application/json.
    """
    contents: dict[str, dict[str, Any]] = {
        kind: {"schema": {"type": "string", "format": "binary"}} for kind in ROW_TYPES[1:]
    }
    as_text = in_rows([example], "csv-named")
    for kind in ("text/csv", "application/x-ndjson"):
        contents[kind]["example"] = as_text[kind]["example"]
    return {JSON: of_json, **contents}


def row_responses(each: str, example: Mapping[str, Any]) -> dict[int | str, dict[str, Any]]:
    """The answers of a route of figures, for the OpenAPI document.

    Args:
        each: What has a row of its own in other formats than JSON, such as "class".
    """
    return {
        200: {
            "description": f"The figures; in other formats than JSON a row for each {each}.",
            "content": row_contents({}, example),
        },
        406: {"description": "Accept names no format that the server has."},
    }


def wanted(accept: str, offered: Sequence[str]) -> str | None:
    """The best of the media types that are offered; None where none is accepted.

    Of several that are wanted as much it is the one that is named first, else that offered first.

    Args:
        accept: The header; everything is accepted where it is empty.
        offered: Media types, in lower case.
    """
    ranges = list(_ranges(accept)) or [("*/*", 1.0)]
    best: tuple[float, int] | None = None
    chosen = None
    for kind in offered:
        of_kind = kind.partition("/")[0] + "/*"
        index = next(
            (
                index
                for name in (kind, of_kind, "*/*")
                for index, (pattern, _) in enumerate(ranges)
                if pattern == name
            ),
            None,
        )
        if index is None or not ranges[index][1]:
            continue
        named = index if ranges[index][0] == kind else len(ranges)
        rank = (-ranges[index][1], named)
        if best is None or rank < best:
            best, chosen = rank, kind
    return chosen


def accepted(request: Request, offered: Sequence[str]) -> str:
    """The kind that `wanted` chooses for a request.

    Raises:
        HTTPException: 406, none of what is offered; it lists them.
    """
    accept = ", ".join(request.headers.getlist("accept"))
    chosen = wanted(accept, offered)
    if chosen is None:
        raise HTTPException(
            406, f"Accept: {accept[:200]}; expected one of {', '.join(offered)}", VARY
        )
    return chosen


def row_format(request: Request) -> Format:
    """The format of rows; CSV has a line of names."""
    chosen = MEDIA_TYPES[accepted(request, ROW_TYPES)]
    # Clients of Spectrum Discover want no names, and others cannot do without.
    return "csv-named" if chosen == "csv" else chosen


def rows_answer(format_: Format, rows: pa.Table, headers: dict[str, str] | None = None) -> Response:
    """Rows as an answer.

    Args:
        format_: As row_format gave it.
        headers: Of the answer, beside its own.
    """
    pieces = encoded(format_, rows.schema, rows.to_batches(_BATCH_ROWS))
    return pieces_answer(pieces, CONTENT_TYPES[format_], VARY | (headers or {}))


def pieces_answer(pieces: Iterator[bytes], media_type: str, headers: dict[str, str]) -> Response:
    """A text that is made piece by piece: whole where it is short, else streamed.

    To send a piece costs the server 0.5 ms of CPU, so several small ones go as one.
    """
    parts = _portions(pieces)
    first = next(parts, b"")
    second = next(parts, None)
    if second is None:
        return Response(first, media_type=media_type, headers=headers)
    return StreamingResponse(chain((first, second), parts), media_type=media_type, headers=headers)


def _portions(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces joined to portions of at least _PORTION_BYTES; the last may have less."""
    portion: list[bytes] = []
    size = 0
    for piece in pieces:
        portion.append(piece)
        size += len(piece)
        if size >= _PORTION_BYTES:
            yield b"".join(portion)
            portion, size = [], 0
    if portion:
        yield b"".join(portion)


def figures(
    request: Request,
    response: Response,
    work: Callable[[], Figures],
    rows: Callable[[Figures], pa.Table],
) -> Figures | Response:
    """The answer of a route of figures, in the format that Accept asks for.

    Args:
        response: The answer's headers, where it is JSON.
        work: Computes the figures.
        rows: The figures as rows, for other formats than JSON.
    """
    format_ = row_format(request)
    answer = work()
    if format_ != "json":
        return rows_answer(format_, rows(answer))
    response.headers.update(VARY)
    return answer


def _ranges(accept: str) -> Iterator[tuple[str, float]]:
    """Each media range of the header and its quality, 0 to 1."""
    for entry in accept.split(","):
        name, *parameters = (piece.strip().lower() for piece in entry.split(";"))
        if not name:
            continue
        quality = 1.0
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip() == "q":
                quality = _quality(value.strip())
        yield name, quality


def _quality(text: str) -> float:
    try:
        quality = float(text)
    except ValueError:
        return 0.0
    return quality if 0 <= quality <= 1 else 0.0
