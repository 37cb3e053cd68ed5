"""Exports whose images and masks are files: FOLDER/SPLIT/NAME.png, and documents beside them."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from catalog.errors import BadFile
from catalog.storage.atomic_write import atomic_write, clear_parts
from catalog.values import FrameProgress, Problem
from pipeline.exports.coco_masks import ClassRegion, class_regions
from pipeline.exports.frames import SUFFIXES, ExportedFrame, FramesToExport
from pipeline.exports.progress import Report
from pipeline.prepared.decoded_frames import UInt8

_AT_ONCE = 64
_PART = f"*.{'[0-9a-f]' * 32}.part"


@dataclass(frozen=True)
class FileFrame:
    """A frame of which image and mask are files."""

    split: str
    name: str
    suffix: str
    """Of its image."""
    size_px: tuple[int, int] = (0, 0)
    """(H, W) of its mask; known where regions are."""
    regions: tuple[ClassRegion, ...] = ()
    """Its classes as COCO's segmentations, where they are wanted."""


@dataclass(frozen=True)
class FrameFolders:
    """The folders of a format's images and masks, and what else it wants of a frame."""

    out: Path
    images: str
    masks: str | None
    """None where masks are no files."""
    folder_of_split: Callable[[str], str] = lambda split: split
    with_regions: bool = False

    def write(
        self,
        frames: FramesToExport,
        rows: Sequence[int],
        workers: int,
        done: FrameProgress,
        report: Report,
    ) -> Iterator[FileFrame]:
        """Write what is missing of some rows; their frames in order, but for those left out."""
        for split in dict.fromkeys(frames.splits[row] for row in rows):
            for kind in filter(None, (self.images, self.masks)):
                folder = self.out / kind / self.folder_of_split(split)
                folder.mkdir(parents=True, exist_ok=True)
                clear_parts(folder.glob(_PART))
        with ThreadPoolExecutor(workers, thread_name_prefix="export") as pool:
            for first in range(0, len(rows), _AT_ONCE):
                some = rows[first : first + _AT_ONCE]
                for result in pool.map(lambda row: self._write(frames, row), some):
                    if isinstance(result, Problem):
                        done.problems.append(result)
                        continue
                    frame, is_written = result
                    done.written += is_written
                    done.unchanged += not is_written
                    yield frame
                report(done)

    def _write(self, frames: FramesToExport, row: int) -> tuple[FileFrame, bool] | Problem:
        split, name = frames.splits[row], frames.names[row]
        try:
            if (suffix := self._suffix_there(split, name)) is not None:
                ids = frames.ids(row) if self.with_regions else None
                return self._file_frame(split, name, suffix, ids), False
            frame = frames.frame(row)
        except BadFile as error:
            return Problem("bad_file", error.file or name, error.reason)
        self._write_files(split, frame)
        ids = frame.ids if self.with_regions else None
        return self._file_frame(split, name, frame.suffix, ids), True

    def _file_frame(self, split: str, name: str, suffix: str, ids: UInt8 | None) -> FileFrame:
        if ids is None:
            return FileFrame(split, name, suffix)
        size_px = (ids.shape[0], ids.shape[1])
        return FileFrame(split, name, suffix, size_px, tuple(class_regions(ids)))

    def _suffix_there(self, split: str, name: str) -> str | None:
        """The suffix of a frame's image where all its files are there, written whole."""
        folder = self.folder_of_split(split)
        if self.masks is not None and not (self.out / self.masks / folder / f"{name}.png").exists():
            return None
        for suffix in SUFFIXES.values():
            if (self.out / self.images / folder / f"{name}{suffix}").exists():
                return suffix
        return None

    def _write_files(self, split: str, frame: ExportedFrame) -> None:
        folder = self.folder_of_split(split)
        image = self.out / self.images / folder / f"{frame.name}{frame.suffix}"
        atomic_write(image, frame.image, clear=False)
        if self.masks is not None:
            mask = self.out / self.masks / folder / f"{frame.name}.png"
            atomic_write(mask, frame.mask, clear=False)
