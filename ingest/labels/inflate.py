"""Inflating with libdeflate into a buffer that is used again.

The package `deflate` brings libdeflate, the fastest inflate there is for whole buffers (0.3 to 0.9
ms per A2D2 label; zlib needs 5 to 10), but its own functions hold Python's lock and allocate 7 MB
each time. Its library exports libdeflate's C functions, so they are called directly.

Source: libdeflate.h of libdeflate 1.x.
"""

import ctypes
import threading
from collections.abc import Callable
from functools import cache
from types import ModuleType

import deflate
import numpy as np
import numpy.typing as npt

from catalog.errors import BadFile

_OK, _BAD_DATA, _SHORT_OUTPUT, _INSUFFICIENT_SPACE = range(4)

_REASONS = {
    _BAD_DATA: "PNG is truncated or damaged: its pixels cannot be inflated",
    _SHORT_OUTPUT: "PNG is truncated: pixels that its header claims are missing",
    _INSUFFICIENT_SPACE: "PNG is damaged: it holds more pixels than its header says",
}

crc32: Callable[[memoryview], int] = deflate.crc32
"""PNG's checksum, by libdeflate."""

_local = threading.local()


def inflate(stream: bytes, size: int) -> npt.NDArray[np.uint8]:
    """A zlib stream that holds exactly ``size`` bytes, as (size,) uint8.

    The array is this thread's buffer: it is valid until the thread's next call.

    Raises:
        BadFile: The stream is damaged, or holds another number of bytes.
    """
    buffer = _buffer(size)
    # A null actual_out_nbytes_ret asks for exactly `size` bytes.
    code = _library().libdeflate_zlib_decompress(
        _decompressor(), stream, len(stream), buffer.ctypes.data, size, None
    )
    if code != _OK:
        raise BadFile(_REASONS.get(code, f"PNG cannot be inflated (libdeflate says {code})"))
    return buffer[:size]


def _buffer(size: int) -> npt.NDArray[np.uint8]:
    buffer: npt.NDArray[np.uint8] | None = getattr(_local, "buffer", None)
    if buffer is None or len(buffer) < size:
        buffer = _local.buffer = np.empty(size, dtype=np.uint8)
    return buffer


@cache
def _library() -> ctypes.CDLL:
    module: ModuleType = deflate._deflate
    library = ctypes.CDLL(str(module.__file__))
    library.libdeflate_alloc_decompressor.restype = ctypes.c_void_p
    library.libdeflate_free_decompressor.argtypes = [ctypes.c_void_p]
    library.libdeflate_free_decompressor.restype = None
    library.libdeflate_zlib_decompress.restype = ctypes.c_int
    library.libdeflate_zlib_decompress.argtypes = [
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_void_p,
    ]
    return library


class _Decompressor:
    """A thread's decompressor, freed with the thread."""

    def __init__(self) -> None:
        self.pointer = _library().libdeflate_alloc_decompressor()
        if not self.pointer:
            raise MemoryError("libdeflate cannot allocate a decompressor")

    def __del__(self) -> None:
        if self.pointer:
            _library().libdeflate_free_decompressor(self.pointer)


def _decompressor() -> int:
    decompressor: _Decompressor | None = getattr(_local, "decompressor", None)
    if decompressor is None:
        decompressor = _local.decompressor = _Decompressor()
    pointer: int = decompressor.pointer
    return pointer
