"""Deflate's symbols: a stream becomes bytes in a window, and stretches that were not written.

A label is areas of one colour, and deflate writes such an area as matches at the distance of one
byte or of one pixel: "go on like this". Of the megabytes they stand for nothing is needed but where
they begin and end. So a *stretch* is noted: the bytes from its start to its end, each equal to the
one a pixel before. Its first eight bytes and its last four are written into the window; what lies
between only when a match at another distance asks for it.

A block's *near* distance is the one of these two that its codes make shorter: a row with filter Sub
has matches at the distance of a byte, one without filter at that of a pixel.

Symbols are looked up several at once: an entry of the joint table holds what the next 11 bits of
the stream say, up to three literals and all matches that follow at the near distance, and a step of
the main loop takes them without a branch, for a branch that is guessed wrong costs as much as
several steps. What does not fit an entry is decoded symbol by symbol.

A stream that is not taken to its end (it is damaged, or its first block says that hardly a match
has such a distance) is left to libdeflate, which then says what is wrong: `ingest.labels.inflate`.

Source: RFC 1951; how zlib judges codes: inftrees.c of zlib 1.3.
"""

from typing import Any

import numpy as np

from ingest.labels.words import compiled, load32, load64, move, prefetch, signed, store32, store64

PIXEL = 3
"""Bytes of a pixel."""

PADDING = 32
"""Bytes that stand behind a stream, for words are read."""

OVERHANG = 4096
"""Bytes that a window has behind the limit: a step's literals and matches, and a word."""

HISTORY = 32768
"""Largest distance of a match [bytes]."""

ORIGIN = 16
"""Index of a stream's first byte in the window."""

# What `decode` keeps from one call to the next, by place in its int64 array.
BIT, MODE, LEFT, FINAL, AT, STRETCHES, OPEN_END, NEAR, UNWRITTEN, MOVED, MOVED_BY = range(11)
STATE = 11
BETWEEN, CODES, STORED, ENDED = range(4)

_BITS = 11
"""Bits that tables are looked up by."""

_MASK = np.uint64((1 << _BITS) - 1)
_LOOK_BACK = 64
_LONGEST = 15
_MIRRORED = 320
"""Index behind the symbols at which their codes begin."""

_SLOTS = 16 + 2 * _MIRRORED
"""Index of the next symbol's position for each length of code."""

_END_OF_BLOCK, _WRONG = -1, -2
_OFTEN = 2
"""Bits of a code that stands for a quarter of the matches or more."""

# An entry of the joint table: eight times the literals (8), bits taken (8, from bit 8), bytes of
# the matches (16, from bit 16), the literals (24, from bit 32), how far the last four bytes stand
# in a pattern of eight (2, from bit 56), and where the last match's length goes on in bits beyond
# the look-up's, which a distance of one bit, 0, follows (6, from bit 58): _NOWHERE where it does
# not. 0: the next symbol does not fit.
_TURN, _WHERE = 56, 58
_NOWHERE = np.uint64(1 << 63)

