"""A manifest as training and validation open it."""

from collections.abc import Callable
from pathlib import Path

from catalog.errors import InvalidInput
from ingest.labels.dataset_classes import DatasetClasses
from ingest.labels.numbered_colours import NumberedColours
from pipeline.datasets.chosen_split import chosen_split
from pipeline.manifest import Manifest
from pipeline.prepared.form import PreparedRows, prepared_rows
from pipeline.prepared.full_form import FullRows, full_rows
from pipeline.prepared.label_classes import LabelClasses
from pipeline.runs.size import Size
from training.input.frame_reader import FrameReader
from training.input.skipped_frames import SkippedFrames


def open_split(path: Path, split: str | None, usual: str) -> tuple[Manifest, str, DatasetClasses]:
    """One split of a manifest on disk, its name, and the classes of its labels.

    Args:
        split: The split; None for the usual one, or for all frames of a dataset not divided.
        usual: "train" or "validation".

    Raises:
        InvalidInput: Its files are not on this machine, or its classes and class lists differ.
    """
    manifest = Manifest.read(path)
    header = manifest.header
    for source, root in header.roots.items():
        if "://" in root:
            raise InvalidInput(
                f"source '{source}' of {header.name} lies at {root}; training reads local files: "
                "stage the dataset first (framesift stage)"
            )
    classes = header.dataset_classes
    if classes.names != header.classes:
        raise InvalidInput(f"manifest of {header.name}: its classes are not its class list's")
    name = chosen_split(manifest, split, usual)
    return manifest.split(name), name, classes


def open_reader(
    frames: Manifest,
    dataset_classes: DatasetClasses,
    height_px: int,
    width_px: int,
    cache_bytes: int = 0,
    wait_for: Callable[[str], bool] = lambda _: False,
    classes: LabelClasses | None = None,
    bad: SkippedFrames | None = None,
    numbered: NumberedColours | None = None,
) -> tuple[FrameReader, PreparedRows | FullRows | None]:
    """The reader of a split's or shard's frames at a size; its prepared form, where there is one.

    That is the form of this size; without one that at full size, which gives labels at full size
    in any case.

    Labels are merged to ``classes``, where they are given; ``bad`` and ``numbered`` as
    FrameReader's.
    """
    size = Size(height_px, width_px)
    prepared, full = prepared_rows(frames, size), full_rows(frames)
    reader = FrameReader(
        frames,
        dataset_classes,
        size,
        cache_bytes=cache_bytes,
        prepared=prepared,
        full=full,
        wait_for=wait_for,
        classes=classes,
        bad=bad,
        numbered=numbered,
    )
    return reader, prepared or full
