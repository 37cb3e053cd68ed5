"""A classifier of pixels by features of a frozen network: a second of one core for a training.

Two hidden layers over the features of benchmarks.pretrained_features, in NumPy, by Adam with
decoupled weight decay and a cosine rate. Pixels are drawn by the square root of what they count,
and weighted by it, so that rare classes are in each batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from training.input.class_weights import class_weights

BATCH = 1024
WARM_UP_STEPS = 20
_HIDDEN = 64
_DECAY = 0.01

Floats = npt.NDArray[np.floating[Any]]
Weights = list[Floats]


@dataclass(frozen=True)
class Scale:
    """What features are brought to about one size by."""

    mean: Floats
    """(F,)."""
    spread: Floats
    """(F,) above 0."""

    def __call__(self, features: npt.NDArray[np.float16]) -> Floats:
        """Features (m, F) at that size."""
        scaled: Floats = (features.astype(np.float32) - self.mean) / self.spread
        return scaled


@dataclass(frozen=True)
class Pixels:
    """m labelled pixels to learn from."""

    features: npt.NDArray[np.float16]
    """(m, F)."""
    labels: npt.NDArray[np.uint8]
    """(m,) [class id]."""
    counts: Floats
    """(m,) how many pixels of its class and picture each stands for."""


def fresh(features: int, classes: int, seed: int) -> Weights:
    """Untrained weights that the seed decides."""
    random = np.random.default_rng([seed, 5])
    sizes = (features, _HIDDEN, _HIDDEN, classes)
    weights: Weights = []
    for before, after, gain in zip(sizes, sizes[1:], (2, 2, 1), strict=False):
        weights.append(random.normal(0, (gain / before) ** 0.5, (before, after)).astype(np.float32))
        weights.append(np.zeros(after, np.float32))
    return weights


def train(
    pixels: Pixels, scale: Scale, begin: Weights, steps: int, rate: float, seed: int
) -> Weights:
    """The weights after some steps of BATCH pixels, drawn as the seed says."""
    random = np.random.default_rng([seed, 6])
    classes = begin[-1].size
    total = np.bincount(pixels.labels, pixels.counts, classes).astype(np.int64)
    # By the fourth root of the share: by the square root, two thirds of what is found are false.
    of_class = np.sqrt(np.asarray(class_weights(total), np.float64))
    root = np.sqrt(pixels.counts * of_class[pixels.labels])
    drawn_until = np.cumsum(root / root.sum())
    drawn_until[-1] = 1.0
    weights = [one.copy() for one in begin]
    means = [np.zeros_like(one) for one in weights]
    squares = [np.zeros_like(one) for one in weights]
    for step in range(steps):
        rows = np.searchsorted(drawn_until, random.random(BATCH), side="right")
        slopes = _slopes(
            weights, scale(pixels.features[rows]), pixels.labels[rows],
            root[rows].astype(np.float32),
        )  # fmt: skip
        now = 0.5 * (1 + np.cos(np.pi * step / steps)) * min(1, (step + 1) / WARM_UP_STEPS) * rate
        for weight, slope, mean, square in zip(weights, slopes, means, squares, strict=True):
            mean += 0.1 * (slope - mean)
            square += 0.001 * (slope**2 - square)
            usual = mean / np.float32(1 - 0.9 ** (step + 1))
            spread = np.sqrt(square / np.float32(1 - 0.999 ** (step + 1))) + np.float32(1e-8)
            weight -= np.float32(now) * (usual / spread + np.float32(_DECAY) * weight)
    return weights


def shares(features: npt.NDArray[np.float16], scale: Scale, weights: Weights) -> Floats:
    """(..., C) the probability of each class, of features (..., F)."""
    return _softmax(_logits(features, scale, weights))


def predicted(
    features: npt.NDArray[np.float16], scale: Scale, weights: Weights
) -> npt.NDArray[np.int64]:
    """(...) the class that is most likely, of features (..., F)."""
    classes: npt.NDArray[np.int64] = _logits(features, scale, weights).argmax(axis=-1)
    return classes


def _logits(features: npt.NDArray[np.float16], scale: Scale, weights: Weights) -> Floats:
    logits = _layers(weights, scale(features.reshape(-1, features.shape[-1])))[-1]
    return logits.reshape(*features.shape[:-1], -1)


def _layers(weights: Weights, features: Floats) -> Sequence[Floats]:
    """The features, both hidden layers and the logits."""
    first = np.maximum(features @ weights[0] + weights[1], 0)
    second = np.maximum(first @ weights[2] + weights[3], 0)
    return features, first, second, second @ weights[4] + weights[5]


def _softmax(logits: Floats) -> Floats:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def _slopes(
    weights: Weights, features: Floats, labels: npt.NDArray[np.uint8], counts: Floats
) -> Weights:
    """Of the weighted cross-entropy, by each weight."""
    *inputs, logits = _layers(weights, features)
    error = _softmax(logits)
    error[np.arange(len(labels)), labels] -= 1
    error *= (counts / counts.sum())[:, None]
    slopes: Weights = []
    for layer in (2, 1, 0):
        slopes = [inputs[layer].T @ error, error.sum(axis=0), *slopes]
        if layer:
            error = (error @ weights[2 * layer].T) * (inputs[layer] > 0)
    return slopes
