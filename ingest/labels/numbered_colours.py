"""The colours of a label that number the objects of a class, such as "Car 1" to "Car 4"."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ingest.labels.class_list import UNKNOWN_CLASS, ClassKey, ClassList

UInt8 = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class NumberedColours:
    """Class list with each colour as a class of its own."""

    class_list: ClassList
    """Its class ids are positions in the data set's own list."""
    label_class: UInt8
    """(256,) uint8 [label's class id] of each colour."""
    is_numbered: npt.NDArray[np.bool_]
    """(256,) bool, whether a colour numbers objects."""

    @classmethod
    def of(cls, class_list: ClassList) -> "NumberedColours | None":
        """Those of a class list; None where no colour is numbered, or there are more than 255."""
        number = len(class_list.keys)
        numbered = np.zeros(256, np.bool_)
        if number > UNKNOWN_CLASS:
            return None
        numbered[:number] = [key.instance is not None for key in class_list.keys]
        if not numbered.any():
            return None
        label_class = np.full(256, UNKNOWN_CLASS, np.uint8)
        label_class[:number] = class_list.class_ids
        keys = tuple(
            ClassKey(key.key, f"colour {index}", key.colour)
            for index, key in enumerate(class_list.keys)
        )
        apart = ClassList(class_list.encoding, keys)
        return cls(apart, label_class, numbered)

    def classes(self, of_label: UInt8) -> UInt8:
        """(256,) uint8 [class id] of each numbered colour, UNKNOWN_CLASS of the others.

        Args:
            of_label: (256,) uint8 [class id] by a label's class id.
        """
        merged = of_label[self.label_class]
        return np.where(self.is_numbered, merged, np.uint8(UNKNOWN_CLASS))
