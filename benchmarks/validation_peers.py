"""Figures of a validation beside scikit-learn's, torchmetrics' and FiftyOne's, and what each takes.

    uv venv peers && uv pip install --python peers numba pyarrow pillow scipy deflate \
        scikit-learn torchmetrics fiftyone
    A2D2_ROOT=/path/to/a2d2 peers/bin/python -m benchmarks.validation_peers

The peers are no dependency of Framesift: they have an environment of their own, in which this runs.
Labels are real A2D2 labels where A2D2_ROOT is set, else those of the sample frames; predictions are
the labels with areas and single pixels drawn at random. Matrices must be equal, and scores to
the last digit that the peer gives: float64 of scikit-learn, float32 of torchmetrics. Times are CPU
milliseconds a frame, one thread, the least of ROUNDS: of the confusion matrix alone, and of whole
frames, from image and label PNG and the network's logits (152x240, drawn) to the matrix. The peers
decode with Pillow and enlarge the logits with PyTorch, as their examples do.
"""

import io
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ingest.labels.class_list import ClassList
from ingest.labels.label_image import decode_image, decode_label
from pipeline.prepared.decoded_frames import small_image
from pipeline.runs.size import Size
from tests.training.drawn_frames import read_class_list
from tests.training.predictions import SAMPLE_FRAMES, predicted, read_labels
from training.network.best_class import BestClass
from training.validation import scores

ROUNDS = 3
SIZE = Size(height_px=152, width_px=240)


def main() -> None:
    """Compare, and print the table; exit status 1 where a figure differs."""
    root = Path(os.environ.get("A2D2_ROOT") or SAMPLE_FRAMES)
    palette = ClassList.from_colours(read_class_list(next(root.rglob("class_list.json"))))
    labels, size = read_labels(root, 4)
    pairs = [(label, predicted(label, size, seed)) for seed, label in enumerate(labels)]
    ours = sum(scores.confusion_matrix(*pair, size)[0] for pair in pairs)
    ways: dict[str, Callable[[Any, Any], Any]] = {
        "Framesift": lambda truth, guess: scores.confusion_matrix(truth, guess, size)[0],
        "scikit-learn": _scikit_learn(size),
        "torchmetrics": _torchmetrics(size),
        "FiftyOne": _fiftyone(size),
    }
    height_px, width_px = labels[0].shape
    print(f"{len(pairs)} labels of {width_px}x{height_px}, {size} classes")
    for name, way in ways.items():
        theirs = sum(np.asarray(way(*pair)) for pair in pairs)
        _need(name, "confusion matrix", np.array_equal(ours, theirs))
        best = float("inf")
        for _ in range(ROUNDS):
            began = time.process_time()
            for pair in pairs:
                way(*pair)
            best = min(best, (time.process_time() - began) / len(pairs))
        print(f"  {name:14}{1e3 * best:9.1f} ms, matrix equal")
    _whole_frames(root, palette, ways)
    truth, guess = (np.concatenate([pair[n].ravel() for pair in pairs]) for n in (0, 1))
    known = truth < size
    _check_scores(ours, truth[known], guess[known])


def _whole_frames(
    root: Path, palette: ClassList, ways: Mapping[str, Callable[[Any, Any], Any]]
) -> None:
    """Time whole frames, and compare their matrices: enlarging rounds otherwise in each program."""
    images = [path.read_bytes() for path in sorted(root.rglob("*_camera_*.png"))[:4]]
    labels = [path.read_bytes() for path in sorted(root.rglob("*_label_*.png"))[:4]]
    size = len(palette)
    logits = [_logits(seed, size) for seed in range(len(labels))]

    def ours(image: bytes, label: bytes, values: Any) -> Any:
        small_image(decode_image(image), SIZE)
        truth = decode_label(label, palette)
        guess = BestClass(values).at_size(*truth.shape)
        return ways["Framesift"](truth, guess)

    def theirs(name: str) -> Callable[[bytes, bytes, Any], Any]:
        import torch
        from torch.nn.functional import interpolate

        torch.set_num_threads(1)

        def frame(image: bytes, label: bytes, values: Any) -> Any:
            box = (SIZE.width_px, SIZE.height_px)
            np.asarray(Image.open(io.BytesIO(image)).convert("RGB").resize(box))
            colours = np.asarray(Image.open(io.BytesIO(label)).convert("RGB")).astype(np.uint32)
            packed = colours[..., 0] << 16 | colours[..., 1] << 8 | colours[..., 2]
            truth = palette.lookup_table[packed]
            tensor = torch.from_numpy(values).permute(2, 0, 1)[None]
            large = interpolate(tensor, truth.shape, mode="bilinear", align_corners=False)
            return ways[name](truth, large.argmax(dim=1)[0].to(torch.uint8).numpy())

        return frame

    frames: dict[str, Callable[[bytes, bytes, Any], Any]] = {"Framesift": ours}
    frames |= {name: theirs(name) for name in ("torchmetrics", "FiftyOne", "scikit-learn")}
    print("whole frames, from PNG and logits to the matrix")
    whole = sum(ours(*one) for one in zip(images, labels, logits, strict=True))
    for name, way in frames.items():
        best, matrix = float("inf"), None
        for _ in range(ROUNDS):
            began = time.process_time()
            matrix = sum(way(*one) for one in zip(images, labels, logits, strict=True))
            best = min(best, (time.process_time() - began) / len(images))
        apart = int(np.abs(whole - matrix).sum()) // 2
        _need(name, "matrix of whole frames", apart <= 1e-5 * whole.sum())
        print(f"  {name:14}{1e3 * best:9.1f} ms, {apart} of {int(whole.sum()):,} pixels otherwise")


