"""Classes of the colours of a label image."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from catalog.errors import InvalidInput

UNKNOWN_CLASS = 255
"""Class id of a pixel whose colour is not in the palette."""

_INSTANCE_NUMBER = re.compile(r" \d$")
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")


@dataclass(frozen=True)
class Palette:
    """Colours and classes of a label data set.

    Several colours may name one class: A2D2 numbers touching instances ("Car 1" to "Car 4"),
    55 colours for 38 classes. The numbers count no objects and are dropped. They have one digit: a
    longer number ("Zone 10") belongs to the name, for classes once merged cannot be told apart,
    while those that were kept apart can be added up.

    Attributes:
        colours: 24-bit colours 0xRRGGBB in file order.
        class_ids: For each colour its class id, the class's position in ``classes``.
        classes: Class names in order of first appearance, such as "RD normal street".
        tags: For each class its tag name, such as "rd_normal_street".
    """

    colours: tuple[int, ...]
    class_ids: tuple[int, ...]
    classes: tuple[str, ...]
    tags: tuple[str, ...]

    @classmethod
    def from_class_list(cls, class_list: Mapping[str, str]) -> "Palette":
        """The palette of a parsed class_list.json, ``{"#ff0000": "Car 1", ...}``.

        Raises:
            InvalidInput: An entry is no colour or is listed twice, the list is empty or holds over
                255 classes, or two classes would get the same tag name.
        """
        if not isinstance(class_list, Mapping) or not class_list:
            raise InvalidInput('class list: expected an object like {"#ff0000": "Car 1", ...}')
        colours: list[int] = []
        names: list[str] = []
        for colour, name in class_list.items():
            if not isinstance(colour, str) or not _COLOUR.fullmatch(colour):
                raise InvalidInput(f"class list: '{colour}' is not a colour like #ff8000")
            if not isinstance(name, str) or not name.strip():
                raise InvalidInput(f"class list: {colour} has no class name")
            if int(colour[1:], 16) in colours:
                raise InvalidInput(f"class list: the colour {colour.lower()} is listed twice")
            colours.append(int(colour[1:], 16))
            names.append(_INSTANCE_NUMBER.sub("", name.strip()))
        classes = tuple(dict.fromkeys(names))
        if len(classes) > UNKNOWN_CLASS:
            raise InvalidInput(f"class list: {len(classes)} classes; at most 255 are supported")
        tags = tuple(tag_name(name) for name in classes)
        if "" in tags:
            nameless = ", ".join(f"'{name}'" for name in classes if not tag_name(name))
            raise InvalidInput(
                f"class list: {nameless}: a class's tag has the letters a to z and the digits of "
                "its name, and here is none; give it a name with some, such as 'Car', in "
                "class_list.json or in a copy for --class-list"
            )
        for tag in tags:
            if tags.count(tag) > 1:
                clash = [name for name in classes if tag_name(name) == tag]
                raise InvalidInput(
                    f"class list: {', '.join(clash)} would share the tag '{tag}'; rename one"
                )
        position = {name: index for index, name in enumerate(classes)}
        return cls(tuple(colours), tuple(position[name] for name in names), classes, tags)

    def __len__(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @cached_property
    def class_of_colour(self) -> Mapping[int, int]:
        """Class id of each 24-bit colour 0xRRGGBB."""
        return dict(zip(self.colours, self.class_ids, strict=True))

    @cached_property
    def tag_of_colour(self) -> Mapping[int, str]:
        """Tag of each 24-bit colour 0xRRGGBB: what pixels count as, whatever the list's order."""
        return {colour: self.tags[class_id] for colour, class_id in self.class_of_colour.items()}

    @cached_property
    def lookup_table(self) -> npt.NDArray[np.uint8]:
        """(2**24,) uint8 [class id] by 24-bit colour; UNKNOWN_CLASS where no colour is listed."""
        table = np.full(1 << 24, UNKNOWN_CLASS, dtype=np.uint8)
        table[list(self.colours)] = self.class_ids
        return table

    @cached_property
    def class_colours(self) -> npt.NDArray[np.uint8]:
        """(n_classes, 3) uint8 [RGB]: the first listed colour of each class, to draw it with."""
        first = {c: colour for colour, c in reversed(list(self.class_of_colour.items()))}
        return np.array(
            [[first[c] >> 16, first[c] >> 8 & 255, first[c] & 255] for c in range(len(self))],
            dtype=np.uint8,
        )


def is_numbered(name: str) -> bool:
    """True for a name in a class list that numbers instances: "Car 1", and not "Zone 10"."""
    return _INSTANCE_NUMBER.search(name.strip()) is not None


def tag_name(class_name: str) -> str:
    """The tag of a class: lower case, letters, digits and blanks only, blanks as underscores.

    >>> tag_name("Painted driv. instr.")
    'painted_driv_instr'
    >>> tag_name("Obstacles / trash")
    'obstacles_trash'

    Source: the spelling of the proof of concept's own client programs.
    """
    letters = "".join(c for c in class_name.lower() if c.isascii() and (c.isalnum() or c == " "))
    return "_".join(letters.split())
