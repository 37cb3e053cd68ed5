"""The class list of label images: which key is which class, and how a class is drawn."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from catalog.errors import InvalidInput
from ingest.labels.encoding import COLOURS, Encoding

UNKNOWN_CLASS = 255
"""Class id of a pixel whose key no class has."""

MOST_CHARACTERS = 100
"""Longest name of a class [characters]."""

_INSTANCE = re.compile(r"(.+) (\d)")
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
_TAG = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*_?")
_FIELDS = {"key", "name", "colour", "ignore", "tag", "instance"}


@dataclass(frozen=True, slots=True)
class ClassKey:
    """One key of a class list, and the class that its pixels are of."""

    key: int
    """A colour 0xRRGGBB, or a number that the encoding makes of a pixel."""
    name: str
    """The class's name; several keys may have one class."""
    colour: int
    """0xRRGGBB to draw the class with."""
    ignore: bool = False
    """Training and scores leave its pixels out; they are counted all the same."""
    tag: str = ""
    """The class's tag; empty for the one that `tag_name` makes of its name."""
    instance: int | None = None
    """The number by which the key tells touching objects apart, as A2D2's "Car 1" to "Car 4" do."""

    @property
    def listed_name(self) -> str:
        """The name as the class list has it, with the instance's number."""
        return self.name if self.instance is None else f"{self.name} {self.instance}"


