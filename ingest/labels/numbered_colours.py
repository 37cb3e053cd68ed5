"""The colours of a label that number the objects of a class, such as "Car 1" to "Car 4"."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ingest.labels.class_list import UNKNOWN_CLASS, ClassKey, ClassList
from ingest.labels.dataset_classes import DatasetClasses

UInt8 = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class NumberedColours:
    """A dataset's classes with each colour as a class of its own."""

    classes: DatasetClasses
    """Its class ids are positions in the data sets' own lists, one after another."""
    label_class: UInt8
    """(256,) uint8 [label's class id] of each colour."""
    is_numbered: npt.NDArray[np.bool_]
    """(256,) bool, whether a colour numbers objects."""

    @classmethod
    def of(cls, classes: DatasetClasses) -> "NumberedColours | None":
        """Those of a dataset; None where no colour is numbered, or there are more than 255."""
        number = sum(len(class_list.keys) for class_list in classes.lists)
        if number > min(class_list.most_classes for class_list in classes.lists):
            return None
        numbered = np.zeros(256, np.bool_)
        label_class = np.full(256, UNKNOWN_CLASS, np.uint8)
        apart, begin = [], 0
        for class_list in classes.lists:
            end = begin + len(class_list.keys)
            numbered[begin:end] = [key.instance is not None for key in class_list.keys]
            label_class[begin:end] = classes.ids(class_list)[[*class_list.class_ids]]
            keys = tuple(
                ClassKey(key.key, f"colour {index}", key.colour)
                for index, key in enumerate(class_list.keys, begin)
            )
            apart.append(ClassList(class_list.encoding, keys))
            begin = end
        if not numbered.any():
            return None
        return cls(DatasetClasses(tuple(apart), classes.sources), label_class, numbered)

    def merged_classes(self, of_label: UInt8) -> UInt8:
        """(256,) uint8 [class id] of each numbered colour, UNKNOWN_CLASS of the others.

        Args:
            of_label: (256,) uint8 [class id] by a label's class id.
        """
        merged = of_label[self.label_class]
        return np.where(self.is_numbered, merged, np.uint8(UNKNOWN_CLASS))
