"""Files' names held against layouts, before anything is catalogued."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from ingest.layouts.layout import FileName, Layout
from ingest.layouts.pattern import FOLDERS

LOOKED_AT = 2_000
"""Names that tell which layout a source has."""

_EXAMPLES = 10
_ANY_FIELD = re.compile(r"\{[^}]*\}|\*\*")
_IGNORED_ENDINGS = (".txt", ".md", ".csv", ".pdf", ".toml", ".yaml", ".yml")


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
    files: dict[tuple[str, ...], dict[str, str]] = {}
    of_kind: Counter[str] = Counter()
    for name in names:
        check.names += 1
        parsed = layout.parse(name)
        if parsed is None:
            check.unmatched_names += 1
            ending = name.rpartition(".")[2] if "." in name.rpartition("/")[2] else ""
            of_kind[ending] += 1
            if len(check.unmatched) < _EXAMPLES and of_kind[ending] <= 3:
                check.unmatched.append((name, why_not(layout, name)))
            continue
        check.kinds[parsed.kind] += 1
        if check.kinds[parsed.kind] <= 2:
            check.examples.append((name, parsed.kind, parsed.fields))
        if parsed.kind == "image":
            _count_values(layout, parsed, check)
        if parsed.kind in ("image", "label"):
            frame = files.setdefault(parsed.frame, {})
            if parsed.kind in frame and len(check.twice) < _EXAMPLES:
                check.twice.append((frame[parsed.kind], name))
            frame.setdefault(parsed.kind, name)
    check.paired = sum(len(frame) == 2 for frame in files.values())
    check.images_alone = sum("label" not in frame for frame in files.values())
    check.labels_alone = sum("image" not in frame for frame in files.values())
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
            what = (
                f"camera {fields['camera']} is none of its cameras"
                if fields
                else (f"does not follow {pattern.text}")
            )
            reasons.append(f"{kind}: {what}")
    return "; ".join(reasons)


def recognised(
    layouts: Sequence[tuple[str, Layout]], names: Iterable[str]
) -> list[tuple[str, float]]:
    """Names of the layouts that fit, and the share of names (0 to 1) that they fit, best first.

    A layout fits where it pairs an image with a label.
    """
    looked_at = [name for name in islice(names, LOOKED_AT) if not name.endswith(_IGNORED_ENDINGS)]
    shares = [(name, share) for name, layout in layouts if (share := _share(layout, looked_at)) > 0]
    rank = {name: _literals(layout) for name, layout in layouts}
    return sorted(shares, key=lambda each: (-round(each[1], 3), -rank[each[0]], each[0]))


def _literals(layout: Layout) -> int:
    """Characters of its patterns that are no field: of two that fit, more say more."""
    return sum(len(_ANY_FIELD.sub("", pattern.text)) for _, pattern in layout.patterns)


def _share(layout: Layout, names: Sequence[str]) -> float:
    parsed = [name for name in map(layout.parse, names) if name is not None]
    images = {name.frame for name in parsed if name.kind == "image"}
    labels = {name.frame for name in parsed if name.kind == "label"}
    return len(parsed) / len(names) if images & labels else 0.0


def _count_values(layout: Layout, parsed: FileName, check: LayoutCheck) -> None:
    constants = layout.document
    named = {
        "scene": parsed.fields.get("scene") or constants.get("scene", ""),
        "camera": parsed.fields.get("camera") or constants.get("camera", "main"),
    }
    for tag in layout.tags:
        named[tag] = parsed.fields["split" if tag == "given_split" else tag]
    for tag, value in named.items():
        if value:
            check.values.setdefault(tag, Counter())[value] += 1
