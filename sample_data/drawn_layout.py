"""Frames in a layout: names, and labels in its encoding with its class ids.

A layout whose classes are the user's gets the drawn ones in a layout.toml. A file of classes that
comes with the data, as Mapillary's, is drawn with the classes of Mapillary Vistas 1.2.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from catalog.errors import InvalidInput
from ingest.labels.class_list import ClassKey, ClassList
from ingest.layouts.layout import PATTERNS, Layout
from ingest.layouts.pattern import FOLDERS, Pattern
from ingest.layouts.read_layout import layout_of, layout_text, preset, read_layout
from sample_data.cameras import CAMERAS
from sample_data.class_words import class_of_entry
from sample_data.classes import (
    COLOUR_TO_ENTRY,
    ENTRIES,
    IDS_OF_CLASS,
    PALETTE,
)
from sample_data.layout import CALIBRATION_FILE, calibration_json, camera_json
from sample_data.plan import PlannedFrame, plan_frame
from sample_data.png_writer import CAMERA, encode_png
from sample_data.styles import SCENES

A2D2 = "a2d2"
"""The layout of the committed set."""

REDUCTIONS = (1, 2, 4, 8)
"""What width and height may be divided by: they are whole afterwards."""

_JPEG_QUALITY = 92
_FOLDER_OF_A2D2 = "camera_lidar_semantic/"
_CAMERA = "front_center"
_CONDITIONS = ("fog", "night", "rain", "snow")
_LONG_SPLITS = ("ade20k", "mapillary-1.2", "mapillary-2.0")
"""Presets whose makers write training and validation."""

_APART, _MOST_SEGMENTS = 7_919, (1 << 24) - 1
"""Difference of the segments' ids of two entries, and how many ids there are but void."""

_LEAST_DIGITS = 3
"""Digits that number the frames of a drive; fewer do not."""


