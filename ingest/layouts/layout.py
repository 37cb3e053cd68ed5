"""A layout: which files are a frame's, what their names say, and what a label's pixels mean.

A layout is a document, TOML in a file and JSON in a record (docs/layouts.md has its keys):

    images = "leftImg8bit/{split}/{scene}/{frame}_leftImg8bit.png"
    labels = "gtFine/{split}/{scene}/{frame}_gtFine_labelIds.png"
    encoding = "index"
    camera = "front_center"
    classes = [{key = 7, name = "road", colour = "#804080"}]
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from catalog.errors import InvalidInput, nearest_names
from catalog.lake.schema import FILES_COLUMNS, FRAME_TAGS_COLUMNS, GIVEN_SPLIT, POSITION_TAGS
from ingest.labels.class_list import ClassList
from ingest.labels.encoding import Encoding
from ingest.layouts.pattern import FOLDERS, Pattern

PATTERNS = {
    "images": "image", "labels": "label", "lidar": "lidar", "camera_json": "camera_json",
    "boxes": "boxes",
}  # fmt: skip
"""Key of a layout and the kind of file whose pattern it is."""

_OF_FRAME = (FOLDERS, "scene", "camera", "frame_number", "stamp", "frame")
"""Fields that say which frame it is, and are no tags."""

NO_CAMERA = "main"
"""Camera of frames whose names have none, and whose layout says none."""

_LARGEST_NUMBER = 2**31 - 1
"""Of a frame: the catalog's column is INTEGER."""

_TEXTS = ("name", "title", "variant_of", "scene", "camera", "class_file", "segments")
_LISTS = ("cameras", "class_list_files")
_OF_CLASSES = ("encoding", "class_file", "class_list_files", "class_format", "classes")
"""Keys that say what a label's pixels mean, and nothing of names."""

_CLASS_FORMATS = ("mapillary",)
_KEYS = (
    *PATTERNS, *_TEXTS, *_LISTS, "encoding", "class_format", "positions", "merge_trees", "classes",
)  # fmt: skip


class FrameId(NamedTuple):
    """Identity of a frame, which its files have in common."""

    group: str
    """Its scene with what stands above it: folders and tags. Files of a group are paired, and no
    others.
    """
    scene: str
    camera: str
    stamp: str
    """The names' {stamp}, such as "YYYYMMDDhhmmss"; empty where they have none."""
    number: int | None
    """Frame number within the scene; None where names have none."""
    name: str
    """The names' {frame}; empty where they have none."""
    tags: tuple[str, ...]
    """Values of Layout.tags."""

    @property
    def identity(self) -> tuple[str, str, int | None]:
        """Scene, camera and number: the frame, in whichever tree its files lie."""
        return self.scene, self.camera, self.number


class FrameName(NamedTuple):
    """What a file's name says of it: its frame, and its kind (of PATTERNS: "image", "label"...)."""

    frame: FrameId
    kind: str


