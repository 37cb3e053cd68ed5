"""What labels hold, against a class list: keys of no class, and what they look like."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ingest.labels.class_list import ClassList
from ingest.labels.segments import VOID

_MOST_EXAMPLES = 3
_MOST_KEYS = 1_000
"""Unknown keys that are told apart; of colours there may be millions."""

_EDGE_KEYS = 4
"""An edge that was blended makes several keys of no class at once..."""

_EDGE_SHARE = 0.9
"""... and so much of their pixels has another key beside it, to the left or above."""

_TRAIN_IDS = frozenset({*range(19), 255})
"""Of Cityscapes: 0 to 18, and 255 for what is ignored."""

_LEARNED_IDS = frozenset({7, 8, 11, 12, 13, 17, *range(19, 29), 31, 32, 33})
"""Those of its labelIds that have a trainId."""

_LEAST_OBJECT = 256
"""Of ids of objects: they have 16 bits."""


@dataclass
class UnknownKey:
    """Key that no class has."""

    pixels: int = 0
    labels: int = 0
    examples: list[str] = field(default_factory=list)
    """The first labels that have it."""


@dataclass
class LabelCheck:
    """Check of labels against the class list that they are counted with."""

    class_list: ClassList
    labels: int = 0
    """Labels looked at."""
    pixels: int = 0
    seen: set[int] = field(default_factory=set)
    """Keys seen, with a class or without."""
    unknown: dict[int, UnknownKey] = field(default_factory=dict)
    blended: list[str] = field(default_factory=list)
    """Labels whose edges look blended, as by resizing with interpolation."""
    all_ignored: list[str] = field(default_factory=list)
    """Labels without a pixel of a class that is not ignored."""

    def add(self, label: str, keys: npt.NDArray[np.int64]) -> None:
        """Take a label in.

        Args:
            label: What to call it.
            keys: (H, W) int64, the key of each pixel; VOID is none that is looked for.
        """
        self.labels += 1
        self.pixels += keys.size
        values, counts = np.unique(keys, return_counts=True)
        self.seen.update(values.tolist())
        classes = self.class_list.class_of_key
        unknown = [key for key in values.tolist() if key not in classes and key != VOID]
        learned = (classes[key] for key in values.tolist() if key in classes)
        if not any(class_id not in self.class_list.ignored for class_id in learned):
            self.all_ignored.append(label)
        of_key = dict(zip(values.tolist(), counts.tolist(), strict=True))
        for key in unknown:
            if key in self.unknown or len(self.unknown) < _MOST_KEYS:
                entry = self.unknown.setdefault(key, UnknownKey())
                entry.pixels += of_key[key]
                entry.labels += 1
                if len(entry.examples) < _MOST_EXAMPLES:
                    entry.examples.append(label)
        if len(unknown) >= _EDGE_KEYS and _at_edges(keys, unknown) >= _EDGE_SHARE:
            self.blended.append(label)

    @property
    def never_seen(self) -> list[str]:
        """Names of the classes that no label has a pixel of."""
        class_ids = {self.class_list.class_of_key.get(key) for key in self.seen}
        return [
            name
            for class_id, name in enumerate(self.class_list.classes)
            if class_id not in class_ids
        ]

    @property
    def suspicions(self) -> list[str]:
        """What the keys look like, in sentences."""
        known = self.class_list.class_of_key
        sentences = []
        if self.blended:
            sentences.append(
                f"{len(self.blended):,} labels have several unknown keys along their edges, such "
                f"as {self.blended[0]}: they look resized with interpolation, or anti-aliased; "
                "make them again with nearest neighbours"
            )
        if not self.class_list.encoding.is_colour:
            if set(known) >= _LEARNED_IDS and self.seen <= _TRAIN_IDS and 255 in self.seen:
                sentences.append(
                    "all keys are 0 to 18 and 255, as Cityscapes' trainIds are, and the classes "
                    "are others': give the source a layout of trainIds, or another table of classes"
                )
            elif set(known) <= _TRAIN_IDS and any(18 < key < 34 for key in self.unknown):
                sentences.append(
                    "the classes are Cityscapes' trainIds, and the labels have keys of 19 to 33, "
                    "as its labelIds have: give the source a layout of labelIds"
                )
        if self.class_list.encoding.text == "index":
            sentences += self._of_objects()
        return sentences

    def _of_objects(self) -> list[str]:
        """What is said where a divisor makes classes of all large keys."""
        large = sorted(key for key in self.unknown if key >= _LEAST_OBJECT)
        pixels = {key: self.unknown[key].pixels for key in large}
        # Divided by 256, what has no objects is a multiple of it.
        multiples = sum(count for key, count in pixels.items() if key % 256 == 0)
        divisors = (256, 1000) if 2 * multiples > sum(pixels.values()) else (1000, 256)
        for divisor in divisors:
            if large and all(key // divisor in self.class_list.class_of_key for key in large):
                sentence = (
                    f"keys such as {large[0]} are ids of objects: divided by {divisor} each is a "
                    f'class; give the source a layout with encoding = "index//{divisor}"'
                )
                return [sentence]
        return []

    def to_json(self) -> dict[str, Any]:
        """The check as data."""
        key_text = self.class_list.encoding.key_text
        most = sorted(self.unknown.items(), key=lambda item: (-item[1].pixels, item[0]))
        return {
            "labels": self.labels,
            "pixels": self.pixels,
            "unknown_keys": [
                {
                    "key": key_text(key),
                    "pixels": entry.pixels,
                    "labels": entry.labels,
                    "examples": entry.examples,
                }
                for key, entry in most
            ],
            "classes_never_seen": self.never_seen,
            "labels_all_ignored": self.all_ignored,
            "labels_with_blended_edges": self.blended,
            "suspicions": self.suspicions,
        }


def _at_edges(keys: npt.NDArray[np.int64], unknown: Sequence[int]) -> float:
    """Share of the unknown pixels (0 to 1) that differ from the pixel on their left or above."""
    is_unknown = np.isin(keys, unknown)
    differs = np.zeros(keys.shape, bool)
    differs[:, 1:] |= keys[:, 1:] != keys[:, :-1]
    differs[1:] |= keys[1:] != keys[:-1]
    return float(differs[is_unknown].mean())