_LENGTHS = np.array(
    [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131,
     163, 195, 227, 258], np.int64,
)  # fmt: skip
_LENGTH_EXTRA = np.array([max(0, n // 4 - 1) for n in range(28)] + [0], np.int64)
_DISTANCES = np.array(
    [1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537,
     2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577], np.int64,
)  # fmt: skip
_DISTANCE_EXTRA = np.array([max(0, n // 2 - 1) for n in range(30)], np.int64)
# Times one byte, or the lowest three of a word: those again and again.
_NARROW_PATTERN, _WIDE_PATTERN = np.uint64(0x0101010101010101), np.uint64(0x0001000001000001)
_PIXEL_BITS = np.uint64(0xFFFFFF)
_CODE_ORDER = np.array([16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15], np.int64)


def new_tables() -> tuple[Any, ...]:
    """Room for a block's codes: lengths, the joint table, both alphabets' tables, longer codes."""
    return (
        np.zeros(320, np.int64),
        np.zeros(2 << _BITS, np.uint64),
        np.zeros(1 << _BITS, np.int16),
        np.zeros(1 << _BITS, np.int16),
        np.zeros(_SLOTS + 16, np.int64),
        np.zeros(_SLOTS + 16, np.int64),
    )


@compiled()
def _low(word: Any, bits: int) -> Any:
    """The lowest bits of a word."""
    return signed(word & ((np.uint64(1) << np.uint64(bits)) - np.uint64(1)))


@compiled()
def _from_bit(stream: Any, bit: int) -> Any:
    """The next 57 bits or more."""
    return load64(stream, bit >> 3) >> np.uint64(bit & 7)


@compiled()
def _is_code(lengths: Any, first: int, many: int, long: Any) -> bool:
    """Count codes by length; whether zlib takes them: all bits used, or one code of one bit."""
    for index in range(16):
        long[index] = 0
    for symbol in range(first, first + many):
        long[lengths[symbol]] += 1
    long[0] = 0
    free_codes = 1
    longest = 0
    for length in range(1, _LONGEST + 1):
        free_codes = 2 * free_codes - long[length]
        if free_codes < 0:
            return False
        if long[length]:
            longest = length
    return free_codes == 0 or longest <= 1


@compiled()
def _mirrored(code: int, length: int) -> Any:
    """A code's bits as they come in the stream: the highest first."""
    code = (code & 0x5555) << 1 | code >> 1 & 0x5555
    code = (code & 0x3333) << 2 | code >> 2 & 0x3333
    code = (code & 0x0F0F) << 4 | code >> 4 & 0x0F0F
    return ((code & 0xFF) << 8 | code >> 8) >> (16 - length)


@compiled()
def _set_code(lengths: Any, first: int, many: int, bits: int, table: Any, long: Any) -> bool:
    """Fill a table of symbols by the next ``bits`` bits, and what finds those of longer codes.

    Args:
        lengths: Bits of each symbol's code; 0 for a symbol without one.
        first: Where this alphabet begins in ``lengths``.
        many: Symbols of this alphabet.
        bits: The table has 2**bits entries.
        table: int16, symbol * 16 + bits of its code; 0 where the code is longer, or there is none.
        long: int64: how many codes have 0 to 15 bits, the symbols by their codes, these codes, and
            room.

    Returns:
        Whether zlib takes such a code.
    """
    if not _is_code(lengths, first, many, long):
        return False
    slot = 16
    for length in range(1, _LONGEST + 1):
        long[_SLOTS + length] = slot
        slot += long[length]
    # Symbols without a code go where nobody looks: that is no branch to guess.
    long[_SLOTS] = 0
    for symbol in range(many):
        slot_of = np.uint64(_SLOTS + lengths[np.uint64(first + symbol)])
        place = np.uint64(long[slot_of])
        long[place] = symbol
        long[slot_of] = signed(place) + (1 if slot_of > _SLOTS else 0)
    long[0] = 0
    code, place = 0, np.uint64(16)
    table[0] = 0
    for length in range(1, _LONGEST + 1):
        code <<= 1
        # What the next bit does not change stands twice.
        half = np.uint64(1 << (length - 1))
        if length <= bits:
            for index in range(half):
                table[half + np.uint64(index)] = table[np.uint64(index)]
        for _ in range(long[length]):
            mirrored = _mirrored(code, length)
            long[place + np.uint64(_MIRRORED)] = mirrored
            if length <= bits:
                table[np.uint64(mirrored)] = long[place] << 4 | length
            place += np.uint64(1)
            code += 1
    return True


@compiled()
def _long_code(word: Any, long: Any) -> Any:
    """Symbol * 16 + bits of the code that a word begins with, bit by bit; 0 where there is none."""
    code = first = index = 0
    for length in range(1, _LONGEST + 1):
        code |= signed(word & np.uint64(1))
        word >>= np.uint64(1)
        many = long[length]
        if code - first < many:
            return long[16 + index + code - first] << 4 | length
        index += many
        first = (first + many) << 1
        code <<= 1
    return 0


@compiled()
def _matches(used_bits: int, near: int, size: int) -> Any:
    """The joint table's entry of matches alone."""
    turn = (size - 4) % PIXEL if near == PIXEL else 0
    return np.uint64(used_bits << 8 | size << 16 | turn << _TURN) | _NOWHERE


@compiled()
def _behind(entry: Any) -> Any:
    """What an entry adds to a literal's in front of it; _NOWHERE where there is no room for it."""
    moved = (entry >> np.uint64(32) & np.uint64(0xFFFF)) << np.uint64(40)
    added = (entry & ~np.uint64(0xFFFFFF << 32)) + moved
    full = entry & np.uint64(24) == 24
    return _NOWHERE if full or entry == 0 else added


@compiled()
def _moved(entry: Any, used_bits: int) -> Any:
    """What is added to an entry so that its last length goes on behind ``used_bits`` more."""
    return ~np.uint64(signed(entry) >> 63) & np.uint64(used_bits << _WHERE)


@compiled()
def _match_and(used_bits: int, near: int, size: int, rest: Any) -> Any:
    """The joint table's entry of a match, and of those at the same distance that follow it."""
    more = signed(rest >> np.uint64(16)) & 0xFFFF
    alone = _matches(used_bits, near, size)
    if near == 1:
        both = rest + np.uint64(used_bits << 8 | size << 16) + _moved(rest, used_bits)
        return alone if more == 0 or rest & np.uint64(24) else both
    used_by_both = used_bits + (signed(rest >> np.uint64(8)) & 255)
    both = _matches(used_by_both, near, size + more) & ~_NOWHERE
    both |= (rest + _moved(rest, used_bits)) & np.uint64(63 << _WHERE)
    return alone if more == 0 or rest & np.uint64(24) else both


@compiled()
def _set_length(
    bits: int, joint: Any, code: int, code_bits: int, symbol: int, near: int, near_code: int,
    near_bits: int,
) -> None:  # fmt: skip
    """Fill the joint table's entries of ``bits`` bits that begin with a length's code."""
    base = np.uint64(1 << bits)
    extra = _LENGTH_EXTRA[symbol - 257]
    size = _LENGTHS[symbol - 257]
    used_bits = code_bits + extra
    at = base + np.uint64(code)
    if used_bits >= bits:
        # In a label of runs hardly another distance is used where one bit stands for one.
        if near == 1 and near_bits == 1 and near_code == 0 and extra > 0:
            entry = _matches(used_bits + 1, near, size) & ~_NOWHERE
            entry |= np.uint64(code_bits << _WHERE)
            while at < np.uint64(2) * base:
                joint[at] = entry
                at += np.uint64(1 << code_bits)
        return
    at += np.uint64(near_code << used_bits)
    used_bits += near_bits
    if used_bits > bits:
        return
    rests = np.uint64(1 << (bits - used_bits))
    for more in range(1 << extra):
        where = at + np.uint64(more << code_bits)
        for rest in range(rests, np.uint64(2) * rests):
            joint[where] = _match_and(used_bits, near, size + more, joint[np.uint64(rest)])
            where += np.uint64(1 << used_bits)


@compiled()
def _set_entries(
    bits: int, joint: Any, long: Any, near: int, near_code: int, near_bits: int
) -> None:
    """Fill the joint table's part of entries of ``bits`` bits from those of fewer."""
    base = np.uint64(1 << bits)
    for index in range(base):
        joint[base + np.uint64(index)] = 0
    slot = np.uint64(16)
    for length in range(1, bits + 1):
        step, rests = np.uint64(1 << length), np.uint64(1 << (bits - length))
        for _ in range(long[np.uint64(length)]):
            symbol, code = long[slot], long[slot + np.uint64(_MIRRORED)]
            slot += np.uint64(1)
            if symbol < 256:
                at = base + np.uint64(code)
                alone = np.uint64(8 | length << 8 | symbol << 32)
                for rest in range(rests, np.uint64(2) * rests):
                    entry = joint[np.uint64(rest)]
                    # Bits and literals add up; where a length goes on moves.
                    joint[at] = alone + entry + _moved(entry, length)
                    at += step
            elif 256 < symbol <= 285 and near_bits:
                _set_length(bits, joint, code, length, symbol, near, near_code, near_bits)


@compiled()
def _near_code(long_distances: Any, near: int) -> Any:
    """The code of a block's near distance and its bits; 0 where there is none."""
    slot = 16
    for length in range(1, _LONGEST + 1):
        for _ in range(long_distances[length]):
            if long_distances[slot] == near - 1:
                return long_distances[slot + _MIRRORED], signed(length)
            slot += 1
    return signed(0), signed(0)


@compiled()
def _set_joint(joint: Any, long: Any, long_distances: Any, near: int) -> None:
    """Fill the joint table; what entries of n bits add to a literal stands from 2**n on.

    Of the table's own bits the entries themselves; what a shortest code leaves no room for is not
    filled.
    """
    near_code, near_bits = _near_code(long_distances, near)
    shortest = 1
    while shortest < _BITS and long[shortest] == 0:
        shortest += 1
    joint[0] = joint[1] = _NOWHERE
    for bits in range(1, _BITS - shortest + 1):
        _set_entries(bits, joint, long, near, near_code, near_bits)
        for index in range(1 << bits, 2 << bits):
            joint[np.uint64(index)] = _behind(joint[np.uint64(index)])
    _set_entries(signed(_BITS), joint, long, near, near_code, near_bits)


@compiled()
def _repetition(symbol: int, word: Any) -> Any:
    """The times that one of the symbols 16 to 18 repeats a length, and its bits for that."""
    if symbol == 16:
        return 3 + _low(word, 2), 2
    if symbol == 17:
        return 3 + _low(word, 3), 3
    return 11 + _low(word, 7), 7


@compiled()
def _read_lengths(stream: Any, bit: int, last_bit: int, many: int, lengths: Any, table: Any) -> int:
    """Read the lengths of ``many`` codes; the bit behind them, or -1."""
    done = 0
    while done < many:
        if bit > last_bit:
            return -1
        word = _from_bit(stream, bit)
        code = table[_low(word, 7)]
        if code == 0:
            return -1
        bit += code & 15
        symbol = code >> 4
        times, extra, length = 1, 0, symbol
        if symbol >= 16:
            times, extra = _repetition(symbol, word >> np.uint64(code & 15))
            if done + times > many or (symbol == 16 and done == 0):
                return -1
            length = lengths[done - 1] if symbol == 16 else 0
        bit += extra
        for _ in range(times):
            lengths[np.uint64(done)] = length
            done += 1
    return bit


@compiled()
def _dynamic_lengths(stream: Any, bit: int, last_bit: int, tables: Any) -> Any:
    """Read the codes' lengths of a block; (bit behind them, symbols, distances), or bit -1."""
    lengths, _, table, _, long, _ = tables
    word = _from_bit(stream, bit)
    symbols, distances = _low(word, 5) + 257, _low(word >> np.uint64(5), 5) + 1
    many = _low(word >> np.uint64(10), 4) + 4
    bit += 14
    for index in range(320):
        lengths[index] = 0
    for number in range(many):
        lengths[_CODE_ORDER[number]] = _low(_from_bit(stream, bit), 3)
        bit += 3
    # An incomplete code is one of zlib's codes for distances, but not here.
    complete = _set_code(lengths, signed(0), signed(19), signed(7), table, long) and not (
        table[0] == 0 or table[127] == 0
    )
    if symbols > 286 or distances > 30 or not complete:
        return -1, 0, 0
    for index in range(19):
        lengths[index] = 0
    bit = _read_lengths(stream, bit, last_bit, symbols + distances, lengths, table)
    if bit >= 0 and lengths[256] == 0:
        bit = -1
    return bit, symbols, distances


@compiled()
def _is_of_stretches(lengths: Any, symbols: int, distances: int) -> bool:
    """Return whether a quarter of a block's matches or more have a byte's or a pixel's distance."""
    near = lengths[symbols]
    if 0 < near <= _OFTEN:
        return True
    return distances > 2 and 0 < lengths[symbols + 2] <= _OFTEN


@compiled()
def _near(lengths: Any, symbols: int, distances: int) -> Any:
    """The distance of a byte or of a pixel, whichever has the shorter code."""
    byte = lengths[symbols]
    pixel = lengths[symbols + 2] if distances > 2 else 0
    return signed(PIXEL) if pixel and (byte == 0 or pixel < byte) else signed(1)


@compiled()
def _set_near(near: int, state: Any) -> None:
    """Set a block's near distance; no match of another one goes on from a stretch before it."""
    if near != state[NEAR] and state[OPEN_END] == state[AT]:
        state[OPEN_END] -= 1
    state[NEAR] = near


@compiled()
def _fixed_lengths(lengths: Any) -> None:
    """Set the lengths of the codes of a block without codes of its own."""
    for symbol in range(320):
        lengths[symbol] = 8
        if 144 <= symbol < 256:
            lengths[symbol] = 9
        elif 256 <= symbol < 280:
            lengths[symbol] = 7
        elif symbol >= 288:
            lengths[symbol] = 5


@compiled()
def _begin_codes(
    stream: Any, bit: int, last_bit: int, fixed: bool, tables: Any, state: Any
) -> bool:
    """Set the codes of a block; whether it has such."""
    lengths, joint, symbol_table, distance_table, long, long_distances = tables
    if fixed:
        _fixed_lengths(lengths)
        symbols, distances = 288, 32
    else:
        bit, symbols, distances = _dynamic_lengths(stream, bit, last_bit, tables)
        if bit < 0:
            return False
    if state[AT] == ORIGIN and not _is_of_stretches(lengths, symbols, distances):
        return False
    if not _set_code(lengths, signed(0), symbols, signed(_BITS), symbol_table, long):
        return False
    if not _set_code(lengths, symbols, distances, signed(_BITS), distance_table, long_distances):
        return False
    _set_near(_near(lengths, symbols, distances), state)
    _set_joint(joint, long, long_distances, state[NEAR])
    state[BIT], state[MODE] = bit, CODES
    return True


@compiled()
def _begin_block(stream: Any, stream_bytes: int, tables: Any, state: Any) -> Any:
    """Read a block's header; whether it is one."""
    if state[FINAL]:
        state[MODE] = ENDED
        return True
    bit = state[BIT]
    if bit + 3 > 8 * stream_bytes:
        return False
    word = _from_bit(stream, bit)
    state[FINAL] = _low(word, 1)
    kind = _low(word >> np.uint64(1), 2)
    bit += 3
    if kind == 1 or kind == 2:
        return _begin_codes(stream, bit, 8 * stream_bytes, kind == 1, tables, state)
    byte = (bit + 7) >> 3
    # What begins with bytes as they are is none of stretches.
    if kind == 3 or byte + 4 > stream_bytes or state[AT] == ORIGIN:
        return False
    word = load64(stream, byte)
    state[BIT], state[LEFT], state[MODE] = 8 * (byte + 4), _low(word, 16), STORED
    return state[LEFT] ^ _low(word >> np.uint64(16), 16) == 0xFFFF


@compiled()
def _copy_stored(stream: Any, stream_bytes: int, window: Any, limit: int, state: Any) -> bool:
    """Copy what is left of a stored block, up to the limit; whether it is there."""
    at, byte = state[AT], state[BIT] >> 3
    size = min(state[LEFT], limit - at)
    if byte + size > stream_bytes:
        return False
    for offset in range(size):
        window[at + offset] = stream[byte + offset]
    state[AT] += size
    state[BIT] += 8 * size
    state[LEFT] -= size
    if state[LEFT] == 0:
        state[MODE] = BETWEEN
    return True


@compiled()
def write_stretch(window: Any, start: int, end: int, first: int, behind: int) -> None:
    """Write the bytes of a stretch that lie from ``first`` to ``behind``, and up to seven more."""
    if end <= start or start < ORIGIN:  # none, or one of what was dropped
        return
    pixel = np.uint64(load32(window, start - 4)) >> np.uint64(8)
    pattern = pixel * _WIDE_PATTERN
    at = start + max(0, first - start) // PIXEL * PIXEL
    end = min(end, behind)
    second = ((pixel >> np.uint64(16) | pixel << np.uint64(8)) & _PIXEL_BITS) * _WIDE_PATTERN
    third = ((pixel >> np.uint64(8) | pixel << np.uint64(16)) & _PIXEL_BITS) * _WIDE_PATTERN
    while at + 24 <= end:
        store64(window, at, pattern)
        store64(window, at + 8, second)
        store64(window, at + 16, third)
        at += 24
    # Two pixels at a time; the last bytes apart, for behind them others stand.
    while at + 8 <= end:
        store64(window, at, pattern)
        at += 2 * PIXEL
    while at < end:
        window[at] = pattern & np.uint64(255)
        pattern >>= np.uint64(8)
        at += 1


@compiled(forceinline=True)
def _write_source(
    window: Any, first: int, behind: int, starts: Any, ends: Any, state: Any, stretch: int
) -> bool:
    """Write what of a match's source was not written; whether nothing unwritten is left at all."""
    unwritten = state[UNWRITTEN]
    earliest = max(unwritten, stretch - _LOOK_BACK)
    number = stretch
    while number >= earliest and ends[number] > first:
        if starts[number] < behind:
            write_stretch(window, starts[number], ends[number], first, behind)
        number -= 1
    if number < unwritten or number >= earliest:
        return False
    # So far back that looking for each match would take longer than writing everything once.
    for number in range(unwritten, stretch + 1):
        write_stretch(window, starts[number], ends[number], starts[number], ends[number])
    state[UNWRITTEN] = stretch + 1
    return True


@compiled(forceinline=True)
def _copy(window: Any, at: int, distance: int, size: int) -> None:
    """A match at any distance; up to seven bytes behind it are overwritten."""
    done = 0
    if distance < 8:
        # From there on words, for what is written is as long as one.
        reach = (7 // distance + 1) * distance
        while done < min(size, reach):
            window[at + done] = window[at + done - distance]
            done += 1
        distance = reach
    while done < size:
        store64(window, at + done, load64(window, at + done - distance))
        done += 8


@compiled()
def _match(word: Any, used_bits: int, symbol: int, distance_table: Any, long_distances: Any) -> Any:
    """A match whose length has this symbol: bits taken, size, distance; or distance _WRONG."""
    if symbol > 285:
        return 0, 0, _WRONG
    extra = _LENGTH_EXTRA[symbol - 257]
    size = _LENGTHS[symbol - 257] + _low(word >> np.uint64(used_bits), extra)
    used_bits += extra
    rest = word >> np.uint64(used_bits)
    code = distance_table[signed(rest & _MASK)]
    if code == 0:
        code = _long_code(rest, long_distances)
    symbol = code >> 4
    if code == 0 or symbol > 29:
        return 0, 0, _WRONG
    used_bits += code & 15
    extra = _DISTANCE_EXTRA[symbol]
    return used_bits + extra, size, _DISTANCES[symbol] + _low(word >> np.uint64(used_bits), extra)


@compiled()
def _one_symbol(word: Any, tables: Any) -> Any:
    """The next symbol, whatever it is; it takes 48 bits at most.

    Returns:
        The bits taken; a literal, or a match's size; and its distance, 0 for a literal,
        _END_OF_BLOCK or _WRONG.
    """
    _, _, symbol_table, distance_table, long, long_distances = tables
    code = symbol_table[signed(word & _MASK)]
    if code == 0:
        code = _long_code(word, long)
    used_bits = code & 15
    symbol = code >> 4
    if code == 0:
        return 0, 0, _WRONG
    if symbol < 256:
        return used_bits, symbol, 0
    if symbol == 256:
        return used_bits, 0, _END_OF_BLOCK
    return _match(word, used_bits, symbol, distance_table, long_distances)


@compiled()
def move_rest(window: Any, at: int, state: Any) -> None:
    """Move what a match may ask for and was left where it was when the window was moved back."""
    if state[MOVED] > ORIGIN:
        if at <= state[MOVED] + HISTORY + OVERHANG:
            move(window, ORIGIN, ORIGIN + state[MOVED_BY], state[MOVED] - ORIGIN)
        state[MOVED] = ORIGIN


@compiled(forceinline=True)
def _write_match(
    window: Any, at: int, size: int, distance: int, near: int, end: int, stretches: Any, state: Any
) -> Any:
    """Write a match that is not at the near distance; where the stretch ends that may go on."""
    starts, ends = stretches
    stretch = state[STRETCHES] - 1
    move_rest(window, at, state)
    if state[UNWRITTEN] <= stretch:
        source = at - distance
        if _write_source(window, source, source + size, starts, ends, state, stretch):
            end = -1
    _copy(window, at, distance, size)
    if distance == 1 or distance == PIXEL:
        state[STRETCHES] += 1
        starts[stretch + 1] = at + PIXEL - distance
        end = at + size
        # Not the last byte where a match at the near distance cannot go on from there.
        if distance > near:
            end -= 1
        ends[stretch + 1] = end
    return end


@compiled()
def _look_up(joint: Any, word: Any, at: int) -> Any:
    """The joint entry of the next bits; none where there is not always a byte or a pixel before."""
    return joint[signed(word & _MASK) + (1 << _BITS)] if at >= ORIGIN + 4 else np.uint64(0)


def _decoder(near: int) -> Any:
    """A compiled decoder of blocks with this near distance."""
    inside = PIXEL - near
    older, times = (24, _NARROW_PATTERN) if near == 1 else (8, _WIDE_PATTERN)

    @compiled()
    def decode_codes(
        stream: Any, stream_bytes: int, window: Any, limit: int, tables: Any, stretches: Any,
        state: Any,
    ) -> Any:  # fmt: skip
        """Decode a block's symbols, up to its end or the limit; whether all was well."""
        starts, ends = stretches
        joint = tables[1]
        at = state[AT]
        bit = state[BIT]
        last_bit = 8 * stream_bytes
        # Unsigned, so that Numba does not look for a negative one.
        stretch = np.uint64(state[STRETCHES] - 1)
        end = state[OPEN_END]
        last = load32(window, at - 4)
        entry = _look_up(joint, _from_bit(stream, bit), at)
        while at < limit and bit <= last_bit:
            word = _from_bit(stream, bit)
            used_bits = signed(entry >> np.uint64(8)) & 255
            # The distance of a match whose length comes later is near if its last bit is 0.
            ends_in = word << np.uint64(-used_bits & 63)
            if entry == 0 or signed(ends_in & ~entry) < 0:
                used, size, distance = _one_symbol(word, tables)
                bit += used
                word = _from_bit(stream, bit)
                if distance < 0 or distance > at - ORIGIN:
                    state[MODE] = BETWEEN
                    if distance != _END_OF_BLOCK:
                        return False
                    break
                if distance == 0:
                    window[at] = size
                    at += 1
                elif distance != near:
                    state[STRETCHES] = signed(stretch) + 1
                    end = _write_match(window, at, size, distance, near, end, stretches, state)
                    stretch = np.uint64(state[STRETCHES] - 1)
                    at += size
                last = load32(window, at - 4)
                if distance != near:
                    entry = _look_up(joint, word, at)
                    continue
                entry = _matches(0, near, size)
                used_bits = 0

            bit += used_bits
            following = joint[signed(word >> np.uint64(used_bits) & _MASK) + (1 << _BITS)]
            size = signed(entry >> np.uint64(16)) & 0xFFFF
            size += _low(word, used_bits) >> signed(entry >> np.uint64(_WHERE))

            # Literals; then where the matches begin and end.
            literals = entry >> np.uint64(32)
            store32(window, at, np.uint32(literals))
            both = np.uint64(last) | literals << np.uint64(32)
            before = np.uint32(both >> (entry & np.uint64(63)))
            begins = at + (signed(entry >> np.uint64(3)) & 3)
            at = begins + size
            # A line written is one fetched first, and stretches leave some out.
            prefetch(window, at + 64)
            prefetch(window, at + 128)
            prefetch(window, at + 192)
            prefetch(window, at + 256)
            some = size > 0
            pattern = np.uint64(before >> np.uint32(older)) * times
            store64(window, begins, pattern)
            turned = np.uint32(pattern)
            if near == PIXEL:
                turned = np.uint32(pattern >> (entry >> np.uint64(_TURN - 3) & np.uint64(0x18)))
            last = turned if some else before
            store32(window, at - 4, last)
            # Where the next stretch begins, if this is not its continuation.
            starts[stretch + np.uint64(1)] = begins + inside
            stretch += np.uint64(some & (end != begins))
            end = at if some else end
            ends[stretch] = end
            entry = following
        state[BIT] = bit
        state[AT] = at
        state[STRETCHES] = signed(stretch) + 1
        state[OPEN_END] = end
        return state[BIT] <= 8 * stream_bytes

    return decode_codes


_decode_narrow, _decode_wide = _decoder(1), _decoder(PIXEL)


@compiled()
def begin(state: Any, window: Any, stretches: Any) -> None:
    """Before a stream: its blocks begin behind zlib's header of two bytes."""
    starts, ends = stretches
    for number in range(STATE):
        state[number] = 0
    state[BIT], state[AT], state[OPEN_END] = 16, ORIGIN, -1
    for at in range(ORIGIN):
        window[at] = 0
    # There is always a stretch to go on with: this one ends before everything.
    state[STRETCHES] = 1
    starts[0] = ends[0] = 0


@compiled(inline="always")
def decode(
    stream: Any, stream_bytes: int, window: Any, limit: int, tables: Any, stretches: Any, state: Any
) -> bool:
    """Decode until the stream ends or the window is filled up to ``limit``, or just beyond.

    Args:
        stream: uint8, the blocks of a zlib stream from its first byte, PADDING bytes behind.
        stream_bytes: Bytes of the blocks, without padding.
        window: uint8; bytes that were decoded before ``state[AT]`` stand in front of it.
        limit: Fill the window up to here; OVERHANG bytes behind it are room as well.
        tables: Of `new_tables`.
        stretches: Starts and ends, int64 [place in the window]; room for one of every three bytes.
        state: (STATE,) int64, as `begin` sets it at first.

    Returns:
        Whether all was well; otherwise the stream is damaged, or not of stretches.
    """
    well = True
    while well and state[MODE] != ENDED and state[AT] < limit:
        if state[MODE] == BETWEEN:
            well = _begin_block(stream, stream_bytes, tables, state)
        elif state[MODE] == STORED:
            well = _copy_stored(stream, stream_bytes, window, limit, state)
        elif state[NEAR] == 1:
            well = _decode_narrow(stream, stream_bytes, window, limit, tables, stretches, state)
        else:
            well = _decode_wide(stream, stream_bytes, window, limit, tables, stretches, state)
    return well
