"""A network's classes, made of a dataset's label classes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ingest.labels.class_list import UNKNOWN_CLASS
from ingest.labels.dataset_classes import DatasetClasses
from ingest.labels.words import compiled, load64, store64
from pipeline.prepared.decoded_frames import UInt8
from pipeline.runs.class_map import ClassMap


@dataclass(frozen=True)
class LabelClasses:
    """Classes of a network, and which of them each label class becomes."""

    names: tuple[str, ...]
    """The network's classes; a class id is a position here."""
    tags: tuple[str, ...]
    """Tag of each."""
    label_tags: tuple[tuple[str, ...], ...]
    """Tags of the label classes that each is made of."""
    of_label: UInt8
    """(256,) uint8 [class id] by a label's class id; UNKNOWN_CLASS where pixels do not count."""
    colours: UInt8
    """(n_classes, 3) uint8 [RGB], to draw them with."""
    map: ClassMap | None
    """By which they are merged; None where each label class is one."""
    keeps_ids: bool = False
    """Whether each label class is a class of the network, with the same id."""

    @classmethod
    def of(cls, classes: DatasetClasses, map_: ClassMap | None, dataset: str) -> "LabelClasses":
        """The classes that a network learns of a dataset's labels: without those to be ignored.

        Raises:
            InvalidInput: The map has no place for a class, or the dataset's class lists differ and
                there is no map.
        """
        of_label = np.full(256, UNKNOWN_CLASS, np.uint8)
        if map_ is None:
            classes.need_same_classes(dataset)
            learned = [*filter(lambda i: i not in classes.ignored, range(len(classes)))]
            of_label[learned] = np.arange(len(learned))
            tags = tuple(classes.tags[label_id] for label_id in learned)
            return cls(
                names=tuple(classes.names[label_id] for label_id in learned),
                tags=tags,
                label_tags=tuple((tag,) for tag in tags),
                of_label=of_label,
                colours=classes.class_colours[learned],
                map=None,
                keeps_ids=not classes.ignored,
            )
        ids = map_.ids_in(classes, dataset)
        colours = np.zeros((len(map_.classes), 3), np.uint8)
        for label_id, class_id in reversed([*enumerate(ids)]):  # the first label class's stays
            if class_id is not None:
                of_label[label_id] = class_id
                colours[class_id] = classes.class_colours[label_id]
        label_tags = tuple(
            tuple(tag for tag, of in zip(classes.tags, ids, strict=True) if of == class_id)
            for class_id in range(len(map_.classes))
        )
        return cls(map_.classes, map_.tags, label_tags, of_label, colours, map_)

    def __len__(self) -> int:
        """Number of classes."""
        return len(self.names)

    def merged(self, label: UInt8) -> UInt8:
        """A label uint8 [label's class id] of any shape, as uint8 [class id]."""
        return label if self.keeps_ids else renumbered(label, self.of_label)

    def merged_pixels(self, pixels: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """(n_classes,) int64 pixels of each class, of (label classes,) int64 pixels of each."""
        total = np.zeros(UNKNOWN_CLASS + 1, np.int64)
        np.add.at(total, self.of_label[: len(pixels)], pixels)
        return total[: len(self)]


def renumbered(ids: UInt8, number: UInt8) -> UInt8:
    """The (256,) uint8 number of each id, in an array of the ids' shape.

    A tenth of NumPy's time, which makes eight bytes of each id first: 18 MB of a label.
    """
    flat = np.ascontiguousarray(ids).reshape(-1)
    result = np.empty_like(flat)
    _renumber(flat, number, result)
    return result.reshape(ids.shape)


@compiled(cache=True)
def _renumber(ids: Any, number: Any, result: Any) -> None:
    """Write the number of each id: 32 ids at once where they are equal, as in most of a label."""
    at: Any = np.uint64(0)  # unsigned, so that Numba does not look for a negative one
    size = np.uint64(len(ids))
    while at + np.uint64(32) <= size:
        word = load64(ids, at)
        differing = word ^ load64(ids, at + np.uint64(8))
        differing |= word ^ load64(ids, at + np.uint64(16))
        differing |= word ^ load64(ids, at + np.uint64(24))
        differing |= word ^ (word << np.uint64(8) | word & np.uint64(255))
        if differing == 0:
            eight = np.uint64(number[ids[at]]) * np.uint64(0x0101010101010101)
            for _ in range(4):
                store64(result, at, eight)
                at += np.uint64(8)
        else:
            for _ in range(32):
                result[at] = number[ids[at]]
                at += np.uint64(1)
    while at < size:
        result[at] = number[ids[at]]
        at += np.uint64(1)
