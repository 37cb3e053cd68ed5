"""Which frame goes to which split, whole groups staying on one side."""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

from catalog.errors import InvalidInput

GROUPINGS = ("scene", "camera", "frame")

# Fraction alone would also take 1e999999999 and count for minutes.
_SHARE = re.compile(r"\d{1,9}(\.\d{0,9})?|\.\d{1,9}|\d{1,9}/\d{1,9}", re.ASCII)


def parse_split(text: str) -> dict[str, Fraction]:
    """Shares per split, from ``train=0.8,validation=0.2``.

    Raises:
        InvalidInput: Not written so, a name twice, or the shares do not sum to 1.
    """
    shares: dict[str, Fraction] = {}
    for part in text.split(","):
        name, sign, share = (piece.strip() for piece in part.partition("="))
        value = _share(share)
        if not sign or not name.isidentifier() or value <= 0 or name in shares:
            raise InvalidInput(
                f"split '{text}': expected names with shares above 0, each once, such as "
                "train=0.8,validation=0.2"
            )
        shares[name] = value
    if sum(shares.values()) != 1:
        raise InvalidInput(
            f"split '{text}': the shares sum to {float(sum(shares.values())):g}, not 1"
        )
    return shares


def _share(text: str) -> Fraction:
    """The share; 0 where the text is none."""
    try:
        return Fraction(text) if _SHARE.fullmatch(text) else Fraction(0)
    except ZeroDivisionError:
        return Fraction(0)


def assign_splits(groups: Sequence[str], shares: Mapping[str, Fraction], seed: int) -> list[str]:
    """The split of each item, so that items of one group share it.

    Groups are taken in an order that the seed decides, the largest first, and each goes to the
    split that is furthest below its share; so shares are met as well as whole groups allow.

    Args:
        groups: Group of each item, such as its scene.
        shares: Wanted share of each split (sums to 1).
        seed: Decides between groups of equal size.

    Raises:
        InvalidInput: There are fewer groups than splits, so one would stay empty.
    """
    sizes = Counter(groups)
    if len(sizes) < len(shares):
        raise InvalidInput(
            f"{len(sizes)} groups cannot be divided among {len(shares)} splits "
            f"({', '.join(shares)}): choose more frames, or divide by frame (--split-by frame)"
        )
    total = len(groups)
    held: Counter[str] = Counter()
    split_of: dict[str, str] = {}
    left = len(sizes)
    for group in sorted(sizes, key=lambda name: (-sizes[name], _shuffled(name, seed))):
        empty = [name for name in shares if not held[name]]
        # Keep a group for every split that has none yet.
        candidates = empty if len(empty) == left else list(shares)
        split = max(candidates, key=lambda name: shares[name] * total - held[name])
        split_of[group] = split
        held[split] += sizes[group]
        left -= 1
    return [split_of[group] for group in groups]


def _shuffled(name: str, seed: int) -> str:
    return hashlib.sha256(f"{seed}:{name}".encode()).hexdigest()
