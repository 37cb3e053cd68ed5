"""MD5 of many contents at once, and of those that many threads bring."""

import ctypes
import hashlib
import struct
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pipeline.cache.aligned_buffer import AlignedBuffer

_WORTH_BYTES = 2**18
"""A smaller content is not worth a lane."""

_WORTH_LANES = 3
"""Contents that are worth the vectors: these take as long as two do one after another."""

_FIRST_BYTES = 128 * 2**20
"""Without the vectors: to make their machine code takes as long as what they save on so much."""

_compiled = threading.Event()

_FULL = 32
"""Contents for which nobody waits any longer: one for each lane."""

_FULL_BYTES = 96 * 2**20
_LONGEST_WAIT_S = 0.2


def md5_of(contents: Sequence[AlignedBuffer]) -> list[str]:
    """The MD5 of each content, in hex, in their order; none is shorter than a block of MD5."""
    if len(contents) < _WORTH_LANES or sys.byteorder != "little":
        return [_alone(content) for content in contents]
    return _by_lanes(contents)


def _alone(content: AlignedBuffer) -> str:
    return hashlib.md5(content.view, usedforsecurity=False).hexdigest()


@dataclass
class _Lane:
    """One message on its way: which, where, and how many whole blocks are left."""

    content: int
    address: int
    blocks: int


def _by_lanes(contents: Sequence[AlignedBuffer]) -> list[str]:
    from pipeline.cache.md5.kernel import BLOCK_BYTES, GROUP, MOST_LANES, START, kernel

    n_lanes = GROUP if len(contents) <= GROUP else MOST_LANES
    run = kernel(n_lanes)
    _compiled.set()
    words, pointers = (ctypes.c_uint32 * (4 * n_lanes))(), (ctypes.c_void_p * n_lanes)()
    state, pointer_table = ctypes.addressof(words), ctypes.addressof(pointers)
    digests = [""] * len(contents)
    # The longest first: they decide how long it takes.
    waiting = sorted(range(len(contents)), key=lambda number: contents[number].size)
    lanes: list[_Lane | None] = [None] * n_lanes

    def begin(number: int) -> None:
        lanes[number] = None
        if waiting:
            content = waiting.pop()
            address, size = contents[content].address, contents[content].size
            lanes[number] = _Lane(content, address, size // BLOCK_BYTES)
            words[number::n_lanes] = list(START)

    for number in range(n_lanes):
        begin(number)
    while busy := [lane for lane in lanes if lane]:
        blocks = min(lane.blocks for lane in busy)
        for number, lane in enumerate(lanes):
            # A lane without a message runs along with another one's.
            pointers[number] = (lane or busy[0]).address
        run(state, pointer_table, blocks)
        for number, lane in enumerate(lanes):
            if lane is None:
                continue
            lane.blocks -= blocks
            lane.address += blocks * BLOCK_BYTES
            if not lane.blocks:
                digests[lane.content] = _ended(words[number::n_lanes], contents[lane.content])
                begin(number)
    return digests


def _ended(state: Sequence[int], content: AlignedBuffer) -> str:
    """The MD5 of a content of which the whole blocks are done."""
    from pipeline.cache.md5.kernel import BLOCK_BYTES, GROUP, kernel

    rest = bytes(content.view[content.size // BLOCK_BYTES * BLOCK_BYTES :])
    padding = bytes(-(len(rest) + 9) % BLOCK_BYTES)
    tail = rest + b"\x80" + padding + struct.pack("<Q", content.size * 8)
    message = ctypes.create_string_buffer(tail, len(tail))
    spread = b"".join(struct.pack("<I", word) * GROUP for word in state)
    words = (ctypes.c_uint32 * (4 * GROUP)).from_buffer_copy(spread)
    pointers = (ctypes.c_void_p * GROUP)(*[ctypes.addressof(message)] * GROUP)
    kernel(GROUP)(ctypes.addressof(words), ctypes.addressof(pointers), len(tail) // BLOCK_BYTES)
    return struct.pack("<4I", *words[::GROUP]).hex()


@dataclass(eq=False)
class _Waiting:
    """Content whose thread waits for its MD5, or for its turn to compute those of all."""

    content: AlignedBuffer
    wake: threading.Event = field(default_factory=threading.Event)
    md5: str = ""


class Md5Lanes:
    """Computes the MD5 of contents that many threads bring, as many together as there are.

    One of the threads that wait computes for all. It waits for more as long as files are on their
    way, at most 0.2 s.
    """

    def __init__(self) -> None:
        self._enough = threading.Condition()
        self._waiting: list[_Waiting] = []
        self._waiting_bytes = self._coming = 0
        self._is_led = False
        self._alone_bytes = 0

    @contextmanager
    def coming(self) -> Iterator[None]:
        """The block brings a content into memory, for which others may wait."""
        with self._enough:
            self._coming += 1
        try:
            yield
        finally:
            with self._enough:
                self._coming -= 1
                self._notify_if_enough()

    def md5(self, content: AlignedBuffer) -> str:
        """MD5 of a content, in hex."""
        if content.size < _WORTH_BYTES:
            return _alone(content)
        if not _compiled.is_set() and self._alone_bytes < _FIRST_BYTES:
            self._alone_bytes += content.size
            return _alone(content)
        own = _Waiting(content)
        with self._enough:
            self._waiting.append(own)
            self._waiting_bytes += content.size
            self._notify_if_enough()
            leads, self._is_led = not self._is_led, True
        if not leads:
            own.wake.wait()
            with self._enough:
                leads = own in self._waiting
        if leads:
            self._compute_for_all()
        return own.md5 or _alone(content)  # the one who computed for all may have failed

    def _compute_for_all(self) -> None:
        with self._enough:
            self._enough.wait_for(self._are_enough, _LONGEST_WAIT_S)
            together, self._waiting, self._waiting_bytes = self._waiting, [], 0
        try:
            digests = md5_of([one.content for one in together])
            for one, md5 in zip(together, digests, strict=True):
                one.md5 = md5
        finally:
            for one in together:
                one.wake.set()
            with self._enough:
                self._is_led = bool(self._waiting)
                if self._waiting:
                    self._waiting[0].wake.set()

    def _notify_if_enough(self) -> None:
        if self._are_enough():
            self._enough.notify()

    def _are_enough(self) -> bool:
        """True where no thread should wait for more contents."""
        full = len(self._waiting) >= _FULL or self._waiting_bytes >= _FULL_BYTES
        return full or not self._coming
