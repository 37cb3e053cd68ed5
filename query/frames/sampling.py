"""Random orders that a seed decides, the same in every version and on every machine.

A frame's place is a 64-bit mix of the hash of its fkey and the seed, so that it depends on nothing
else: a larger sample holds the smaller one, and a frame that joins the catalog moves no other.
"""

import hashlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]
"""One value per frame."""

_HASHED_ROWS = 65_536

_GOLDEN = 0x9E3779B97F4A7C15


def hashes_of(fkeys: Iterable[str]) -> Hashes:
    """The fkey_hash of each fkey, as the catalog's query computes it."""
    digests = b"".join(
        hashlib.md5(fkey.encode(), usedforsecurity=False).digest()[8:] for fkey in fkeys
    )
    return np.frombuffer(digests, "<u8").astype(np.uint64)


def hashes_of_column(fkeys: pa.ChunkedArray) -> Hashes:
    """`hashes_of` a column, of which a part at a time is Python's texts."""
    starts = range(0, len(fkeys), _HASHED_ROWS)
    parts = [hashes_of(fkeys.slice(start, _HASHED_ROWS).to_pylist()) for start in starts]
    return np.concatenate([np.empty(0, np.uint64), *parts])


def random_keys(fkey_hashes: Hashes, seed: int) -> Hashes:
    """Each frame's key in the order that ``seed`` decides, spread evenly over 0 to 2^64.

    The mix is the finalizer of SplitMix64 (Steele, Lea, Flood 2014, doi:10.1145/2660193.2660195).

    Args:
        fkey_hashes: The frames' fkey_hash, uint64.
        seed: 0 or more.
    """
    start = np.uint64(_mixed_seed(seed))
    mixed = fkey_hashes ^ start
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def _mixed_seed(seed: int) -> int:
    """The seed spread over 64 bits, however large it is."""
    mask = 2**64 - 1
    mixed = 0
    while True:
        mixed = (mixed + _GOLDEN + (seed & mask)) & mask
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & mask
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & mask
        mixed ^= mixed >> 31
        seed >>= 64
        if not seed:
            return mixed


def first(order: Hashes, count: int) -> npt.NDArray[np.int64]:
    """Positions of the ``count`` frames that come first, in order; all where there are fewer."""
    if count >= len(order):
        return np.argsort(order, kind="stable")
    chosen = np.argpartition(order, count - 1)[:count] if count else np.empty(0, np.int64)
    return chosen[np.argsort(order[chosen], kind="stable")]
