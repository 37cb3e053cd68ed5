"""Labels, and predictions that err as networks do: at outlines, in areas and in single pixels."""

from pathlib import Path

import numpy as np

from ingest.labels.class_list import UNKNOWN_CLASS, ClassList
from ingest.labels.label_image import decode_label
from tests.training.drawn_frames import read_class_list
from training.validation.scores import UInt8

SAMPLE_FRAMES = Path(__file__).parents[2] / "sample_data" / "a2d2"


def read_labels(root: Path, most: int) -> tuple[list[UInt8], int]:
    """Some labels in a folder of A2D2 files, (H, W) uint8 [class id], and the number of classes."""
    palette = ClassList.from_colours(read_class_list(next(root.rglob("class_list.json"))))
    paths = sorted(root.rglob("*_label_*.png"))[:most]
    return [decode_label(path.read_bytes(), palette) for path in paths], len(palette)


def predicted(label: UInt8, n_classes: int, seed: int) -> UInt8:
    """A label 7 pixels beside its place, one area and a tenth of the pixels drawn at random."""
    random = np.random.default_rng(seed)
    height, width = label.shape
    prediction = np.where(label < n_classes, np.roll(label, 7, axis=1), 0)
    prediction = np.where(prediction < n_classes, prediction, 0).astype(np.uint8)
    prediction[height // 4 : height // 2, width // 8 : width // 2] = random.integers(0, n_classes)
    wrong = random.random(label.shape) < 0.1
    prediction[wrong] = random.integers(0, n_classes, int(wrong.sum()))
    return prediction


def drawn_pair(n_classes: int, seed: int) -> tuple[UInt8, UInt8]:
    """A label without its last two classes, partly unknown, and a prediction without the first."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, n_classes - 2, (61, 83), dtype=np.uint8)
    truth[random.random(truth.shape) < 0.2] = UNKNOWN_CLASS
    right = (random.random(truth.shape) < 0.6) & (truth != UNKNOWN_CLASS) & (truth > 0)
    drawn = random.integers(1, n_classes - 1, truth.shape, dtype=np.uint8)
    return truth, np.where(right, truth, drawn).astype(np.uint8)