def _logits(seed: int, classes: int) -> Any:
    """(h, w, C) float32: one class is ahead in each area of 8 pixels, and noise lies over all."""
    random = np.random.default_rng(seed)
    shape = (SIZE.height_px, SIZE.width_px)
    coarse = random.normal(size=(shape[0] // 8, shape[1] // 8, classes))
    wide = np.repeat(np.repeat(coarse, 8, 0), 8, 1)
    return (0.1 * random.normal(size=(*shape, classes)) + 5 * wide).astype(np.float32)


def _scikit_learn(size: int) -> Callable[[Any, Any], Any]:
    from sklearn.metrics import confusion_matrix

    def matrix(truth: Any, guess: Any) -> Any:
        known = truth < size
        return confusion_matrix(truth[known], guess[known], labels=np.arange(size))

    return matrix


def _torchmetrics(size: int) -> Callable[[Any, Any], Any]:
    import torch
    from torchmetrics.functional.classification import multiclass_confusion_matrix

    torch.set_num_threads(1)

    def matrix(truth: Any, guess: Any) -> Any:
        return multiclass_confusion_matrix(
            torch.from_numpy(guess.astype(np.int64)),
            torch.from_numpy(np.where(truth < size, truth, size).astype(np.int64)),
            num_classes=size,
            ignore_index=size,
            validate_args=False,
        ).numpy()

    return matrix


def _fiftyone(size: int) -> Callable[[Any, Any], Any]:
    from fiftyone.utils.eval.segmentation import _compute_pixel_confusion_matrix

    values = np.arange(size)

    def matrix(truth: Any, guess: Any) -> Any:
        return _compute_pixel_confusion_matrix(guess, truth, values).astype(np.int64)

    return matrix


def _check_scores(matrix: Any, truth: Any, guess: Any) -> None:
    import torch
    from sklearn import metrics
    from torchmetrics.functional.classification import (
        multiclass_accuracy,
        multiclass_jaccard_index,
    )

    there = matrix.any(axis=1)
    classes = np.arange(len(matrix))
    iou = scores.iou(matrix)
    with_sklearn = {
        "IoU of each class": (
            iou[there],
            metrics.jaccard_score(truth, guess, labels=classes, average=None, zero_division=0)[
                there
            ],
        ),
        "mean IoU": (
            scores.mean_iou(matrix),
            metrics.jaccard_score(truth, guess, labels=classes[there], average="macro"),
        ),
        "frequency-weighted IoU": (
            scores.frequency_weighted_iou(matrix),
            metrics.jaccard_score(truth, guess, labels=classes[there], average="weighted"),
        ),
        "pixel accuracy": (
            scores.pixel_accuracy(matrix),
            metrics.accuracy_score(truth, guess),
        ),
        "recall": (
            scores.recall(matrix)[there],
            metrics.recall_score(truth, guess, labels=classes[there], average=None),
        ),
        "precision": (
            np.nan_to_num(scores.precision(matrix)[there]),
            metrics.precision_score(
                truth, guess, labels=classes[there], average=None, zero_division=0
            ),
        ),
    }
    for name, (own, theirs) in with_sklearn.items():
        _need("scikit-learn", name, np.allclose(own, theirs, rtol=1e-14, atol=0))
    guessed, true = (torch.from_numpy(one.astype(np.int64)) for one in (guess, truth))
    n_classes = len(matrix)
    jaccard = multiclass_jaccard_index(guessed, true, n_classes, average="none").numpy()
    accuracy = multiclass_accuracy(guessed, true, n_classes, average="micro").numpy()
    _need("torchmetrics", "IoU of each class", np.allclose(iou[there], jaccard[there], rtol=2e-7))
    own = scores.pixel_accuracy(matrix)
    _need("torchmetrics", "pixel accuracy", np.allclose(own, accuracy, rtol=2e-7))
    print(
        "scores equal: " + ", ".join(with_sklearn) + " (scikit-learn); IoU, accuracy (torchmetrics)"
    )


def _need(peer: str, what: str, holds: bool) -> None:
    if not holds:
        sys.exit(f"{what} differs from {peer}'s")


if __name__ == "__main__":
    main()
