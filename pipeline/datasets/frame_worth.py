"""The worth of a frame to a model's training, as a sum that can be told in a sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.datasets.slice_values import known_slices

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Worth:
    """A model's numbers that the worth of frames is computed from."""

    weak_classes: Mapping[str, float]
    """How weak it is in a class, by tag, 0 to 1."""
    weak_slices: Mapping[str, Mapping[str, float]]
    """How weak it is in parts of the frames, 0 to 1, by tag and the part's name
    (pipeline.datasets.slice_values).
    """
    uncertainty: str | None
    """Tag of how unsure it was of a frame; None where none was imported."""

    @property
    def knows_a_model(self) -> bool:
        """Whether anything is known of a model."""
        return bool(self.weak_classes or self.weak_slices or self.uncertainty)


def worth_of(pool: pa.Table, pixels: Reals, classes: Sequence[str], known: Worth) -> Reals:
    """(frames,) float64: how much each frame is worth, 0 to 1; 0 where nothing is known.

    Args:
        pool: The frames: columns of the slices' tags, and that of the uncertainty; a tag without
            one does not count.
        pixels: (C, frames) float64, of each class.
        classes: The C class tags.
    """
    weak = np.array([known.weak_classes.get(tag, 0.0) for tag in classes])
    # Squared: a frame that has one class never found is worth more than one with many so-so ones.
    of_classes = (weak**2) @ (pixels > 0) / max(float((weak**2).sum()), 1e-9)
    parts = [of_classes] if pixels.any() else []
    slices = weakness_of_slices(pool, known)
    if slices is not None:
        parts.append(slices)
    if known.uncertainty in pool.column_names:
        unsure = pool[known.uncertainty].cast(pa.float64())
        usual = pc.mean(unsure).as_py() or 0.0
        parts.append(pc.fill_null(unsure, usual).to_numpy())
    if not parts:
        return np.zeros(len(pool))
    mean: Reals = np.mean(parts, axis=0)
    return mean


def weakness_of_slices(pool: pa.Table, known: Worth) -> Reals | None:
    """(frames,) float64: the mean weakness in each frame's slices, 0 to 1; None where no tag is."""
    sliced = [tag for tag, of in known.weak_slices.items() if of and tag in pool.column_names]
    if not sliced:
        return None
    mean: Reals = np.mean([_weakness(pool[tag], known.weak_slices[tag]) for tag in sliced], axis=0)
    return mean


def _weakness(values: pa.ChunkedArray, weak: Mapping[str, float]) -> Reals:
    """The weakness of a model in each frame's slice; the mean where it is in none of them."""
    usual = sum(weak.values()) / len(weak)
    return np.array([weak.get(name or "", usual) for name in known_slices(values, weak)])
