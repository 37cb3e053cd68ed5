"""The interface of extractors: one class turns one file of a frame into tags."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from catalog.tags.extractions import CataloguedFrame
from ingest.sources.source_files import SourceFiles

__all__ = ["CataloguedFrame", "Extractor", "SourceFiles"]


class Extractor(ABC):
    """Reads one file of each frame and says the values of its tag family's tags.

    One object serves a whole run, from several threads at once.
    """

    family: ClassVar[str]
    """Tag family it writes, kept in the table tags_<family>."""
    columns: ClassVar[Mapping[str, str]]
    """Tag -> type: BOOLEAN, INTEGER, BIGINT, DOUBLE, VARCHAR or TIMESTAMP (naive). Units belong
    into the names, such as vehicle_speed_kmh.
    """
    reads: ClassVar[str] = "image"
    """Which file of the frame it reads: "image", "label", "lidar", "camera_json", or the pattern of
    a base name, such as "{stamp}_label3D_{camera}_{number:09}.json", looked up in all sources of
    the data set. Frames without that file are passed over.
    """
    version: ClassVar[int] = 1
    """Raise it when the meaning of the values changes: every frame is read again."""

    @abstractmethod
    def extract(self, source: SourceFiles, frame: CataloguedFrame) -> Mapping[str, object] | None:
        """The tags of a frame; those left out, and all of them where it is None, are unknown.

        Args:
            source: Reads files: ``source.read(frame.file)``.
            frame: The frame; ``frame.file`` is the key of the file to read.

        Raises:
            BadFile: The file cannot be used; it is recorded, and the run goes on.
        """
