"""Memory for the contents of files, aligned as disks take it, and used again and again."""

import ctypes
import mmap
import threading
from collections.abc import Iterator
from contextlib import contextmanager

LARGEST_BYTES = 16 * 2**20
"""A larger file is not held in memory."""

ALIGNED_BYTES = 4096

_STEP_BYTES = 2**20
_ALL_BYTES = 192 * 2**20


class AlignedBuffer:
    """Memory of a fixed capacity, which begins at a page.

    Attributes:
        address: Where it begins, for code that is not Python.
        size: What of it is the content [bytes]; the owner sets it.
    """

    def __init__(self, capacity: int) -> None:
        pages = mmap.mmap(-1, capacity)
        self.memory = memoryview(pages)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
        self.size = 0

    @property
    def view(self) -> memoryview:
        """The content."""
        return self.memory[: self.size]


class Buffers:
    """The buffers of one staging: together they have at most 192 MiB.

    Memory that is new costs as much as copying into it, so buffers are kept.
    """

    def __init__(self) -> None:
        self._free: list[AlignedBuffer] = []
        self._used_bytes = 0
        self._changed = threading.Condition()

    @contextmanager
    def buffer(self, size: int) -> Iterator[AlignedBuffer]:
        """One for a content of that size, at most LARGEST_BYTES; waits until there is room."""
        capacity = max(1, -(-size // _STEP_BYTES)) * _STEP_BYTES
        with self._changed:
            self._changed.wait_for(lambda: self._used_bytes + capacity <= _ALL_BYTES)
            self._used_bytes += capacity
            fitting = [one for one in self._free if len(one.memory) == capacity]
            if fitting:
                self._free.remove(fitting[0])
            elif self._free:
                self._free.pop(0)  # of a size that is out of use
        buffer = fitting[0] if fitting else AlignedBuffer(capacity)
        buffer.size = 0
        try:
            yield buffer
        finally:
            with self._changed:
                self._used_bytes -= capacity
                self._free.append(buffer)
                self._changed.notify_all()
