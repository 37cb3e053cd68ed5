"""Parquet files that no writer writes: a few kilobytes that ask their reader for gigabytes.

Source: https://parquet.apache.org/docs/file-format/metadata/ and Thrift's compact protocol
"""

import struct
from collections.abc import Sequence
from typing import Any

_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
_ZSTD = 6
_BLOCK = 128 << 10


def lying_parquet(claimed: int = 1_900_000_000) -> bytes:
    """One row whose page inflates to `claimed` bytes, while the footer says 100.

    Its two columns are text, "filename" and "a".
    """
    page = _zeros(claimed)
    header = _struct(
        (1, _I32, 0), (2, _I32, claimed), (3, _I32, len(page)),
        (5, _STRUCT, _struct((1, _I32, 1), (2, _I32, 0), (3, _I32, 3), (4, _I32, 3))),
    )  # fmt: skip
    start = 4
    size = len(header) + len(page)
    columns = []
    for name in (b"filename", b"a"):
        about = _struct(
            (1, _I32, 6), (2, _LIST, (_I32, [0])), (3, _LIST, (_BINARY, [name])), (4, _I32, _ZSTD),
            (5, _I64, 1), (6, _I64, 100), (7, _I64, size), (9, _I64, start),
        )  # fmt: skip
        columns.append(_struct((2, _I64, start), (3, _STRUCT, about)))
    leaves = [
        _struct((1, _I32, 6), (3, _I32, 0), (4, _BINARY, name), (6, _I32, 0))
        for name in (b"filename", b"a")
    ]
    schema = [_struct((4, _BINARY, b"root"), (5, _I32, 2)), *leaves]
    group = _struct((1, _LIST, (_STRUCT, columns)), (2, _I64, 100), (3, _I64, 1))
    footer = _struct(
        (1, _I32, 1), (2, _LIST, (_STRUCT, schema)), (3, _I64, 1), (4, _LIST, (_STRUCT, [group]))
    )
    return b"PAR1" + header + page + footer + struct.pack("<I", len(footer)) + b"PAR1"


def _zeros(count: int) -> bytes:
    """So many zeros, by Zstandard's repeated blocks: RFC 8878, section 3.1.1.2."""
    whole, rest = divmod(count, _BLOCK)
    blocks = _block(_BLOCK, last=False) * whole + _block(rest, last=True)
    return b"\x28\xb5\x2f\xfd" + b"\x00" + b"\x38" + blocks  # a window of 128 KiB


def _block(size: int, *, last: bool) -> bytes:
    return struct.pack("<I", size << 3 | 1 << 1 | last)[:3] + b"\x00"


def _struct(*fields: tuple[int, int, Any]) -> bytes:
    content, before = b"", 0
    for number, kind, value in fields:
        content += bytes([(number - before) << 4 | kind]) + _value(kind, value)
        before = number
    return content + b"\x00"


def _value(kind: int, value: Any) -> bytes:
    if kind in (_I32, _I64):
        return _varint(value << 1)
    if kind == _BINARY:
        return _varint(len(value)) + bytes(value)
    if kind == _LIST:
        of, values = value
        return bytes([len(values) << 4 | of]) + b"".join(_value(of, each) for each in values)
    return bytes(value)


def _varint(number: int) -> bytes:
    parts: Sequence[int] = []
    while number > 127:
        parts = [*parts, number & 127 | 128]
        number >>= 7
    return bytes([*parts, number])
