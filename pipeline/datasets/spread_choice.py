"""The choice of 0.2.0's improvements, by which versions of that release are made again.

A frame is worth the mean of three shares, 0 to 1: of the classes that it has, how weak the model is
in them; of its camera and other slices of the report, how weak there; and how unsure the model was
of it. Of the frames that are worth most, five times as many as wanted, those are taken that are
least alike by the shares of their classes.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from catalog.lake.wide_names import FKEY_HASH
from pipeline.datasets.frame_worth import Reals, Worth, worth_of
from query.frames.sampling import Hashes
from query.sets.strata import one_stratum
from query.sets.stratifier import Stratifier
from query.sets.uncertain import most_uncertain, spread_out, standardised

_POOL = 5


def spread_choice(
    pool: pa.Table,
    pixels: Reals,
    classes: Sequence[str],
    known: Worth,
    count: int,
    per_scene: int | None,
    seed: int,
) -> Hashes:
    """fkey_hash of the frames that are taken.

    Args:
        pool: The frames: fkey_hash, scene, and the tags of slices and uncertainty.
        pixels: (C, frames) float64, of each class.
        classes: The C class tags.
        known: What the model is weak in and unsure of.
        count: How many.
        per_scene: Most of one scene; no limit when None.
        seed: Decides between frames that are worth the same.
    """
    hashes = np.asarray(pool[FKEY_HASH])
    scenes = one_stratum(pool, Stratifier("scene"), {}).codes
    few = None if per_scene is None else per_scene * _POOL
    worth = worth_of(pool, pixels, classes, known)
    best = most_uncertain(worth, scenes, hashes, count * _POOL, few, seed)
    shares = pixels[:, best] / np.maximum(pixels[:, best].sum(axis=0), 1)
    positions = spread_out(standardised(shares.T), scenes[best], count, per_scene)
    chosen: Hashes = hashes[best[positions]]
    return chosen