@dataclass(frozen=True)
class Layout:
    """Layout of a source's files."""

    document: Mapping[str, Any]
    """What it was read from."""
    encoding: Encoding
    patterns: tuple[tuple[str, Pattern], ...]
    """Kind of file and its pattern."""

    @classmethod
    def of(cls, document: Any) -> "Layout":
        """The layout of a document.

        Raises:
            InvalidInput: It is none, or says what contradicts itself.
        """
        if not isinstance(document, Mapping):
            raise InvalidInput("layout: expected keys such as images, labels and encoding")
        for name in document:
            if name not in _KEYS:
                near = nearest_names(name, _KEYS)
                hint = f"did you mean {near[0]}?" if near else f"expected {', '.join(_KEYS)}"
                raise InvalidInput(f"layout: no such key '{name}'; {hint}")
        if "images" not in document and "labels" not in document:
            raise InvalidInput("layout: has neither images nor labels; give a pattern of each")
        patterns = tuple(
            (kind, Pattern(document[name])) for name, kind in PATTERNS.items() if name in document
        )
        layout = cls(document, Encoding.parse(document.get("encoding", "index")), patterns)
        layout._check()
        return layout

    @property
    def name(self) -> str:
        """Its name: a preset's, or its file's."""
        return str(self.document.get("name", ""))

    @property
    def title(self) -> str:
        """What it is the layout of, in words."""
        return str(self.document.get("title", ""))

    @property
    def merges_trees(self) -> bool:
        """True where frames of one scene, camera and number are one frame in any folder (`**`)."""
        return bool(self.document.get("merge_trees", False))

    @cached_property
    def naming(self) -> Mapping[str, Any]:
        """What it says of names: where this changes, a scan pairs all files again."""
        left_out = ("name", "title", "variant_of", *_OF_CLASSES)
        return {key: value for key, value in self.document.items() if key not in left_out}

    @cached_property
    def identity(self) -> tuple[str, ...]:
        """Fields that say which frame it is: those that images and labels share."""
        fields = [pattern.fields for kind, pattern in self.patterns if kind in ("image", "label")]
        return tuple(name for name in fields[0] if all(name in other for other in fields))

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """Tags that names give, beside scene, camera and frame number."""
        return tuple(GIVEN_SPLIT if name == "split" else name for name in self._tag_fields)

    @cached_property
    def classes(self) -> ClassList | None:
        """Its classes; None where the source has them in a file of its own, or nobody gave any."""
        if "classes" not in self.document:
            return None
        return ClassList.from_json(
            {"encoding": self.encoding.text, "classes": self.document["classes"]}
        )

    @property
    def lacks_classes(self) -> bool:
        """True where neither it nor a file of the data set says the classes."""
        return (
            self.classes is None
            and "class_file" not in self.document
            and (not self.encoding.is_colour)
        )

    def match(self, key: str) -> tuple[str, Mapping[str, str]] | None:
        """Kind and fields of a file, by its name; None where no pattern fits it.

        Of two patterns that fit, such as {frame}.png and {frame}_mask.png, the one that says more.
        """
        for kind, pattern, ending in self._by_ending:
            if not key.endswith(ending):
                continue
            fields = pattern.match(key)
            if fields is None:
                continue
            if self._cameras is not None and fields.get("camera") not in self._cameras:
                return None
            return kind, fields
        return None

    def parse(self, key: str) -> FrameName | None:
        """Frame and kind of a file, by its name; None where it is no frame's file.

        >>> from ingest.layouts.read_layout import preset
        >>> preset("cityscapes").parse("leftImg8bit/val/ulm/ulm_000001_000019_leftImg8bit.png")
        ... # doctest: +ELLIPSIS
        FrameName(frame=FrameId(group='val/ulm', scene='ulm', camera='front_center', ...
        """
        match = self.match(key)
        if match is None:
            return None
        frame = self.frame_of(match[1])
        return None if frame is None else FrameName(frame, match[0])

    def frame_of(self, fields: Mapping[str, str]) -> FrameId | None:
        """The frame of a name with these fields; None where its number is none of a frame."""
        shared = {name: fields[name] for name in self.identity}
        digits = shared.get("frame_number")
        number = None if digits is None else int(digits)
        if number is not None and number > _LARGEST_NUMBER:
            return None
        tags = tuple([shared[name] for name in self._tag_fields])
        scene = shared.get("scene") or self._scene_without_name(shared)
        above = shared.get(FOLDERS, "") + "".join([f"{tag}/" for tag in tags])
        camera = shared.get("camera", self._camera)
        stamp, name = shared.get("stamp", ""), shared.get("frame", "")
        return FrameId(above + scene, scene, camera, stamp, number, name, tags)

    def positions(self, camera: str) -> dict[str, int]:
        """Value of each position tag, 0 or 1, of a camera."""
        tags = self.document.get("positions", {}).get(camera, ())
        return {tag: int(tag in tags) for tag in POSITION_TAGS}

    @property
    def segments_below(self) -> str | None:
        """Folder that holds the JSON files of the labels' segments, or the only one's key.

        None where its labels have none.
        """
        if isinstance(self._segments, Pattern):
            return self._segments.folder_with({})
        return self._segments

    def segments_of(self, label: str) -> str | None:
        """Key of the JSON file that has a label's segments; None where its labels have none."""
        if isinstance(self._segments, Pattern):
            return self._segments.path_with(dict(self.patterns)["label"].match(label) or {})
        return self._segments

    def names_segments(self, key: str) -> bool:
        """Return whether a file is a JSON file of the labels' segments, by its name."""
        if isinstance(self._segments, Pattern):
            return self._segments.match(key) is not None
        return key == self._segments

    def may_hold_segments(self, key: str) -> bool:
        """Return whether a file, or a folder (ends in a slash), is or may hold one of these."""
        if self.names_segments(key):
            return True
        if isinstance(self._segments, Pattern):
            return self._segments.match_folder(key) is not None
        return key.endswith("/") and (self._segments or "").startswith(key)

    def looks_like_label(self, key: str) -> bool:
        """Return whether a file lies where labels do, and ends as they do: its name must parse."""
        folders, ending = self._label_marks
        return key.endswith(ending) and bool(folders) and not folders.isdisjoint(key.split("/"))

    @cached_property
    def is_listed_by_scene(self) -> bool:
        """True where a listing in order has a group's files together, as they lie in one folder."""
        return self._scene_depth > 0

    def folders_of(self, path: str) -> list[str]:
        """Folders of the files that are paired with a file's; none where it is no frame's."""
        match = self.match(path)
        return [] if match is None else self._folders_with(match[1])

    def folders_around(self, folder: str) -> list[str]:
        """A folder (ends in a slash) and those that have the partners of its files.

        Of a folder within a scene's the whole scene.
        """
        matches = (pattern.match_folder(folder) for _, pattern in self.patterns)
        fields = max((match for match in matches if match is not None), key=len, default=None)
        if fields is None:
            return [folder]
        folders = self._folders_with(fields)
        is_within = any(folder.startswith(other) for other in folders)
        return folders if is_within else [folder, *folders]

    def _folders_with(self, fields: Mapping[str, str]) -> list[str]:
        of_scene = {
            name: value
            for name, value in fields.items()
            if name in (FOLDERS, "scene", *self._tag_fields)
        }
        depth = self._scene_depth or None
        return [
            *dict.fromkeys(pattern.folder_with(of_scene, depth) for _, pattern in self.patterns)
        ]

    def _scene_without_name(self, shared: Mapping[str, str]) -> str:
        if "scene" in self.document:
            return str(self.document["scene"])
        return self.patterns[0][1].folder_with(shared).strip("/") or "main"

    @cached_property
    def _scene_depth(self) -> int:
        """Parts that patterns share up to {scene}, where these say all of a group; 0 where not."""
        texts = [pattern.parts for _, pattern in self.patterns]
        scene = next(
            (n for n, segment in enumerate(texts[0]) if segment.startswith("{scene")), None
        )
        if scene is None or not texts[0][scene].endswith("}") or texts[0][scene].count("{") > 1:
            return 0
        shared = texts[0][: scene + 1]
        if any(parts[: scene + 1] != shared for parts in texts):
            return 0
        of_group = [name for name in (FOLDERS, *self._tag_fields) if name in self.identity]
        above = "/".join(shared)
        is_in_names = (name == FOLDERS or f"{{{name}" in above for name in of_group)
        is_above = FOLDERS not in texts[0] or texts[0].index(FOLDERS) < scene
        return scene + 1 if all(is_in_names) and is_above else 0

    @cached_property
    def _by_ending(self) -> tuple[tuple[str, Pattern, str], ...]:
        said_most = sorted(self.patterns, key=lambda each: -each[1].letters)
        return tuple((kind, pattern, pattern.ending) for kind, pattern in said_most)

    @cached_property
    def _label_marks(self) -> tuple[frozenset[str], str]:
        patterns = dict(self.patterns)
        if "label" not in patterns:
            return frozenset(), ""
        of_images = patterns["image"].parts if "image" in patterns else []
        literal = {segment for segment in patterns["label"].parts[:-1] if "{" not in segment}
        return frozenset(literal - {FOLDERS, *of_images}), patterns["label"].ending

    @cached_property
    def _segments(self) -> Pattern | str | None:
        """Pattern of the JSON files of the labels' segments; the key where there is only one."""
        text = self.document.get("segments")
        return Pattern(text) if text is not None and {*text} & {*"{}*"} else text

    @cached_property
    def _tag_fields(self) -> tuple[str, ...]:
        return tuple(name for name in self.identity if name not in _OF_FRAME)

    @cached_property
    def _cameras(self) -> frozenset[str] | None:
        return frozenset(self.document["cameras"]) if "cameras" in self.document else None

    @cached_property
    def _camera(self) -> str:
        return str(self.document.get("camera", NO_CAMERA))

    def _check(self) -> None:
        for name in _TEXTS:
            if not isinstance(self.document.get(name, ""), str):
                raise InvalidInput(f"layout: {name} = {self.document[name]!r}: expected a text")
        for name in _LISTS:
            value = self.document.get(name, [])
            if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
                raise InvalidInput(f"layout: {name} = {value!r}: expected a list of texts")
        self._check_positions(self.document.get("positions", {}))
        kind = self.document.get("class_format", "mapillary")
        if kind not in _CLASS_FORMATS:
            raise InvalidInput(
                f"layout: class_format = {kind!r}: expected {', '.join(_CLASS_FORMATS)}"
            )
        if not isinstance(self.document.get("merge_trees", False), bool):
            raise InvalidInput("layout: merge_trees: expected true or false")
        self._check_fields()
        self._check_segments()
        _ = self.classes

    def _check_segments(self) -> None:
        if self.encoding.is_panoptic != ("segments" in self.document):
            raise InvalidInput(
                "layout: encoding panoptic and segments belong together: segments is the JSON file "
                'that names the category of each segment, such as "annotations/panoptic_{split}'
                '.json"'
            )
        of_labels = next((pattern.fields for kind, pattern in self.patterns if kind == "label"), ())
        if isinstance(self._segments, Pattern):
            if missing := [name for name in self._segments.fields if name not in of_labels]:
                raise InvalidInput(
                    f"layout: segments = {self._segments.text}: the pattern of labels lacks "
                    f"{', '.join(missing)}, so that no label tells its file"
                )
        elif self._segments is not None and not {"", ".", ".."}.isdisjoint(
            self._segments.split("/")
        ):
            raise InvalidInput(
                f"layout: segments = {self._segments}: expected a path below the source's root, "
                "without empty parts"
            )

    def _check_fields(self) -> None:
        if not self.identity:
            raise InvalidInput(
                "layout: images and labels share no field, so that no label has an image; use the "
                "same field, such as {frame}, in both"
            )
        for kind, pattern in self.patterns:
            if missing := [name for name in self.identity if name not in pattern.fields]:
                raise InvalidInput(
                    f"layout: the pattern of {kind} lacks {', '.join(missing)}, which says which "
                    "frame a file is of"
                )
        tags = set(self._tag_fields)
        if clash := tags & {GIVEN_SPLIT, *POSITION_TAGS, *FRAME_TAGS_COLUMNS, *FILES_COLUMNS}:
            raise InvalidInput(
                f"layout: field {min(clash)}: is a tag or column of every frame already; choose "
                "another name for it"
            )

    def _check_positions(self, positions: Any) -> None:
        if not isinstance(positions, Mapping):
            raise InvalidInput("layout: positions: expected a table of cameras")
        for camera, tags in positions.items():
            if not isinstance(tags, list) or not set(tags) <= set(POSITION_TAGS):
                raise InvalidInput(
                    f"layout: positions of {camera}: {tags!r}: expected some of "
                    f"{', '.join(POSITION_TAGS)}"
                )
