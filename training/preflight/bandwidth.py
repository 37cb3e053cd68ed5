"""Bandwidth of messages, in the figures and the table of nccl-tests.

Source: github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md (algbw, busbw), src/common.cu (the table)
"""

from collections.abc import Sequence
from dataclasses import dataclass

ELEMENT_BYTES = 4
"""Of a float32."""
_SMALLEST_BYTES = 8
_MIB = 1 << 20


@dataclass(frozen=True)
class Timing:
    """The time of one message size."""

    size_bytes: int
    seconds: float
    """Of one exchange, the mean over ranks."""
    ranks: int
    wrong: int = 0
    """Elements of the result, over all ranks, that were not the sum."""

    @property
    def algbw(self) -> float:
        """Bytes of the message for each second [GB/s]."""
        return self.size_bytes / self.seconds / 1e9

    @property
    def busbw(self) -> float:
        """Bytes that each rank's link carries for them [GB/s]; 0 for one rank."""
        return self.algbw * 2 * (self.ranks - 1) / self.ranks


def message_sizes(largest_mib: int) -> list[int]:
    """Sizes of an allreduce's messages [bytes], each twice the one before."""
    sizes, size = [], _SMALLEST_BYTES
    while size <= largest_mib * _MIB:
        sizes.append(size)
        size *= 2
    return sizes


def repetitions(first_s: float) -> int:
    """Exchanges of one size that are timed: as many as half a second has room for, 2 to 20.

    Args:
        first_s: Of one that was not timed.
    """
    return max(2, min(20, int(0.5 / max(first_s, 1e-9))))


def table_lines(timings: Sequence[Timing]) -> list[str]:
    """The table of an allreduce as nccl-tests' all_reduce_perf prints it."""
    lines = [
        "#       size         count    type   redop      time   algbw   busbw  #wrong",
        "#        (B)    (elements)                      (us)  (GB/s)  (GB/s)",
    ]
    for each in timings:
        count = each.size_bytes // ELEMENT_BYTES
        lines.append(
            f"{each.size_bytes:>12d}  {count:>12d}   float     sum  {shown_us(each.seconds):>8}"
            f"  {each.algbw:>6.2f}  {each.busbw:>6.2f}  {each.wrong:>6d}"
        )
    mean = sum(each.busbw for each in timings) / len(timings)
    lines.append(f"# Out of bounds values : {sum(each.wrong for each in timings)}")
    lines.append(f"# Avg bus bandwidth    : {mean:.4f}")
    return lines


def shown_us(seconds: float) -> str:
    """A time in microseconds, with four digits where it has no more before its point."""
    us = seconds * 1e6
    return f"{us:.2f}" if us < 100 else f"{us:.1f}" if us < 10_000 else f"{us:.0f}"


def size_text(size_bytes: int) -> str:
    """A size as people say it: 64 MB of 2^26 bytes, as nccl-tests takes -e 64M."""
    for unit, text in ((_MIB, "MB"), (1 << 10, "kB")):
        if size_bytes >= unit:
            return f"{size_bytes / unit:g} {text}"
    return f"{size_bytes} B"


def pairs_of(ranks: int, most: int = 28) -> list[tuple[int, int]]:
    """Pairs of ranks between which messages are timed: all, or the ring's where these are more.

    >>> pairs_of(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    every = [(a, b) for a in range(ranks) for b in range(a + 1, ranks)]
    return every if len(every) <= most else [(a, (a + 1) % ranks) for a in range(ranks)]
