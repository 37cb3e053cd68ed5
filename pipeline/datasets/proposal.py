"""The frames proposed to a model's training: those that cover what it is weak in, with reasons.

A frame's amount of a class is the square root of its pixels, so that four small objects in four
frames count more than a large one. Labels say the pixels; of a frame without a label, the model's
prediction and its confusions say what to expect.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog.lake.wide_names import FKEY_HASH
from pipeline.datasets.frame_worth import Reals, Worth, weakness_of_slices
from query.frames.sampling import random_keys
from query.sets.lacking import Offered, cover_lacking
from query.sets.leakage_guard import FRAMES_PER_S
from query.sets.strata import one_stratum
from query.sets.stratifier import Stratifier


@dataclass(frozen=True)
class ClassPixels:
    """Pixels of classes in n frames."""

    tags: tuple[str, ...]
    """C class tags."""
    pixels: Reals
    """(n, C) float64."""
    predicted: bool = False
    """They are expected by a model's prediction, and no label's."""


@dataclass(frozen=True)
class ProposedFrame:
    """A frame that a model lacks, and why."""

    fkey_hash: int
    pixels: Mapping[str, int] = field(default_factory=dict)
    """Of the classes that it was chosen for, by tag, the most first; those that it has."""
    predicted: bool = False
    """The pixels are expected by the model's prediction."""
    uncertainty: float | None = None
    """How unsure the model was of it, 0 to 1; None where nobody knows."""

    @property
    def reason(self) -> str:
        """Why, in words."""
        seen = ", ".join(f"{pixels:,} pixels of {tag}" for tag, pixels in self.pixels.items())
        parts = [f"{'predicted' if self.predicted else 'labelled'} {seen}"] if seen else []
        if self.uncertainty is not None:
            parts.append(f"{100 * self.uncertainty:.0f} % uncertain")
        return ", ".join(parts) or "unlike the frames chosen before it"


@dataclass(frozen=True)
class Wanted:
    """How many frames, and by what they are chosen."""

    frames: int
    known: Worth
    """What the model is weak in and unsure of; the classes that frames are chosen for."""
    per_scene: int | None
    """Most of one scene."""
    seed: int
    """Decides between frames of equal value."""


def propose(
    pool: pa.Table, classes: ClassPixels, had: Mapping[str, float], wanted: Wanted
) -> list[ProposedFrame]:
    """The frames that are taken, in that order; fewer than wanted where no other adds anything.

    Args:
        pool: The frames: fkey_hash, scene, camera, frame_number, and the tags of slices and
            uncertainty that there are.
        classes: Of these frames.
        had: The amount of each class that the training set has, by tag.
        wanted: How many, and what the model is weak in.
    """
    hashes = np.asarray(pool[FKEY_HASH])
    weights, amounts = _weighted(classes, wanted.known)
    scenes = one_stratum(pool, Stratifier("scene"), {}).codes
    cameras = one_stratum(pool, Stratifier("camera"), {}).codes
    numbers = pc.fill_null(pool["frame_number"].cast(pa.float64()), np.nan).to_numpy()
    unsure = _uncertainty(pool, wanted.known)
    offered = Offered(
        amounts,
        _worth(pool, wanted.known, unsure),
        scenes * (int(cameras.max(initial=0)) + 1) + cameras,
        numbers / FRAMES_PER_S,
        scenes,
        random_keys(hashes, wanted.seed),
    )
    known = np.array([had.get(tag, 0.0) for tag in classes.tags] or [0.0])
    covered = cover_lacking(offered, weights, known, wanted.frames, wanted.per_scene)
    shown = [column for column in np.argsort(-weights) if classes.tags and weights[column] > 0]
    return [
        ProposedFrame(
            int(hashes[position]),
            _most_first(classes, shown, position),
            classes.predicted,
            None if np.isnan(unsure[position]) else round(float(unsure[position]), 4),
        )
        for position in covered.positions.tolist()
    ]


_MOST_TOLD = 3
"""Classes that a reason names."""


def _most_first(classes: ClassPixels, shown: Sequence[int], position: int) -> dict[str, int]:
    pixels = [(classes.tags[column], round(classes.pixels[position, column])) for column in shown]
    told = sorted((one for one in pixels if one[1] > 0), key=lambda one: -one[1])
    return dict(told[:_MOST_TOLD])


def _weighted(classes: ClassPixels, known: Worth) -> tuple[Reals, Reals]:
    """(C,) weights and (n, C) amounts; one amount for all where nobody knows their classes."""
    weak = [known.weak_classes.get(tag, 0.0) for tag in classes.tags]
    weights = np.square(np.array(weak, np.float64))
    if not len(weights) or (classes.predicted and not (classes.pixels @ weights).any()):
        shape = (len(classes.pixels), max(len(weights), 1))
        return np.ones(shape[1]), np.ones(shape)
    return weights, np.sqrt(classes.pixels)


def _uncertainty(pool: pa.Table, known: Worth) -> Reals:
    """(n,) float64: how unsure the model was, 0 to 1; NaN where nobody knows."""
    if known.uncertainty not in pool.column_names:
        return np.full(len(pool), np.nan)
    unsure = pc.fill_null(pool[known.uncertainty].cast(pa.float64()), np.nan)
    return np.asarray(unsure.to_numpy())


def _worth(pool: pa.Table, known: Worth, unsure: Reals) -> Reals:
    """(n,) float64 above 0: weakness in the frame's slices and uncertainty, 1 as usual."""
    worth = np.ones(len(pool))
    slices = weakness_of_slices(pool, known)
    for part in (slices, unsure):
        if part is None or np.isnan(part).all():
            continue
        usual = float(np.nanmean(part))
        if usual > 0:
            worth *= np.maximum(np.nan_to_num(part, nan=usual) / usual, 1e-6)
    return worth
