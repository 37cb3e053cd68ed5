"""Classes of a dataset: names, colours, and the class ids of a label image's keys."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from framesift.data.png import read_rgb, read_values
from framesift.errors import BadFile

UNKNOWN_CLASS = 255
"""Class id of a pixel whose key the class list does not have."""

CLASSES_FILE = "classes.json"

UInt8 = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Classes:
    """Classes of a dataset."""

    names: tuple[str, ...]
    """Class names; a class id is a position in this list."""
    keys: Mapping[int, int]
    """The class id of each key of a label image: a colour 0xRRGGBB, or a number."""
    drawn: tuple[int, ...]
    """0xRRGGBB to draw each class with."""
    encoding: str = "colour"
    """How a pixel gives its key: "colour", "index", "index//1000", "channel:0". Of "panoptic" it is
    the id R + 256 G + 65536 B of a segment, whose category is the key.
    """
    ignored: frozenset[int] = frozenset()
    """Class ids that training and scores leave out."""
    below: Mapping[str, "Classes"] = field(default_factory=dict)
    """Of a dataset of several data sets, by the folder that labels lie below: these classes, with
    keys and encoding of the labels there. Then ``keys`` is empty.
    """

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
            content = json.loads(path.read_text(encoding="utf-8"))
            rows, encoding = content["classes"], content.get("encoding", "colour")
            name_of_keys = "colours" if encoding == "colour" else "keys"
            keys = {
                _key(key): row["id"]
                for row in rows
                for key in (() if "labels" in content else row[name_of_keys])
            }
            names = tuple(str(row["name"]) for row in rows)
            drawn = tuple(_key(row["colour"]) for row in rows)
            ignored = frozenset(row["id"] for row in rows if row.get("ignore"))
        except OSError as error:
            raise BadFile(f"{path}: {error.strerror}; expected a list of classes") from error
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise BadFile(f"{path}: is no list of classes: {error}") from error
        if [row["id"] for row in rows] != list(range(len(rows))):
            raise BadFile(f"{path}: expected the ids 0, 1, 2... in this order")
        classes = cls(names, keys, drawn, encoding, ignored)
        below = {
            folder: replace(classes, keys=_keys_of(of["ids"]), encoding=of["encoding"])
            for of in content.get("labels", ())
            for folder in of["below"]
        }
        return replace(classes, below=below)

    @classmethod
    def of_manifest(cls, header: Mapping[str, Any], roots: Mapping[str, str]) -> "Classes":
        """The classes of a manifest's header.

        Args:
            roots: Where each source's files lie.
        """
        names = tuple(header["classes"])
        lists = [header["class_list"], *header.get("class_lists", ())]
        keys: list[dict[int, int]] = []
        drawn: dict[int, int] = {}
        ignored: set[int] = set()
        learned: set[int] = set()
        for class_list in lists:
            keys.append({})
            own = dict.fromkeys(row["name"] for row in class_list["classes"])
            ids = dict(zip(own, class_list.get("ids", range(len(names))), strict=False))
            for row in class_list["classes"]:
                key, class_id = _key(row["key"]), ids[row["name"]]
                keys[-1][key] = class_id
                drawn.setdefault(class_id, _key(row.get("colour", row["key"])))
                (ignored if row.get("ignore") else learned).add(class_id)
        colours = tuple(drawn[class_id] for class_id in range(len(names)))
        of_list = [
            cls(names, its_keys, colours, class_list["encoding"], frozenset(ignored - learned))
            for its_keys, class_list in zip(keys, lists, strict=True)
        ]
        if len(lists) == 1:
            return of_list[0]
        further = {
            source: classes
            for classes, class_list in zip(of_list[1:], lists[1:], strict=True)
            for source in class_list["sources"]
        }
        below = {root: further.get(source, of_list[0]) for source, root in roots.items()}
        return replace(of_list[0], keys={}, below=below)

    @cached_property
    def palette(self) -> UInt8:
        """(n_classes, 3) uint8 [RGB]: the colour to draw each class with."""
        rgb = [[colour >> 16, colour >> 8 & 255, colour & 255] for colour in self.drawn]
        return np.array(rgb, np.uint8).reshape(-1, 3)

    def read_label(self, path: str, segments: str | None = None) -> UInt8:
        """A label image file as (H, W) uint8 [class id].

        Args:
            segments: Of a panoptic label "id:category" with blanks between, as manifests and lists
                of files have them.

        Raises:
            BadFile: It is missing, truncated or damaged, or has no such samples as the encoding, or
                is panoptic and its segments are not given.
            MissingPackage: There is no Pillow.
        """
        if self.below:
            return self._of_label(path).read_label(path, segments)
        if self.encoding == "colour":
            return self.ids_of(read_rgb(path))
        if self.encoding == "panoptic":
            return self._of_segments(path, segments)
        kind, _, channel = self.encoding.partition(":")
        ids: UInt8 = self._table[read_values(path, int(channel) if kind == "channel" else None)]
        return ids

    def ids_of(self, rgb: UInt8) -> UInt8:
        """The class id of each pixel of a label in colours, UNKNOWN_CLASS where none is listed.

        Args:
            rgb: (H, W, 3) uint8.

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
        """(2**24,) or (2**16,) uint8 [class id] by a pixel's colour or value."""
        table = np.full(1 << (24 if self.encoding == "colour" else 16), UNKNOWN_CLASS, np.uint8)
        table[list(self.keys)] = list(self.keys.values())
        _, _, divisor = self.encoding.partition("//")
        if not divisor:
            return table
        values = np.arange(len(table))
        keys = values // int(divisor)
        # Cityscapes: a class without instances stands for itself.
        if divisor == "1000":
            keys = np.where(values < 1000, values, keys)
        by_value: UInt8 = table[keys]
        return by_value

    def _of_segments(self, path: str, segments: str | None) -> UInt8:
        if segments is None:
            raise BadFile(f"{path}: is a panoptic label, and its segments are not given")
        try:
            pairs = sorted(tuple(map(int, pair.split(":"))) for pair in segments.split())
            listed = np.array([(0, -1), *pairs], np.int64).reshape(-1, 2)
        except ValueError as error:
            raise BadFile(f"{path}: its segments are damaged: {segments[:60]!a}") from error
        of_segment = [self.keys.get(category, UNKNOWN_CLASS) for category in listed[:, 1].tolist()]
        rgb = read_rgb(path).astype(np.int64)
        numbers = rgb[..., 0] | rgb[..., 1] << 8 | rgb[..., 2] << 16
        positions = np.searchsorted(listed[:, 0], numbers, side="right") - 1
        ids: UInt8 = np.array(of_segment, np.uint8)[positions]
        ids[listed[positions, 0] != numbers] = UNKNOWN_CLASS
        return ids

    def _of_label(self, path: str) -> "Classes":
        folders = [folder for folder in self.below if path.startswith(folder.rstrip("/") + "/")]
        if not folders:
            raise BadFile(f"{path}: lies below no folder of the dataset: {', '.join(self.below)}")
        return self.below[max(folders, key=len)]

    def __getstate__(self) -> dict[str, Any]:
        """Without the table of 16 MB: processes that load data each make their own."""
        names = ("names", "keys", "drawn", "encoding", "ignored", "below")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Take what `__getstate__` gave."""
        for name, value in state.items():
            object.__setattr__(self, name, value)


def _keys_of(ids: Mapping[str, int]) -> dict[int, int]:
    """Class id of each key, which JSON has as a text."""
    return {_key(key if key.startswith("#") else int(key)): of for key, of in ids.items()}


def _key(key: int | str) -> int:
    return key if isinstance(key, int) else int(key.removeprefix("#"), 16)
