"""Protocol Buffers' messages in a file, walked by their lengths; nothing is built. A leaf.

Source: https://protobuf.dev/programming-guides/encoding
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

_MOST_FIELDS = 20_000_000
"""Of all messages of a file."""
_MOST_TEXT = 64 << 10
"""Bytes of a name or of any other text."""
_READ_WHOLE = 1 << 20
"""Bytes up to which a message is read whole: operators are, graphs and weights are walked."""
_HEAD = 20
"""Bytes of two numbers at most."""


class Malformed(ValueError):
    """Bytes that are no such message; the text says why."""


class Span(NamedTuple):
    """A part of a file that is open; one that is cut short meanwhile is an error, no signal."""

    file: int
    begin: int
    end: int

    @property
    def size(self) -> int:
        """Its length [bytes]."""
        return self.end - self.begin

    def part(self, at: int, size: int) -> "Message":
        """So many of its bytes, or where they lie if they are many."""
        begin = self.begin + at
        if size > _READ_WHOLE:
            return Span(self.file, begin, begin + size)
        content = os.pread(self.file, size, begin)
        if len(content) != size:
            raise Malformed("changed while it was read")
        return content


Message = bytes | Span
"""The bytes of a message, or where they lie."""


class Fields:
    """Reads the fields of messages, so many of a file at most: each costs a microsecond."""

    def __init__(self) -> None:
        self._left = _MOST_FIELDS

    def __call__(self, message: Message) -> Iterator[tuple[int, int | Message]]:
        """Numbers and values of the fields: a number, or the bytes of anything longer."""
        at, end = 0, size_of(message)
        while at < end:
            self._left -= 1
            if self._left < 0:
                raise Malformed(f"has more than {_MOST_FIELDS:,} names, numbers and parts")
            head = _part(message, at, min(_HEAD, end - at))
            assert isinstance(head, bytes)
            key, used = _varint(head, 0)
            number, size, used = _header(key & 7, head, used)
            at += used
            if size is None:
                yield key >> 3, number
                continue
            if size > end - at:
                raise Malformed(
                    f"is damaged or cut short: a field of {size:,} bytes, and {end - at:,} follow"
                )
            yield key >> 3, _part(message, at, size)
            at += size


def size_of(message: Message) -> int:
    """Its length [bytes]."""
    return len(message) if isinstance(message, bytes) else message.size


def _part(message: Message, at: int, size: int) -> Message:
    return message[at : at + size] if isinstance(message, bytes) else message.part(at, size)


def _header(kind: int, head: bytes, at: int) -> tuple[int, int | None, int]:
    """The number of a field, or the size of its bytes, and where its value begins."""
    if kind == 0:
        number, at = _varint(head, at)
        return number, None, at
    if kind == 2:
        size, at = _varint(head, at)
        return 0, size, at
    if kind in (1, 5):
        return 0, 8 if kind == 1 else 4, at
    raise Malformed(f"a field of kind {kind} is none")


def _varint(content: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while at < len(content) and shift < 70:
        byte = content[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7
    raise Malformed("is damaged or cut short: a number does not end")


def number_of(value: int | Message) -> int:
    """The number, signed.

    Raises:
        Malformed: It is none.
    """
    if not isinstance(value, int):
        raise Malformed("a number is bytes")
    return value - (1 << 64) if value >= 1 << 63 else value


def message_of(value: int | Message) -> Message:
    """The message.

    Raises:
        Malformed: It is a number.
    """
    if isinstance(value, int):
        raise Malformed("a message is a number")
    return value


def text_of(value: int | Message) -> str:
    """The text; bytes that are no UTF-8 are escaped.

    Raises:
        Malformed: It is none, or long.
    """
    content = message_of(value)
    if isinstance(content, Span) or len(content) > _MOST_TEXT:
        raise Malformed(f"has a name or text of {size_of(content):,} bytes; at most {_MOST_TEXT:,}")
    return content.decode("utf-8", "backslashreplace")
