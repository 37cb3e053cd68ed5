"""MD5 of many contents at once: the same as of each alone."""

import hashlib
import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from pipeline.cache.aligned_buffer import LARGEST_BYTES, AlignedBuffer, Buffers
from pipeline.cache.md5 import lanes as md5_lanes
from pipeline.cache.md5.lanes import Md5Lanes, md5_of

SIZES = [64, 65, 119, 120, 127, 128, 1000, 4095, 4096, 70_001]


@contextmanager
def contents(sizes: list[int]) -> Iterator[list[AlignedBuffer]]:
    """Buffers of those sizes with drawn contents."""
    drawn, buffers = random.Random(1), Buffers()
    with ExitStack() as stack:
        taken = [stack.enter_context(buffers.buffer(size)) for size in sizes]
        for buffer, size in zip(taken, sizes, strict=True):
            buffer.memory[:size] = drawn.randbytes(size)
            buffer.size = size
        yield taken


def openssl(content: AlignedBuffer) -> str:
    """Its MD5 as OpenSSL computes it."""
    return hashlib.md5(content.view, usedforsecurity=False).hexdigest()


@pytest.mark.parametrize("count", [1, 2, 3, 16, 17, 32, 33, 70])
def test_many_at_once_have_the_md5_of_each(count: int) -> None:
    """Fewer than there are lanes, as many, and more, each of another size."""
    with contents([SIZES[n % len(SIZES)] + 64 * (n // len(SIZES)) for n in range(count)]) as some:
        assert md5_of(some) == [openssl(content) for content in some]


def test_threads_share_the_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight threads come at once, with a file on its way for which they wait: one computation."""
    together: list[int] = []
    computed = md5_lanes.md5_of

    def counted(some: list[AlignedBuffer]) -> list[str]:
        together.append(len(some))
        return computed(some)

    monkeypatch.setattr(md5_lanes, "md5_of", counted)
    monkeypatch.setattr(md5_lanes, "_FIRST_BYTES", 0)
    monkeypatch.setattr(md5_lanes, "_FULL", 8)
    monkeypatch.setattr(md5_lanes, "_LONGEST_WAIT_S", 300)
    lanes, found = Md5Lanes(), {}
    with contents([300_000 + 64 * n for n in range(8)]) as some, lanes.coming():

        def compute(number: int) -> None:
            found[number] = lanes.md5(some[number])

        threads = [threading.Thread(target=compute, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == {number: openssl(content) for number, content in enumerate(some)}
    assert together == [8]


def test_nobody_waits_where_no_file_is_coming(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lone file is computed at once."""
    monkeypatch.setattr(md5_lanes, "_FIRST_BYTES", 0)
    monkeypatch.setattr(md5_lanes, "_LONGEST_WAIT_S", 300)
    lanes = Md5Lanes()
    with contents([300_000]) as (content,):
        assert lanes.md5(content) == openssl(content)


def test_one_failure_leaves_nobody_without_an_md5(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that computes for all fails: the others' MD5 is right all the same."""
    monkeypatch.setattr(md5_lanes, "_FIRST_BYTES", 0)
    monkeypatch.setattr(md5_lanes, "_FULL", 4)
    monkeypatch.setattr(md5_lanes, "_LONGEST_WAIT_S", 300)

    def fail(_: list[AlignedBuffer]) -> list[str]:
        raise MemoryError

    monkeypatch.setattr(md5_lanes, "md5_of", fail)
    lanes, found = Md5Lanes(), []
    with contents([300_000] * 4) as some, lanes.coming():

        def compute(content: AlignedBuffer) -> None:
            try:
                found.append(lanes.md5(content))
            except MemoryError:
                found.append("failed")

        threads = [threading.Thread(target=compute, args=(content,)) for content in some]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found) == sorted(["failed", *(openssl(content) for content in some[1:])])


def test_buffers_are_bounded_and_used_again() -> None:
    """Twelve of the largest size at most; the thirteenth waits until one is given back."""
    buffers, taken = Buffers(), threading.Event()
    with ExitStack() as stack:
        for _ in range(12):
            stack.enter_context(buffers.buffer(LARGEST_BYTES))

        def take() -> None:
            with buffers.buffer(LARGEST_BYTES):
                taken.set()

        waiting = threading.Thread(target=take)
        waiting.start()
        assert not taken.wait(0.05)
        stack.close()
        assert taken.wait(300)
        waiting.join()