@dataclass(frozen=True)
class DrawnLayout:
    """A layout that frames are written in."""

    text: str
    """Name of a preset, or path of a layout file."""
    layout: Layout
    classes: ClassList
    """The layout's own; those of the drawn frames where it has none."""

    def planned(self, frame: PlannedFrame) -> PlannedFrame:
        """The frame with a camera that the layout's names can say."""
        camera = frame.name.camera
        if "camera" in self.layout.identity and camera in self._cameras:
            return frame
        return replace(
            frame,
            name=replace(frame.name, camera=_CAMERA),
            spec=replace(frame.spec, camera=CAMERAS[_CAMERA]),
        )

    def path(self, frame: PlannedFrame, kind: str) -> str:
        """The path of a file of the frame, below the set's root.

        Args:
            kind: Of the layout's patterns: "image", "label", "camera_json".
        """
        return self._patterns[kind].path_with(self._fields(frame))

    def label_name(self, frame: PlannedFrame) -> str:
        """What the set's record calls the frame's label: its path, in A2D2's sets its file name."""
        path = self.path(frame, "label")
        return path.rpartition("/")[2] if self.layout.name == A2D2 else path

    def files(
        self, frame: PlannedFrame, picture: NDArray[np.uint8], ids: NDArray[np.uint8]
    ) -> dict[str, bytes]:
        """Path and content of the frame's files, the image last.

        Args:
            picture: (H, W, 3) uint8 RGB.
            ids: (H, W) uint8 ids of entries of the drawn class list.
        """
        files = {self.path(frame, "label"): self._label(frame, ids)}
        if "camera_json" in self._patterns:
            files[self.path(frame, "camera_json")] = camera_json(frame.name).encode()
        image = self.path(frame, "image")
        is_png = image.lower().endswith(".png")
        return files | {image: encode_png(picture, CAMERA) if is_png else _jpeg(picture)}

    def own_files(self, reduced: int, frames: Iterable[PlannedFrame]) -> dict[str, bytes]:
        """Path and content of the files that the set has once: classes, calibration, a layout.

        Args:
            frames: All that the set has, for the segments of panoptic labels.
        """
        document, files = self.layout.document, self._segment_files(frames)
        if self.layout.name == A2D2:
            files[CALIBRATION_FILE] = calibration_json(reduced).encode()
        if self.layout.classes is not None:
            return files
        if "class_list_files" in document:
            text = json.dumps(COLOUR_TO_ENTRY, indent=2) + "\n"
            files[document["class_list_files"][-1]] = text.encode()
        elif "class_file" in document:
            text = json.dumps({"labels": _mapillary_rows()}, indent=1) + "\n"
            files[document["class_file"]] = text.encode()
        else:
            files["layout.toml"] = (layout_text(self.text) + _toml(self.classes)).encode()
        return files

    def _segment_files(self, frames: Iterable[PlannedFrame]) -> dict[str, bytes]:
        """The JSON files that name the category of each segment; none but of panoptic labels."""
        if not self.layout.encoding.is_panoptic:
            return {}
        of_file: dict[str, list[dict[str, Any]]] = {}
        for frame in frames:
            label = self.path(frame, "label")
            segments = [
                {"id": number, "category_id": key.key, "iscrowd": 0}
                for number, key in zip(self._segments(frame).tolist(), self._keys, strict=True)
                if key is not None
            ]
            row = {"image_id": frame.index, "file_name": label, "segments_info": segments}
            of_file.setdefault(self.layout.segments_of(label) or "", []).append(row)
        categories = [{"id": key.key, "name": key.name} for key in self.classes.keys]
        return {
            path: json.dumps({"annotations": rows, "categories": categories}).encode()
            for path, rows in of_file.items()
        }

    def _segments(self, frame: PlannedFrame) -> NDArray[np.uint32]:
        """(entries,) uint32: the segment of each entry of the drawn list in a frame; 0 is void."""
        numbers = 1 + (np.arange(len(ENTRIES)) * _APART + frame.index) % _MOST_SEGMENTS
        has_class = [key is not None for key in self._keys]
        return np.where(has_class, numbers, 0).astype(np.uint32)

    def count(self, ids: NDArray[np.uint8]) -> dict[str, int]:
        """Pixels of every class of the layout that occurs; those of no class are left out."""
        of_entry = np.bincount(ids.ravel(), minlength=len(ENTRIES))
        counts: dict[str, int] = {}
        for key, pixels in zip(self._keys, of_entry.tolist(), strict=True):
            if key is not None and pixels:
                counts[key.name] = counts.get(key.name, 0) + pixels
        return {name: counts[name] for name in self.classes.classes if name in counts}

    @cached_property
    def _patterns(self) -> Mapping[str, Pattern]:
        return dict(self.layout.patterns)

    @cached_property
    def _cameras(self) -> tuple[str, ...]:
        return tuple(self.layout.document.get("cameras", CAMERAS))

    @cached_property
    def _forms(self) -> dict[str, str]:
        return {name: form for pattern in self._patterns.values()
                for name, form in pattern.forms.items()}  # fmt: skip

    @cached_property
    def _is_frame_numbered(self) -> bool:
        """True where names number the frames of a scene; else each frame is a scene."""
        form = self._forms.get("frame_number", "0")
        return "frame" in self._forms or not form or _digits(form) >= _LEAST_DIGITS

    def _fields(self, frame: PlannedFrame) -> dict[str, str]:
        return {FOLDERS: _FOLDER_OF_A2D2 if self.layout.name == A2D2 else ""} | {
            field: self._field(field, form, frame) for field, form in self._forms.items()
        }

    def _field(self, field: str, form: str, frame: PlannedFrame) -> str:
        name = frame.name
        drive = name.scene if form else name.scene.replace("_", "")
        match field:
            case "scene":
                return drive if self._is_frame_numbered else f"{drive}-{name.number:06}"
            case "camera":
                cameras = self._cameras
                is_own = name.camera in cameras
                return name.camera if is_own else cameras[frame.index % len(cameras)]
            case "stamp":
                return name.scene.replace("_", "")
            case "split":
                words = (
                    ("training", "validation") if self.text in _LONG_SPLITS else ("train", "val")
                )
                return words[frame.scene % 4 == 1]
            case "frame_number":
                count = name.number if "scene" in self._forms else frame.index
                return (
                    f"{count:0{form or 6}}"
                    if self._is_frame_numbered
                    else "1".ljust(int(form), "0")
                )
            case "frame":
                number = f"{name.number:06}"
                return number if "scene" in self._forms else f"{drive}_{number}"
            case "condition":
                return _CONDITIONS[frame.scene % len(_CONDITIONS)]
        return "_".join("0" * int(digits) for digits in form.split("_")) if form else field

    @cached_property
    def _keys(self) -> tuple[ClassKey | None, ...]:
        return class_of_entry(self.classes)

    @cached_property
    def _values(self) -> NDArray[np.uint32]:
        """(entries,) uint32: the value of a label's pixel, of each entry of the drawn list."""
        encoding = self.layout.encoding
        listed = {key.key for key in self.classes.keys}
        no_class = next(key for key in range(encoding.most_keys) if key not in listed)
        values = []
        for entry, key in zip(ENTRIES, self._keys, strict=True):
            value = no_class if key is None else key.key
            if encoding.divisor == 1:
                values.append(value)
                continue
            number = int(entry[-1]) if entry[-1].isdigit() else 0
            is_object = key is not None and not key.ignore and number and value
            is_whole = encoding.divisor == 256 or is_object
            values.append(
                value * encoding.divisor + number * bool(is_object) if is_whole else value
            )
        return np.array(values, np.uint32)

    def _label(self, frame: PlannedFrame, ids: NDArray[np.uint8]) -> bytes:
        encoding = self.layout.encoding
        if encoding.is_panoptic:
            samples = _bytes_of(self._segments(frame))[:, ::-1]  # R is the lowest byte
            return encode_png(np.ascontiguousarray(samples)[ids], frame.label_encoding)
        values = self._values
        if encoding.is_colour:
            return encode_png(_bytes_of(values)[ids], frame.label_encoding)
        if encoding.channel is not None:
            samples = np.zeros((*ids.shape, 3 if encoding.channel < 3 else 4), np.uint8)
            samples[..., encoding.channel] = values[ids]
            return _png(Image.fromarray(samples))
        if encoding.divisor > 1 or values.max() > 255:
            return _png(Image.fromarray(values.astype(np.uint16)[ids]))
        image = Image.fromarray(values.astype(np.uint8)[ids])
        if "class_file" in self.layout.document:
            image.putpalette(self._palette.tobytes())
        return _png(image)

    @cached_property
    def _palette(self) -> NDArray[np.uint8]:
        """(256, 3) uint8 RGB: the colour of each key."""
        palette = np.zeros((256, 3), np.uint8)
        for key in self.classes.keys:
            palette[key.key] = key.colour >> 16, key.colour >> 8 & 255, key.colour & 255
        return palette