@dataclass(frozen=True)
class ClassList:
    """Classes of a label data set and their keys.

    A class id is the position of a class in order of first appearance.
    """

    encoding: Encoding
    keys: tuple[ClassKey, ...]

    @classmethod
    def from_colours(cls, colours: object) -> "ClassList":
        """The class list of a parsed class_list.json, ``{"#ff0000": "Car 1", ...}``.

        A2D2 numbers touching instances ("Car 1" to "Car 4"), 55 colours for 38 classes. The numbers
        count no objects and are dropped. They have one digit: a longer number ("Zone 10") belongs
        to the name, for classes once merged cannot be told apart, while those that were kept apart
        can be added up.

        Raises:
            InvalidInput: It is no class list.
        """
        if not isinstance(colours, Mapping) or not colours:
            raise InvalidInput('class list: expected an object like {"#ff0000": "Car 1", ...}')
        keys = []
        for colour, name in colours.items():
            key, text = _colour(colour), _name(colour, name)
            if numbered := _INSTANCE.fullmatch(text):
                keys.append(ClassKey(key, numbered[1], key, instance=int(numbered[2])))
            else:
                keys.append(ClassKey(key, text, key))
        return cls(Encoding("colour"), tuple(keys))._checked()

    @classmethod
    def from_json(cls, data: Any) -> "ClassList":
        """The class list that ``to_json`` wrote, or a layout's ``encoding`` and ``classes``.

        Raises:
            InvalidInput: It is no class list.
        """
        if not isinstance(data, Mapping) or not isinstance(data.get("classes"), list):
            raise InvalidInput("class list: expected an encoding, and classes with key and name")
        encoding = Encoding.parse(data.get("encoding"))
        keys = [key for row in data["classes"] for key in _keys_of(encoding, row)]
        if not keys:
            raise InvalidInput("class list: it has no class; give one, with key and name")
        return cls(encoding, tuple(keys))._checked()

    def to_json(self) -> dict[str, Any]:
        """The class list as `from_json` reads it: what records, manifests and models hold."""
        rows = []
        for key in self.keys:
            row: dict[str, Any] = {"key": self._key_json(key.key), "name": key.name}
            if key.colour != key.key or not self.encoding.is_colour:
                row["colour"] = f"#{key.colour:06x}"
            rows.append(row)
            row |= {"ignore": True} if key.ignore else {}
            row |= {"tag": key.tag} if key.tag else {}
            row |= {} if key.instance is None else {"instance": key.instance}
        return {"encoding": self.encoding.text, "classes": rows}

    def __len__(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Class names, such as "RD normal street"."""
        return tuple(dict.fromkeys(key.name for key in self.keys))

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """For each class its tag name, such as "rd_normal_street"."""
        tag_of_class: dict[str, str] = {}
        for key in self.keys:
            tag_of_class.setdefault(key.name, key.tag or tag_name(key.name))
        return tuple(tag_of_class.values())

    @cached_property
    def class_ids(self) -> tuple[int, ...]:
        """For each of ``keys`` the id of its class."""
        position = {name: index for index, name in enumerate(self.classes)}
        return tuple(position[key.name] for key in self.keys)

    @cached_property
    def ignored(self) -> frozenset[int]:
        """Class ids that training and scores leave out."""
        return frozenset(
            class_id for key, class_id in zip(self.keys, self.class_ids, strict=True) if key.ignore
        )

    @cached_property
    def learned(self) -> tuple[str, ...]:
        """Names of the classes that training and scores do not leave out."""
        return tuple(name for n, name in enumerate(self.classes) if n not in self.ignored)

    @cached_property
    def left_out(self) -> tuple[str, ...]:
        """Names of the classes that training and scores leave out."""
        return tuple(self.classes[class_id] for class_id in sorted(self.ignored))

    @cached_property
    def class_of_key(self) -> Mapping[int, int]:
        """Class id of each key."""
        return dict(zip((key.key for key in self.keys), self.class_ids, strict=True))

    @cached_property
    def meaning(self) -> tuple[str, Mapping[int, str]]:
        """Encoding, and tag of each key: what pixels count as, whatever the list's order."""
        tags = {key: self.tags[class_id] for key, class_id in self.class_of_key.items()}
        return self.encoding.text, tags

    @property
    def most_classes(self) -> int:
        """How many classes a list of this encoding may have."""
        return UNKNOWN_CLASS - self.encoding.is_panoptic  # void has an id of its own

    @cached_property
    def lookup_table(self) -> npt.NDArray[np.uint8]:
        """(encoding.values,) uint8 [class id] by a pixel's value; UNKNOWN_CLASS for no class.

        Of panoptic labels by a segment's category.
        """
        by_key = np.full(self.encoding.values, UNKNOWN_CLASS, dtype=np.uint8)
        by_key[[key.key for key in self.keys]] = self.class_ids
        if self.encoding.divisor == 1:
            return by_key
        return by_key[self.encoding.keys(np.arange(self.encoding.values))]

    @cached_property
    def class_colours(self) -> npt.NDArray[np.uint8]:
        """(n_classes, 3) uint8 [RGB]: the colour of each class's first key, to draw it with."""
        first = {
            of: key.colour for key, of in reversed([*zip(self.keys, self.class_ids, strict=True)])
        }
        return np.array(
            [[first[c] >> 16, first[c] >> 8 & 255, first[c] & 255] for c in range(len(self))],
            dtype=np.uint8,
        )

    def _key_json(self, key: int) -> int | str:
        return self.encoding.key_text(key) if self.encoding.is_colour else key

    def _checked(self) -> "ClassList":
        """The list itself, where every key has one class, and every class a tag of its own."""
        for key, times in Counter(key.key for key in self.keys).items():
            if times > 1:
                what = "the colour" if self.encoding.is_colour else "key"
                raise InvalidInput(
                    f"class list: {what} {self.encoding.key_text(key)} is listed "
                    f"{'twice' if times == 2 else f'{times} times'}"
                )
        if len(self.classes) > self.most_classes:
            raise InvalidInput(
                f"class list: {len(self.classes)} classes; at most {self.most_classes} are "
                "supported"
            )
        self._check_alike()
        if "" in self.tags:
            nameless = ", ".join(f"'{name}'" for name in self.classes if not tag_name(name))
            raise InvalidInput(
                f"class list: {nameless}: a class's tag has the letters a to z and the digits of "
                "its name, and here is none; give it a name with some, such as 'Car', in "
                "class_list.json or in a copy for --class-list"
            )
        for tag, times in Counter(self.tags).items():
            if times > 1:
                pairs = zip(self.classes, self.tags, strict=True)
                clash = ", ".join(name for name, its in pairs if its == tag)
                raise InvalidInput(f"class list: {clash} would share the tag '{tag}'; rename one")
        return self

    def _check_alike(self) -> None:
        first: dict[str, ClassKey] = {}
        for key in self.keys:
            other = first.setdefault(key.name, key)
            if (key.ignore, key.tag) != (other.ignore, other.tag):
                raise InvalidInput(
                    f"class list: {key.name}: its keys {self.encoding.key_text(other.key)} and "
                    f"{self.encoding.key_text(key.key)} differ in ignore or tag; write both alike"
                )


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


def _keys_of(encoding: Encoding, row: Any) -> Iterable[ClassKey]:
    if not isinstance(row, Mapping) or "key" not in row or "name" not in row:
        raise InvalidInput(f"class list: {str(row)[:80]}: expected a class with key and name")
    if odd := sorted(row.keys() - _FIELDS):
        raise InvalidInput(
            f"class list: {row['name']}: no such entry {ascii(odd[0])[:60]}; expected "
            f"{', '.join(sorted(_FIELDS))}"
        )
    keys = row["key"] if isinstance(row["key"], list) else [row["key"]]
    name = _name(", ".join(map(str, keys)), row["name"])
    if not isinstance(row.get("ignore", False), bool):
        raise InvalidInput(
            f"class list: {name}: ignore = {ascii(row['ignore'])[:60]}; expected true or false"
        )
    if (instance := row.get("instance")) is not None and (
        type(instance) is not int or not 0 <= instance <= 9
    ):
        raise InvalidInput(
            f"class list: {name}: instance = {ascii(instance)[:60]}; expected 0 to 9"
        )
    tag = row.get("tag", "")
    if not isinstance(tag, str) or (tag and not _TAG.fullmatch(tag)):
        raise InvalidInput(
            f"class list: {name}: tag {ascii(tag)[:60]}: expected letters a to z, digits and "
            "single underscores, such as rd_normal_street"
        )
    if not keys:
        raise InvalidInput(f"class list: {name} has no key; give one, or leave the class out")
    for text in keys:
        key = _key(encoding, text, name)
        colour = _colour(row["colour"]) if "colour" in row else _drawn(encoding, key)
        yield ClassKey(key, name, colour, row.get("ignore", False), tag, instance)


def _key(encoding: Encoding, value: Any, name: str) -> int:
    if encoding.is_colour:
        return _colour(value)
    most = encoding.most_keys
    if type(value) is not int or not 0 <= value < most:
        raise InvalidInput(
            f"class list: {name}: key {ascii(value)[:60]}: expected a whole number from 0 to "
            f"{most - 1:,}, as the encoding is {encoding.text}"
        )
    return value


def _drawn(encoding: Encoding, key: int) -> int:
    """A colour that neighbouring numbers have far apart; a colour itself.

    Source: the golden ratio's multiples spread evenly; here over 24-bit colours.
    """
    return key if encoding.is_colour else (key + 1) * 0x9E3779 % COLOURS


def _colour(text: object) -> int:
    if not isinstance(text, str) or not _COLOUR.fullmatch(text):
        raise InvalidInput(f"class list: {ascii(text)[:60]} is not a colour like #ff8000")
    return int(text[1:], 16)


def _name(key: object, name: object) -> str:
    """A class's name; refused is what no table and no picture has room for."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput(f"class list: {key} has no class name")
    if len(name) > MOST_CHARACTERS:
        raise InvalidInput(
            f"class list: the class of {str(key)[:10]} has a name of {len(name):,} characters; "
            f"at most {MOST_CHARACTERS}"
        )
    if not name.isprintable():
        raise InvalidInput(
            f"class list: the class {name!a} has characters that cannot be printed; rename it"
        )
    return name.strip()
