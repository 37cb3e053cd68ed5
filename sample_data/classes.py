"""The 55 entries of the class list, their class ids and colours.

A class id is the entry's position in class_list.json. Entries that differ only in a trailing
number, such as "Car 1" and "Car 2", are one class: the number keeps touching objects apart.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

CLASS_LIST_FILE = Path(__file__).with_name("class_list.json")

COLOUR_TO_ENTRY: Mapping[str, str] = json.loads(CLASS_LIST_FILE.read_text(encoding="utf-8"))
"""'#rrggbb' -> entry name, in class order."""

ENTRIES: tuple[str, ...] = tuple(COLOUR_TO_ENTRY.values())

CLASS_OF_ENTRY: tuple[str, ...] = tuple(re.sub(r" \d$", "", entry) for entry in ENTRIES)
"""The class of each entry: its name without the trailing number."""

PALETTE: NDArray[np.uint8] = np.array(
    [[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in COLOUR_TO_ENTRY],
    dtype=np.uint8,
)
"""(55, 3) uint8 RGB, one row per class id."""

IDS_OF_CLASS: Mapping[str, tuple[int, ...]] = {
    name: tuple(i for i, other in enumerate(CLASS_OF_ENTRY) if other == name)
    for name in dict.fromkeys(CLASS_OF_ENTRY)
}
"""The class ids of each of the 38 classes, lowest number first."""


def class_id(name: str) -> int:
    """The first class id of a class, such as that of "Car 1" for "Car"."""
    return IDS_OF_CLASS[name][0]
