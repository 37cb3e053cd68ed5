"""A deflate encoder for tests that chooses at random whatever the format leaves open.

Blocks of all three kinds, codes of any shape up to 15 bits, matches at any distance that fits,
among them those that overlap themselves. Written apart from the code under test, after RFC 1950 and
1951.
"""

import zlib
from collections.abc import Sequence
from random import Random

_LENGTHS = (3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99,
            115, 131, 163, 195, 227, 258)  # fmt: skip
_DISTANCES = (1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025,
              1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577)  # fmt: skip
_CODE_ORDER = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15)

Symbol = tuple[int, int, int]
"""A symbol, its extra bits' value, and how many these are."""


class Bits:
    """Bits, the lowest of each byte first."""

    def __init__(self) -> None:
        self._value, self._count, self._done = 0, 0, bytearray()

    def put(self, value: int, count: int) -> None:
        """Append a number of ``count`` bits."""
        self._value |= value << self._count
        self._count += count
        while self._count >= 8:
            self._done.append(self._value & 255)
            self._value >>= 8
            self._count -= 8

    def put_code(self, code: tuple[int, int]) -> None:
        """Append a Huffman code (value, bits), highest bit first."""
        value, count = code
        self.put(int(f"{value:0{count}b}"[::-1], 2), count)

    def fill_byte(self) -> None:
        """Go on at a whole byte."""
        self.put(0, -self._count % 8)

    def done(self) -> bytes:
        """All bytes, the last one filled with zeros."""
        self.fill_byte()
        return bytes(self._done)


def deflated(
    raw: bytes, rng: Random, distances: Sequence[int], eager: float = 0.9, *, usual: bool = False
) -> bytes:
    """A zlib stream of ``raw``.

    Args:
        raw: What it inflates to.
        rng: Chooses.
        distances: Distances that matches are looked for at, beside random ones.
        eager: How often a match that is found is taken.
        usual: The first block is one that encoders begin with: large, with codes of its own.
    """
    bits = Bits()
    at = 0
    while True:
        usual = usual and at == 0
        size = min(len(raw) - at, 20_000 if usual else rng.choice([0, 1, 50, 700, 20_000]))
        final = at + size == len(raw)
        bits.put(final, 1)
        kind = 2 if usual else rng.choice([0, 1, 2, 2, 2, 2])
        bits.put(kind, 2)
        if kind == 0:
            bits.fill_byte()
            bits.put(size, 16)
            bits.put(size ^ 0xFFFF, 16)
            for byte in raw[at : at + size]:
                bits.put(byte, 8)
        else:
            _put_codes(bits, _symbols(raw, at, at + size, rng, distances, eager), kind, rng)
        at += size
        if final:
            return b"\x78\x9c" + bits.done() + zlib.adler32(raw).to_bytes(4, "big")


def _symbols(
    raw: bytes, at: int, end: int, rng: Random, distances: Sequence[int], eager: float
) -> list[tuple[Symbol, Symbol | None]]:
    """Literals and matches: a symbol of the first alphabet, and one of the second for a match."""
    symbols: list[tuple[Symbol, Symbol | None]] = []
    while at < end:
        distance = rng.choice([*distances, *distances, rng.randint(1, max(1, min(at, 32768)))])
        size = 0
        if distance <= min(at, 32768) and rng.random() < eager:
            most = min(end - at, rng.choice([3, 10, 258, 258]))
            while size < most and raw[at + size] == raw[at + size - distance]:
                size += 1
        if size < 3:
            symbols.append(((raw[at], 0, 0), None))
            at += 1
            continue
        at += size
        symbols.append((_length(size), _distance(distance)))
    return [*symbols, ((256, 0, 0), None)]


