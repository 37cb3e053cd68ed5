"""What a validation does with a frame beside the network: milliseconds of CPU, one thread.

    A2D2_ROOT=/path/to/a2d2 .venv/bin/python -m benchmarks.validation_frames

Real A2D2 frames of 1920x1208 and 38 classes where A2D2_ROOT is set, else the committed sample
frames. Logits of 152x240 are drawn: areas of one class, some pixels wide, and noise alone, in which
no area helps. Class ids at full size are compared with those of TensorFlow's resize and argmax,
pixel by pixel, before anything is timed. Ways take turns in one process, and the least counts.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ingest.labels.class_list import ClassList
from ingest.labels.dataset_classes import DatasetClasses
from ingest.labels.label_image import decode_image, decode_label, open_png
from ingest.labels.numbered_colours import NumberedColours
from pipeline.prepared.decoded_frames import nearest, small_image
from pipeline.prepared.label_classes import renumbered
from pipeline.runs.size import Size
from tests.training.drawn_frames import read_class_list

SIZE = Size(height_px=152, width_px=240)
ROUNDS = 5


def main() -> None:
    """Print the table."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    from training.network.best_class import BestClass
    from training.network.predictor import probabilities
    from training.validation.metrics.metric import ScoredFrame
    from training.validation.metrics.table import METRICS
    from training.validation.scores import confusion_matrix

    root = Path(os.environ.get("A2D2_ROOT") or Path(__file__).parent.parent / "sample_data/a2d2")
    images = [path.read_bytes() for path in sorted(root.rglob("*_camera_*.png"))[:4]]
    labels = [path.read_bytes() for path in sorted(root.rglob("*_label_*.png"))[:4]]
    if not images or not labels:
        sys.exit(f"{root}: no frames there; set A2D2_ROOT to a folder of A2D2 files")
    class_list = read_class_list(next(root.rglob("class_list.json")))
    palette = ClassList.from_colours(class_list)
    whole = decode_image(images[0])
    truth = decode_label(labels[0], palette)
    height_px, width_px = truth.shape

    def tensorflow(logits: Any) -> Any:
        large = tf.image.resize(logits[None], (height_px, width_px))[0]
        return tf.argmax(large, axis=-1).numpy()

    given = {name: _logits(areas, len(palette)) for name, areas in _AREAS.items()}
    for name, logits in given.items():
        differ = int((BestClass(logits).at_size(height_px, width_px) != tensorflow(logits)).sum())
        print(f"class ids, {name}: {differ} of {truth.size:,} pixels differ from TensorFlow's")
        if differ:
            sys.exit(1)
    metrics = {name: metric.empty(len(palette)) for name, metric in METRICS.items()}
    predicted = BestClass(given["areas of 8"]).at_size(height_px, width_px)
    matrix, _ = confusion_matrix(truth, predicted, len(palette))
    small = nearest(truth, SIZE)
    graph, logits = tf.function(probabilities), given["areas of 8"]
    confidence = graph(logits[None])[0].numpy()[0]
    apart = NumberedColours.of(DatasetClasses.of(palette))
    assert apart is not None
    colours = decode_label(labels[0], apart.classes.lists[0])
    of_label = np.arange(256, dtype=np.uint8)
    scored = ScoredFrame(
        truth, predicted, matrix, small, BestClass(logits).ids, confidence, 0.1, 0.8, None,
        colours, apart.merged_classes(of_label),
    )  # fmt: skip
    ways: dict[str, Callable[[], object]] = {
        "image, Pillow": lambda: [open_png(png) for png in images],
        "image": lambda: [decode_image(png) for png in images],
        "image made small": lambda: [small_image(whole, SIZE) for _ in images],
        "label": lambda: [decode_label(png, palette) for png in labels],
        "label made small": lambda: [nearest(truth, SIZE) for _ in labels],
        "probabilities": lambda logits=logits: [  # type: ignore[misc]
            graph(logits[None]) for _ in images
        ],
        "calibration": lambda: _repeat(metrics["calibration"].update, scored, images),
        "boundary IoU": lambda: _repeat(metrics["boundary_iou"].update, scored, images),
        "objects by size": lambda: _repeat(metrics["object_sizes"].update, scored, images),
        "classes of colours": lambda: [renumbered(colours, apart.label_class) for _ in images],
        "confusion matrix": lambda: [
            confusion_matrix(truth, predicted, len(palette)) for _ in images
        ],
    }
    for name, logits in given.items():
        ways[f"class ids, {name}"] = lambda logits=logits: [  # type: ignore[misc]
            BestClass(logits).at_size(height_px, width_px) for _ in images
        ]
        ways[f"class ids, {name}, TensorFlow"] = lambda logits=logits: [  # type: ignore[misc]
            tensorflow(logits) for _ in images
        ]
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for name, way in ways.items():
            began = time.process_time()
            way()
            best[name] = min(best[name], (time.process_time() - began) / len(images))
    print(f"{width_px}x{height_px}, {len(palette)} classes, load {os.getloadavg()[0]:.1f}")
    for name, seconds in best.items():
        print(f"  {name:36}{1e3 * seconds:8.2f} ms")
    beside = best["label"] + best["label made small"] + best["confusion matrix"]
    beside += best["probabilities"] + best["calibration"] + best["boundary IoU"]
    beside += best["class ids, areas of 8"]
    beside += best["objects by size"] + best["classes of colours"]
    print(f"  beside the network, prepared        {1e3 * beside:8.2f} ms")
    beside += best["image"] + best["image made small"]
    print(f"  beside the network, decoded         {1e3 * beside:8.2f} ms")


_AREAS = {"areas of 20": 20, "areas of 8": 8, "noise": 1}


def _repeat(update: Callable[[Any], None], scored: Any, images: list[bytes]) -> None:
    for _ in images:
        update(scored)


def _logits(area_px: int, classes: int) -> Any:
    """(h, w, C) float32: one class is ahead in each area, and noise lies over all."""
    random = np.random.default_rng(area_px)
    shape = (SIZE.height_px, SIZE.width_px)
    logits = random.normal(size=(*shape, classes))
    if area_px > 1:
        coarse = random.normal(size=(*(-(-side // area_px) for side in shape), classes))
        wide = np.repeat(np.repeat(coarse, area_px, 0), area_px, 1)[: shape[0], : shape[1]]
        logits = 0.1 * logits + 5 * wide
    return logits.astype(np.float32)


if __name__ == "__main__":
    main()
