"""A frame's pictures: the files that they are, or are made of."""

import pathlib
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np
from PIL.Image import Image

from api.frame_images.drawing import (
    Look,
    UInt8,
    decoded_ids,
    decoded_image,
    decoded_label,
    draw_image,
    draw_label,
    draw_overlay,
)
from api.frame_images.image_cache import ImageCache
from api.frame_images.made_image import MadeImage, PictureFile
from api.frame_images.source_file import SourceFile, open_file, source_of
from api.workspace import Workspace
from catalog.errors import NotFound, UnknownName
from catalog.frames.label_segments import segments_of
from catalog.values import make_fkey
from ingest.labels.class_list import ClassList
from query.frames.one_frame import SnapshotFrame, find_frame

_CACHE_BYTES = 2**30
"""Made images kept, of all processes together."""


def image_file(workspace: Workspace, fkey: str) -> SourceFile:
    """A frame's camera image."""
    frame = find_frame(workspace.catalog, fkey)
    return _file(workspace, frame, frame.image, "camera image")


def label_file(workspace: Workspace, fkey: str) -> SourceFile:
    """A frame's label; raises as image_file."""
    frame = find_frame(workspace.catalog, fkey)
    return _file(workspace, frame, frame.label, "label")


def both_files(workspace: Workspace, fkey: str) -> tuple[SourceFile, SourceFile]:
    """A frame's camera image and label; raises as image_file."""
    frame = find_frame(workspace.catalog, fkey)
    image = _file(workspace, frame, frame.image, "camera image")
    return image, _file(workspace, frame, frame.label, "label")


def made_image(file: SourceFile, look: Look) -> MadeImage:
    """A camera image that comes out as asked."""
    return MadeImage(
        "image",
        (file,),
        look,
        lambda content: draw_image(decoded_image(content, file.entry.key), look),
    )


def made_label(file: SourceFile, look: Look) -> MadeImage:
    """A label in its own colours that comes out as asked."""
    class_list, key = ClassList.from_json(file.source.class_list), file.entry.key
    return MadeImage(
        repr(("label", class_list)),
        (file,),
        look,
        lambda png: draw_label(decoded_label(png, key, class_list, file.segments), look),
    )


def made_overlay(
    files: tuple[SourceFile, SourceFile], look: Look, alpha: float, classes: str | None
) -> MadeImage:
    """A label blended over its camera image.

    Args:
        alpha: How much of the label shows, 0 to 1.
        classes: Only these, tags or names with commas between; all when None.
    """
    class_list = ClassList.from_json(files[1].source.class_list)
    return made_blend(
        files,
        look,
        alpha,
        class_ids_of(class_list, classes),
        lambda png, key: decoded_label(png, key, class_list, files[1].segments),
        lambda png, key: decoded_ids(png, key, class_list, files[1].segments),
        what=repr(class_list),
    )


def made_blend(
    files: tuple[PictureFile, PictureFile],
    look: Look,
    alpha: float,
    only: tuple[int, ...] | None,
    picture: Callable[[bytes, str], Image],
    class_ids: Callable[[bytes, str], UInt8],
    what: str = "",
    *,
    is_small: bool = False,
) -> MadeImage:
    """A picture of classes blended over a camera image.

    Args:
        files: The camera image, and the one of classes.
        alpha: How much of the classes shows, 0 to 1.
        only: Class ids to draw; all when None.
        picture: Decodes the second file to be seen.
        class_ids: Decodes it to (H, W) uint8 [class id].
        what: What else it depends on.
        is_small: Whether the picture of classes is a small copy, which is enlarged.
    """
    image, classes = files

    def draw(image_content: bytes, classes_png: bytes) -> bytes:
        over = picture(classes_png, classes.entry.key)
        drawn = None
        if only is not None:
            drawn = np.isin(class_ids(classes_png, classes.entry.key), [*only])
        below = decoded_image(image_content, image.entry.key)
        key = image.entry.key
        return draw_overlay(below, over, alpha, drawn, look, key, is_small=is_small)

    return MadeImage(repr(("overlay", alpha, only, what)), files, look, draw)


def cache_of(workspace: Workspace) -> ImageCache:
    """Where a home keeps made images."""
    return _cache_in(workspace.images)


@lru_cache
def _cache_in(folder: pathlib.Path) -> ImageCache:
    """One for each home in a process: it counts what was written."""
    return ImageCache(folder, _CACHE_BYTES)


def _file(workspace: Workspace, frame: SnapshotFrame, key: str | None, kind: str) -> SourceFile:
    if key is None:
        raise NotFound(kind, frame.fkey, f"the frame has no {kind}")
    source = source_of(workspace, frame.file["cluster"], frame.file["datasource"])
    file = open_file(workspace, source, key)
    is_panoptic = (source.class_list or {}).get("encoding") == "panoptic"
    if key != frame.label or not is_panoptic:
        return file
    fkey = make_fkey(source.cluster, source.datasource, key)
    with workspace.catalog.reading_files(frame.snapshot) as snapshot:
        return replace(file, segments=segments_of(snapshot, [fkey]).get(fkey))


def class_ids_of(class_list: ClassList, classes: str | None) -> tuple[int, ...] | None:
    """The class ids of some classes, tags or names with commas between; None for all.

    Raises:
        UnknownName: There is no such class.
    """
    if classes is None:
        return None
    chosen = set()
    for name in (word.strip() for word in classes.split(",")):
        if name not in class_list.tags and name not in class_list.classes:
            raise UnknownName("class", name, class_list.tags)
        known = class_list.tags if name in class_list.tags else class_list.classes
        chosen.add(known.index(name))
    return tuple(sorted(chosen))
