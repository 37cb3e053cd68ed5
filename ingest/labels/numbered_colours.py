"""The colours of a label that number the objects of a class, such as "Car 1" to "Car 4"."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ingest.labels.palette import UNKNOWN_CLASS, Palette, is_numbered

UInt8 = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class NumberedColours:
    """Palette of a class list with each colour as a class of its own.

    Attributes:
        palette: Its class ids are positions in the class list.
        label_class: (256,) uint8 [label's class id] of each colour.
        is_numbered: (256,) bool, whether a colour numbers objects.
    """

    palette: Palette
    label_class: UInt8
    is_numbered: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, class_list: Mapping[str, str]) -> "NumberedColours | None":
        """Those of a class list; None where no colour is numbered, or there are more than 255."""
        merged = Palette.from_class_list(class_list)
        number = len(merged.colours)
        numbered = np.zeros(256, np.bool_)
        if number > UNKNOWN_CLASS:
            return None
        numbered[:number] = [is_numbered(name) for name in class_list.values()]
        if not numbered.any():
            return None
        label_class = np.full(256, UNKNOWN_CLASS, np.uint8)
        label_class[:number] = merged.class_ids
        names = tuple(f"colour {index}" for index in range(number))
        apart = Palette(merged.colours, tuple(range(number)), names, names)
        return cls(apart, label_class, numbered)

    def classes(self, of_label: UInt8) -> UInt8:
        """(256,) uint8 [class id] of each numbered colour, UNKNOWN_CLASS of the others.

        Args:
            of_label: (256,) uint8 [class id] by a label's class id.
        """
        merged = of_label[self.label_class]
        return np.where(self.is_numbered, merged, np.uint8(UNKNOWN_CLASS))
