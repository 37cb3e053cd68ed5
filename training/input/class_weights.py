"""Weights of the classes' pixels in the loss."""

import numpy as np
import numpy.typing as npt

from pipeline.manifest import Manifest

WEIGHT_RANGE = (0.25, 8.0)
"""Limits: a class with a handful of pixels must not drown the rest."""


def catalogued_pixels(frames: Manifest) -> npt.NDArray[np.int64]:
    """(n_classes,) int64 pixels per class over all frames, as the manifest counts them."""
    total = np.zeros(len(frames.header.classes), dtype=np.int64)
    for counts in frames.frames["class_pixels"].drop_null().to_pylist():
        total[: len(counts)] += np.asarray(counts[: len(total)], dtype=np.int64)
    return total


def class_weights(pixels: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """Weights that fall with the square root of a class's share.

    Rare classes count in the mean IoU as much as the street does; weighting by the inverse share
    itself makes training unsteady.

    Args:
        pixels: (n_classes,) int64 pixels per class.

    Returns:
        (n_classes,) float32, averaging 1 over the pixels before the limits WEIGHT_RANGE;
        classes without pixels get 1.
    """
    weights = np.ones(len(pixels), dtype=np.float64)
    is_present = pixels > 0
    if is_present.any():
        share = pixels[is_present] / pixels.sum()
        raw = 1 / np.sqrt(share)
        weights[is_present] = np.clip(raw / float((raw * share).sum()), *WEIGHT_RANGE)
    return weights.astype(np.float32)
