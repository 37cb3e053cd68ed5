"""Manifest to batches of tensors."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from catalog.errors import InvalidInput
from ingest.labels.palette import Palette
from pipeline.datasets.chosen_split import chosen_split
from pipeline.manifest import Manifest
from training.example_order import examples, own_rows
from training.frame_reader import FrameReader, UInt8
from training.run_settings import RunSettings
from training.workers import Workers

READ_AHEAD_BATCHES = 4


def open_split(path: Path, split: str | None, usual: str) -> tuple[Manifest, str, Palette]:
    """One split of a manifest on disk, its name, and the palette of its labels.

    Args:
        path: Of the manifest.
        split: The split; None for the usual one, or for all frames of a dataset not divided.
        usual: "train" or "validation".

    Raises:
        BadFile: No manifest there, or a damaged one.
        UnknownName: It has no such split.
        InvalidInput: Its files are not on this machine, or its classes and class list differ.
    """
    manifest = Manifest.read(path)
    header = manifest.header
    for source, root in header.roots.items():
        if "://" in root:
            raise InvalidInput(
                f"source '{source}' of {header.name} lies at {root}; training reads local files: "
                "stage the dataset first (framesift stage)"
            )
    palette = Palette.from_class_list(header.class_list)
    if palette.classes != header.classes:
        raise InvalidInput(f"manifest of {header.name}: its classes are not its class list's")
    name = chosen_split(manifest, split, usual)
    return manifest.split(name), name, palette


def training_batches(
    frames: Manifest, reader: FrameReader, settings: RunSettings, workers: Workers, step: int
) -> Any:
    """The batches of one worker, without end.

    Args:
        frames: The split to train on, with one frame at least.
        reader: Over the same frames.
        settings: Of the run.
        workers: Whose share to give.
        step: Steps already made.

    Returns:
        tf.data.Dataset of (images (B, H, W, 3) uint8, labels (B, H, W) uint8 [class id]).
    """
    rows = own_rows(len(frames), workers.rank, workers.size)
    height_px, width_px = settings.height_px, settings.width_px

    def order() -> Iterator[tuple[int, bool]]:
        return examples(rows, settings.seed, workers.rank, skip=step * settings.batch_size)

    def read(row: np.int64, mirrored: np.bool_) -> tuple[UInt8, UInt8]:
        image, label = reader.small(int(row))
        return (image[:, ::-1], label[:, ::-1]) if mirrored else (image, label)

    def load(row: Any, mirrored: Any) -> tuple[Any, Any]:
        image, label = tf.numpy_function(read, [row, mirrored], [tf.uint8, tf.uint8])
        image.set_shape((height_px, width_px, 3))
        label.set_shape((height_px, width_px))
        return image, label

    row_and_mirrored = (tf.TensorSpec((), tf.int64), tf.TensorSpec((), tf.bool))
    rows_in_order = tf.data.Dataset.from_generator(order, output_signature=row_and_mirrored)
    loaded = rows_in_order.map(load, num_parallel_calls=max(1, settings.threads))
    return loaded.batch(settings.batch_size).prefetch(READ_AHEAD_BATCHES)
