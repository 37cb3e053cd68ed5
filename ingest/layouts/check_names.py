"""Files' names held against layouts, before anything is catalogued."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ingest.layouts.layout import FrameId, Layout
from ingest.layouts.pattern import FOLDERS

_EXAMPLES = 10


@dataclass
class LayoutCheck:
    """How names map to frames by a layout."""

    names: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    """Files of each kind."""
    paired: int = 0
    """Frames with image and label."""
    images_alone: int = 0
    labels_alone: int = 0
    twice: list[tuple[str, str]] = field(default_factory=list)
    """Files that would be the same kind of file of one frame."""
    examples: list[tuple[str, str, Mapping[str, str]]] = field(default_factory=list)
    """Name, kind and fields of the first files."""
    unmatched: list[tuple[str, str]] = field(default_factory=list)
    """Names that fit no pattern, the first of each ending, and why."""
    unmatched_names: int = 0
    values: dict[str, Counter[str]] = field(default_factory=dict)
    """Of scene, camera and each tag, how many images have each value."""

    def to_json(self) -> dict[str, Any]:
        """The check as data."""
        return {
            "names": self.names,
            "files": dict(self.kinds),
            "paired": self.paired,
            "images_without_label": self.images_alone,
            "labels_without_image": self.labels_alone,
            "twice": [list(pair) for pair in self.twice],
            "values": {tag: dict(values) for tag, values in self.values.items()},
            "examples": [
                {"name": name, "kind": kind, "fields": dict(fields)}
                for name, kind, fields in self.examples
            ],
            "unmatched": self.unmatched_names,
            "unmatched_examples": [
                {"name": name, "reason": reason} for name, reason in self.unmatched
            ],
        }


def check_names(layout: Layout, names: Iterable[str]) -> LayoutCheck:
    """Hold names against a layout; memory grows with their number."""
    check = LayoutCheck()
    files: dict[FrameId, dict[str, str]] = {}
    of_kind: Counter[str] = Counter()
    for name in names:
        check.names += 1
        match = layout.match(name)
        frame = None if match is None else layout.frame_of(match[1])
        if match is None or frame is None:
            check.unmatched_names += 1
            ending = name.rpartition(".")[2] if "." in name.rpartition("/")[2] else ""
            of_kind[ending] += 1
            if len(check.unmatched) < _EXAMPLES and of_kind[ending] <= 3:
                check.unmatched.append((name, why_not(layout, name)))
            continue
        kind, fields = match
        check.kinds[kind] += 1
        if check.kinds[kind] <= 2:
            check.examples.append((name, kind, fields))
        if kind == "image":
            _count_values(layout, frame, check)
        if kind in ("image", "label"):
            of_frame = files.setdefault(frame, {})
            if kind in of_frame and len(check.twice) < _EXAMPLES:
                check.twice.append((of_frame[kind], name))
            of_frame.setdefault(kind, name)
    check.paired = sum(len(of_frame) == 2 for of_frame in files.values())
    check.images_alone = sum("label" not in of_frame for of_frame in files.values())
    check.labels_alone = sum("image" not in of_frame for of_frame in files.values())
    return check


def why_not(layout: Layout, name: str) -> str:
    """Why a name follows no pattern: how far each goes, in words."""
    parts = name.split("/")
    reasons = []
    for kind, pattern in layout.patterns:
        written = pattern.parts
        if FOLDERS not in written and len(written) != len(parts):
            reasons.append(f"{kind}: has {len(parts)} parts, {pattern.text} has {len(written)}")
        elif not name.endswith(pattern.ending):
            reasons.append(f"{kind}: does not end in {pattern.ending}")
        else:
            fields = pattern.match(name)
            what = f"does not follow {pattern.text}"
            if fields is not None and layout.match(name) is None:
                what = f"camera {fields['camera']} is none of its cameras"
            elif fields is not None:
                what = f"frame number {fields['frame_number']} is larger than 2^31 - 1"
            reasons.append(f"{kind}: {what}")
    return "; ".join(reasons)


def _count_values(layout: Layout, frame: FrameId, check: LayoutCheck) -> None:
    values = {"scene": frame.scene, "camera": frame.camera}
    for tag, value in {**values, **dict(zip(layout.tags, frame.tags, strict=True))}.items():
        check.values.setdefault(tag, Counter())[value] += 1