def _length(size: int) -> Symbol:
    if size == 258:
        return 285, 0, 0
    code = max(number for number, first in enumerate(_LENGTHS[:-1]) if first <= size)
    return 257 + code, size - _LENGTHS[code], max(0, code // 4 - 1)


def _distance(distance: int) -> Symbol:
    code = max(number for number, first in enumerate(_DISTANCES) if first <= distance)
    return code, distance - _DISTANCES[code], max(0, code // 2 - 1)


def _put_codes(
    bits: Bits, symbols: list[tuple[Symbol, Symbol | None]], kind: int, rng: Random
) -> None:
    if kind == 1:
        lengths = [8] * 144 + [9] * 112 + [7] * 24 + [8] * 8
        distance_lengths = [5] * 30
    else:
        lengths = _some_lengths([first[0] for first, _ in symbols], 286, rng)
        used = [second[0] for _, second in symbols if second is not None]
        distance_lengths = _some_lengths(used, 30, rng)
        _put_lengths(bits, lengths, distance_lengths, rng)
    codes, distance_codes = canonical(lengths), canonical(distance_lengths)
    for first, second in symbols:
        bits.put_code(codes[first[0]])
        bits.put(first[1], first[2])
        if second is not None:
            bits.put_code(distance_codes[second[0]])
            bits.put(second[1], second[2])


def _some_lengths(symbols: list[int], many: int, rng: Random) -> list[int]:
    """Lengths of a complete code for these symbols and some others; frequent ones are short."""
    counts = {symbol: symbols.count(symbol) for symbol in set(symbols)}
    for _ in range(rng.choice([0, 1, 40])):
        counts.setdefault(rng.randrange(many), 0)
    steep = rng.random() < 0.6  # frequent symbols have one bit, two, three
    leaves = [0][: len(counts)]
    while len(leaves) < len(counts):
        shallow = [depth for depth in leaves if depth < 15]
        depth = min(shallow) if len(shallow) < 20 else rng.choice(shallow)
        depth = rng.choice([depth, max(shallow)]) if len(counts) < 60 else depth
        if steep and len(leaves) < 9:
            depth = max(shallow)
        leaves.remove(depth)
        leaves += [depth + 1, depth + 1]
    lengths = [0] * many
    ordered = sorted(counts, key=lambda symbol: -counts[symbol])
    for symbol, depth in zip(ordered, sorted(leaves), strict=True):
        lengths[symbol] = max(1, depth)
    return lengths


def canonical(lengths: Sequence[int]) -> dict[int, tuple[int, int]]:
    """The code (value, bits) of each symbol that has one."""
    codes, code = {}, 0
    for length in range(1, 16):
        for symbol, own in enumerate(lengths):
            if own == length:
                codes[symbol] = (code, length)
                code += 1
        code <<= 1
    return codes


def _put_lengths(bits: Bits, lengths: list[int], distance_lengths: list[int], rng: Random) -> None:
    first = max(257, max(number for number, length in enumerate(lengths) if length) + 1)
    second = max([1, *(number + 1 for number, length in enumerate(distance_lengths) if length)])
    bits.put(first - 257, 5)
    bits.put(second - 1, 5)
    bits.put(19 - 4, 4)
    code_lengths = [4] * 13 + [5] * 6
    rng.shuffle(code_lengths)
    for symbol in _CODE_ORDER:
        bits.put(code_lengths[symbol], 3)
    codes = canonical(code_lengths)
    every = lengths[:first] + distance_lengths[:second]
    at = 0
    while at < len(every):
        again = 1
        while at + again < len(every) and every[at + again] == every[at]:
            again += 1
        if every[at] == 0 and again >= 3 and rng.random() < 0.8:
            many = min(again, 138)
            bits.put_code(codes[17 if many < 11 else 18])
            bits.put(many - (3 if many < 11 else 11), 3 if many < 11 else 7)
        elif at and every[at] == every[at - 1] and again >= 3 and rng.random() < 0.8:
            many = min(again, 6)
            bits.put_code(codes[16])
            bits.put(many - 3, 2)
        else:
            many = 1
            bits.put_code(codes[every[at]])
        at += many
