"""Small copies of what a model predicted, which its validation keeps beside its scores.

They stand for full-size predictions where no job made any: pages draw errors of them, coarsely.
"""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from PIL.Image import Image

from api.frame_images.drawing import UInt8, decoded_png, decoded_prediction
from catalog.errors import NotFound
from catalog.records.tables import Job
from catalog.values import File
from framesift.progress import list_of
from ingest.labels.class_list import ClassList
from pipeline.jobs.request import JobPaths, read_json
from pipeline.runs.small_predictions import INDEX_FILE, SmallPrediction, small_predictions


@dataclass(frozen=True)
class SmallFile:
    """A copy, as it lies among others in the result of a shard."""

    path: Path
    """The shard's result."""
    place: SmallPrediction
    """Where it lies there."""
    entry: File
    """What it would be as a file of its own; the time is that of the shard's result."""

    @property
    def identity(self) -> str:
        """A name of this content: another one as soon as the result is another."""
        return repr((str(self.path), self.place, self.entry.mtime, self.entry.inode))

    def read(self, start: int, length: int) -> bytes:
        """Exactly that part of the copy.

        Raises:
            NotFound: The result vanished meanwhile, or is another.
        """
        try:
            with self.path.open("rb") as file:
                if os.fstat(file.fileno()).st_ino == self.entry.inode:
                    file.seek(self.place.offset + start)
                    return file.read(length)
        except OSError:
            pass
        raise NotFound("prediction", self.entry.key, "the validation's results are gone")


@dataclass(frozen=True)
class SmallPredictions:
    """The copies of a validation."""

    job: Job
    """The validation, which is done."""

    @classmethod
    def of(cls, job: Job) -> "SmallPredictions | None":
        """Those of a job; None where it keeps none, as those of earlier releases do."""
        if job.kind != "validate" or job.state != "done":
            return None
        kept = cls(job)
        return kept if (kept._paths.report / INDEX_FILE).is_file() else None

    def there(self, fkeys: Collection[str]) -> frozenset[str]:
        """Those of some frames that have a copy."""
        return frozenset(small_predictions(self._paths.report, fkeys)) if fkeys else frozenset()

    def file(self, fkey: str) -> SmallFile:
        """The copy of a frame.

        Raises:
            NotFound: The validation kept none of this frame, or its results are gone.
        """
        place = small_predictions(self._paths.report, [fkey]).get(fkey)
        if place is None:
            hint = f"job {self.job.name} kept none of this frame"
            raise NotFound("prediction", fkey, hint)
        path = self._paths.results / place.file
        try:
            status = path.stat()
        except OSError as error:
            hint = f"the results of job {self.job.name} are gone"
            raise NotFound("prediction", fkey, hint) from error
        mtime = datetime.fromtimestamp(status.st_mtime, UTC).replace(tzinfo=None)
        return SmallFile(path, place, File(fkey, place.size, mtime, inode=status.st_ino))

    def classes(self) -> "SmallClasses":
        """What their pixels mean, as the validation's report says.

        Raises:
            NotFound: The report is gone.
        """
        classes = list_of(read_json(self._paths.report / "report.json"), "per_class")
        if not classes:
            hint = f"the report of job {self.job.name} cannot be read"
            raise NotFound("prediction", self.job.name, hint)
        return SmallClasses({tag: n for n, row in enumerate(classes) for tag in _tags(row)})

    @property
    def _paths(self) -> JobPaths:
        return JobPaths(Path(str(self.job.paths["folder"])))


def _tags(row: Mapping[str, Any]) -> list[str]:
    """Tags of the label classes that a class of a report is made of."""
    return row.get("label_tags") or [row["tag"]]


@dataclass(frozen=True)
class SmallClasses:
    """How copies are decoded."""

    class_of_tag: Mapping[str, int]
    """The model's class of each label class that it does not ignore, by tag."""
    is_small: bool = True

    @property
    def what(self) -> str:
        """Another text wherever another class comes out."""
        return repr(("small", sorted(self.class_of_tag.items())))

    def ids(self, png: bytes, key: str) -> UInt8:
        """A copy (h, w) uint8 [the model's class id]."""
        return decoded_prediction(png, key)

    def picture(self, png: bytes, key: str) -> Image:
        """A copy in colours, in mode RGB."""
        return decoded_png(png, key)

    def class_of_label(self, class_list: ClassList, _source: str) -> list[int | None]:
        """For each class of a source's labels the model's; None where the model ignores it."""
        return [self.class_of_tag.get(tag) for tag in class_list.tags]
