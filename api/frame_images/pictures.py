"""A frame's pictures: the files that they are, or are made of."""

import pathlib
from functools import lru_cache

from api.frame_images.drawing import Look, decoded, draw_image, draw_label, draw_overlay
from api.frame_images.image_cache import ImageCache
from api.frame_images.made_image import MadeImage
from api.frame_images.source_file import SourceFile, open_file, source_of
from api.workspace import Workspace
from catalog.errors import NotFound, UnknownName
from catalog.records.tables import Source
from ingest.labels.palette import Palette
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
        "image", (file,), look, lambda png: draw_image(decoded(png, file.entry.key), look)
    )


def made_label(file: SourceFile, look: Look) -> MadeImage:
    """A label in its own colours that comes out as asked."""
    return MadeImage(
        "label", (file,), look, lambda png: draw_label(decoded(png, file.entry.key), look)
    )


def made_overlay(
    files: tuple[SourceFile, SourceFile], look: Look, alpha: float, classes: str | None
) -> MadeImage:
    """A label blended over its camera image.

    Args:
        alpha: How much of the label shows, 0 to 1.
        classes: Only these, tags or names with commas between; all when None.
    """
    image, label = files
    colours = colours_of(label.source, classes)
    key = image.entry.key

    def draw(image_png: bytes, label_png: bytes) -> bytes:
        over = decoded(label_png, label.entry.key)
        return draw_overlay(decoded(image_png, key), over, alpha, colours, look, key)

    return MadeImage(repr(("overlay", alpha, colours)), files, look, draw)


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
    return open_file(workspace, source, key)


def colours_of(source: Source, classes: str | None) -> tuple[int, ...] | None:
    """The colours of some classes in a source's labels; None for all.

    Raises:
        UnknownName: There is no such class.
    """
    if classes is None:
        return None
    palette = Palette.from_class_list(source.class_list)
    chosen = set()
    for name in (word.strip() for word in classes.split(",")):
        if name not in palette.tags and name not in palette.classes:
            raise UnknownName("class", name, palette.tags)
        known = palette.tags if name in palette.tags else palette.classes
        chosen.add(known.index(name))
    return tuple(colour for colour, number in palette.class_of_colour.items() if number in chosen)
