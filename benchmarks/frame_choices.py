"""Ways to choose the frames that a training gets next, each a function of one pool.

`cover` and `label` are what `framesift improve` and its `--label` do; `spread` is what `improve`
did before: of five times as many frames as wanted, those that are worth most, the least alike.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.datasets.frame_worth import Worth
from pipeline.datasets.proposal import ClassPixels, Wanted, propose
from pipeline.datasets.spread_choice import spread_choice
from query.sets.coverage import cover as smallest_cover
from query.sets.coverage import packed
from query.sets.uncertain import spread_out, standardised

Ints = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pool:
    """p frames to choose from, and what is known of them and of the model."""

    drives: npt.NDArray[np.str_]
    numbers: Ints
    pixels: Ints
    """(p, C) of the labels."""
    expected: Reals
    """(p, C) pixels that the model's predictions let expect."""
    unsure: Reals
    """(p,) how unsure the model was, 0 to 1."""
    first_pixels: Ints
    """(f, C) of the frames that the model was trained on."""
    weakness: Reals
    """(C,) 1 - IoU of the validation."""
    wanted: tuple[int, ...]
    """Classes that frames are chosen for."""
    seed: int
    views: Ints | None = None
    """(p,) of each picture which view of the street it is; one for all when None."""

    @property
    def codes(self) -> Ints:
        """(p,) a number for each drive."""
        return np.unique(self.drives, return_inverse=True)[1].astype(np.int64)

    @property
    def hashes(self) -> npt.NDArray[np.uint64]:
        """(p,) a number of each frame that says nothing of it."""
        random = np.random.default_rng([self.seed, 1])
        return random.permutation(len(self.drives)).astype(np.uint64) * np.uint64(2**40)

    def table(self) -> pa.Table:
        """The columns that a choice of the product reads."""
        views = np.zeros(len(self.drives), np.int64) if self.views is None else self.views
        return pa.table(
            {
                "fkey_hash": self.hashes,
                "scene": self.drives.tolist(),
                "camera": [f"camera_{view}" for view in views.tolist()],
                "frame_number": self.numbers,
                "uncertainty": self.unsure,
            }
        )


def random(pool: Pool, count: int) -> Ints:
    """Any frames."""
    return np.random.default_rng([pool.seed, 2]).permutation(len(pool.drives))[:count]


def newest(pool: Pool, count: int) -> Ints:
    """The last ones recorded, drive by drive."""
    last_first: Ints = np.lexsort((-pool.numbers, -pool.codes))
    return last_first[:count]


def balanced(pool: Pool, count: int) -> Ints:
    """Always the frame with most pixels of the class that has the fewest so far."""
    so_far, left = pool.first_pixels.sum(axis=0), list(range(len(pool.drives)))
    taken: list[int] = []
    for _ in range(count):
        rare = int(np.argmin(np.where(pool.pixels[left].any(axis=0), so_far, np.inf)))
        best = left.pop(int(np.argmax(pool.pixels[left, rare])))
        taken.append(best)
        so_far = so_far + pool.pixels[best]
    return np.array(taken)


def spread(pool: Pool, count: int) -> Ints:
    """What `improve` did before: worth by classes and uncertainty, then unlike each other."""
    tags = [str(one) for one in range(pool.pixels.shape[1])]
    known = Worth(dict(zip(tags, pool.weakness.tolist(), strict=True)), {}, "uncertainty")
    table, pixels = pool.table(), pool.pixels.T.astype(np.float64)
    chosen = spread_choice(table, pixels, tags, known, count, None, pool.seed)
    return _positions(pool, chosen.tolist())


def cover(pool: Pool, count: int) -> Ints:
    """What `framesift improve --for` does."""
    return _proposed(pool, count, pool.pixels.astype(np.float64), predicted=False)


def pixels(pool: Pool, count: int) -> Ints:
    """As `cover`, with the pixels themselves as amounts, and not their square roots."""
    squared = pool.pixels.astype(np.float64) ** 2
    return _proposed(
        replace(pool, first_pixels=pool.first_pixels**2), count, squared, predicted=False
    )


def label(pool: Pool, count: int) -> Ints:
    """What `framesift improve --label --for` does: no label of the pool is looked at."""
    return _proposed(pool, count, pool.expected, predicted=True)


def _proposed(pool: Pool, count: int, pixels: Reals, *, predicted: bool) -> Ints:
    tags = tuple(str(one) for one in range(pixels.shape[1]))
    weak = {tags[one]: float(pool.weakness[one]) for one in pool.wanted}
    amounts = np.sqrt(pool.first_pixels).sum(axis=0).tolist()
    had = {} if predicted else dict(zip(tags, amounts, strict=True))
    wanted = Wanted(count, Worth(weak, {}, "uncertainty" if predicted else None), None, pool.seed)
    proposed = propose(pool.table(), ClassPixels(tags, pixels, predicted), had, wanted)
    return _positions(pool, [one.fkey_hash for one in proposed])


def _positions(pool: Pool, hashes: Iterable[int]) -> Ints:
    position = {one: at for at, one in enumerate(pool.hashes.tolist())}
    return np.array([position[one] for one in hashes])


CHOICES: Mapping[str, Callable[[Pool, int], Ints]] = {
    "random": random,
    "cover": cover,
    "pixels": pixels,
    "balanced": balanced,
    "spread": spread,
    "label": label,
    "newest": newest,
}


def reduced(pixels: Ints, codes: Ints, count: int, seed: int) -> Ints:
    """What `dataset reduce` keeps without a model: every class, then what is least alike."""
    hashes = np.random.default_rng([seed, 3]).permutation(len(pixels)).astype(np.uint64)
    has = pixels.T > 0
    targets = has.any(axis=1).astype(np.int64)
    every = smallest_cover(packed(iter(has), len(pixels)), hashes, targets, seed).positions
    shares = pixels / np.maximum(pixels.sum(axis=1, keepdims=True), 1)
    apart = spread_out(standardised(shares), codes, count, None)
    _, first = np.unique(np.append(every, apart), return_index=True)
    kept: Ints = np.append(every, apart)[np.sort(first)][:count]
    return kept
