"""Classes of a dataset: names, colours, and the class ids of a label image's colours."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from framesift.errors import BadFile

UNKNOWN_CLASS = 255
"""Class id of a pixel whose colour the class list does not have."""

CLASSES_FILE = "classes.json"

_INSTANCE_NUMBER = re.compile(r" \d$")

UInt8 = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Classes:
    """Classes of a dataset.

    Attributes:
        names: Class names; a class id is a position in this list.
        colours: The class id of each 24-bit colour 0xRRGGBB, in the class list's order.
    """

    names: tuple[str, ...]
    colours: Mapping[int, int]

    def __len__(self) -> int:
        """Number of classes."""
        return len(self.names)

    @classmethod
    def read(cls, path: Path) -> "Classes":
        """The classes in a classes.json, as a job of kind "run" gets one.

        Raises:
            BadFile: It is missing or damaged.
        """
        try:
            rows = json.loads(path.read_text(encoding="utf-8"))["classes"]
            colours = {_colour(text): row["id"] for row in rows for text in row["colours"]}
            names = tuple(str(row["name"]) for row in rows)
        except OSError as error:
            raise BadFile(f"{path}: {error.strerror}; expected a list of classes") from error
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise BadFile(f"{path}: is no list of classes: {error}") from error
        if [row["id"] for row in rows] != list(range(len(rows))):
            raise BadFile(f"{path}: expected the ids 0, 1, 2... in this order")
        return cls(names, colours)

    @classmethod
    def of_manifest(cls, header: Mapping[str, Any]) -> "Classes":
        """The classes of a manifest's header.

        The class list gives touching instances numbers ("Car 1" to "Car 4"): these are one class.
        """
        names = tuple(header["classes"])
        ids = {name: index for index, name in enumerate(names)}
        listed = header["class_list"].items()
        return cls(
            names,
            {_colour(text): ids[_INSTANCE_NUMBER.sub("", name.strip())] for text, name in listed},
        )

    @cached_property
    def palette(self) -> UInt8:
        """(n_classes, 3) uint8 [RGB]: the first colour of each class, to draw it with."""
        first = {class_id: colour for colour, class_id in reversed(list(self.colours.items()))}
        rgb = [[first[c] >> 16, first[c] >> 8 & 255, first[c] & 255] for c in range(len(self))]
        return np.array(rgb, np.uint8).reshape(-1, 3)

    def ids_of(self, rgb: UInt8) -> UInt8:
        """The class id of each pixel, UNKNOWN_CLASS where the colour is not listed.

        Args:
            rgb: (H, W, 3) uint8, a label image.

        Returns:
            (H, W) uint8.
        """
        packed = rgb[..., 0].astype(np.uint32) << 16
        packed |= rgb[..., 1].astype(np.uint32) << 8
        packed |= rgb[..., 2]
        ids: UInt8 = self._table[packed]
        return ids

    @cached_property
    def _table(self) -> UInt8:
        """(2**24,) uint8 [class id] by colour."""
        table = np.full(1 << 24, UNKNOWN_CLASS, np.uint8)
        table[list(self.colours)] = list(self.colours.values())
        return table

    def __getstate__(self) -> dict[str, Any]:
        """Without the table of 16 MB: processes that load data each make their own."""
        return {"names": self.names, "colours": dict(self.colours)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Take what `__getstate__` gave."""
        for name, value in state.items():
            object.__setattr__(self, name, value)


def _colour(text: str) -> int:
    return int(text.removeprefix("#"), 16)
