"""An answer that is made piece by piece: whole where it is short, else in portions."""

import asyncio
from collections.abc import Iterable

import pytest
from starlette.responses import StreamingResponse

from api.http.negotiation import _PORTION_BYTES, pieces_answer

HALF = b"x" * (_PORTION_BYTES // 2)


async def sent(answer: StreamingResponse) -> list[int]:
    """Size of each part."""
    return [len(part) async for part in answer.body_iterator]


@pytest.mark.parametrize("pieces", [[], [b"a"], [b"a", b"", b"bc"], [HALF, HALF]])
def test_a_short_answer_is_whole(pieces: Iterable[bytes]) -> None:
    """With its length, whatever it was made of; one of exactly a portion is short, too."""
    answer = pieces_answer(iter(pieces), "text/csv", {"Vary": "Accept"})
    assert answer.body == b"".join(pieces)
    assert answer.headers["content-length"] == str(len(answer.body))
    assert answer.headers["vary"] == "Accept"


def test_a_long_answer_comes_in_portions() -> None:
    """Small pieces are joined, a large one is not cut, and the last part is what is left."""
    pieces = [HALF, HALF, b"a", b"b", HALF * 3, b"end"]
    answer = pieces_answer(iter(pieces), "text/csv", {})
    assert isinstance(answer, StreamingResponse)
    assert asyncio.run(sent(answer)) == [len(HALF) * 2, 2 + len(HALF) * 3, 3]