@lru_cache
def drawn_layout(text: str) -> DrawnLayout:
    """The layout of a preset's name, or of a layout file, to write frames in.

    Raises:
        InvalidInput: It is no layout, or its names do not tell the frames apart.
    """
    layout = read_layout(text)
    for key in ("images", "labels"):
        if key not in layout.document:
            raise InvalidInput(f"layout {text}: has no {key}; expected patterns of both to draw")
    drawn = DrawnLayout(text, layout, _classes(layout))
    frames = [plan_frame(index, 0) for index in (0, 1, len(SCENES), 2 * len(SCENES))]
    for key in ("images", "labels"):
        paths = {drawn.path(frame, PATTERNS[key]) for frame in frames}
        if len(paths) < len(frames) or any(layout.match(path) is None for path in paths):
            raise InvalidInput(
                f"layout {text}: {key} = {layout.document[key]}: several drawn frames would be "
                f"{min(paths)}; expected the fields scene, and frame or frame_number, to name them"
            )
    return drawn


def reduced_frame(
    picture: NDArray[np.uint8], ids: NDArray[np.uint8], reduced: int
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Picture and ids of a frame with width and height divided: the mean of pixels, and one id."""
    if reduced == 1:
        return picture, ids
    small = np.asarray(Image.fromarray(picture).reduce(reduced))
    return small, np.ascontiguousarray(ids[reduced // 2 :: reduced, reduced // 2 :: reduced])


def _classes(layout: Layout) -> ClassList:
    if layout.classes is not None:
        return layout.classes
    if "class_file" in layout.document:
        rows = [
            {"key": n, "name": row["readable"], "ignore": not row["evaluate"],
             "colour": "#{:02x}{:02x}{:02x}".format(*row["color"])}
            for n, row in enumerate(_mapillary_rows())
        ]  # fmt: skip
    elif layout.encoding.is_colour:
        return ClassList.from_colours(COLOUR_TO_ENTRY)
    else:
        rows = [
            {"key": n, "name": name, "colour": "#{:02x}{:02x}{:02x}".format(*PALETTE[ids[0]])}
            for n, (name, ids) in enumerate(IDS_OF_CLASS.items())
        ]
    return ClassList.from_json({"encoding": layout.encoding.text, "classes": rows})


def _mapillary_rows() -> list[dict[str, Any]]:
    """The classes of Mapillary Vistas 1.2 as its configuration lists them."""
    table = {**preset("mapillary-1.2").document, "classes": "mapillary-1.2"}
    classes = layout_of(table, "mapillary-1.2").classes
    assert classes is not None
    return [
        {
            "name": key.name,
            "readable": _readable(key.name),
            "color": [key.colour >> 16, key.colour >> 8 & 255, key.colour & 255],
            "evaluate": not key.ignore,
            "instances": False,
        }
        for key in classes.keys
    ]


def _readable(name: str) -> str:
    """A name such as "object--vehicle--ego-car" in words: "Ego Car".

    >>> _readable("object--traffic-sign--front")
    'Traffic Sign (Front)'
    """
    *_, above, last = (word.replace("-", " ").title() for word in name.split("--"))
    return f"{above} ({last})" if last in ("Front", "Back") else last


def _toml(classes: ClassList) -> str:
    """The classes as a layout file lists them."""
    rows = classes.to_json()["classes"]
    lines = (
        ["\n[[classes]]", *(f"{name} = {json.dumps(value)}" for name, value in row.items()), ""]
        for row in rows
    )
    return "".join("\n".join(each) for each in lines)


def _bytes_of(colours: NDArray[Any]) -> NDArray[np.uint8]:
    """(n, 3) uint8 RGB of colours 0xRRGGBB."""
    parts = [colours >> 16, colours >> 8 & 255, colours & 255]
    rgb: NDArray[np.uint8] = np.stack(parts, axis=1).astype(np.uint8)
    return rgb


def _digits(form: str) -> int:
    """Digits of a field written as "6" or "8_6"."""
    return sum(map(int, form.split("_")))


def _jpeg(picture: NDArray[np.uint8]) -> bytes:
    file = BytesIO()
    Image.fromarray(picture).save(file, "JPEG", quality=_JPEG_QUALITY)
    return file.getvalue()


def _png(image: Image.Image) -> bytes:
    file = BytesIO()
    image.save(file, "PNG")
    return file.getvalue()
