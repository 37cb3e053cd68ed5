"""Predictions that another program made, where the validation that scored them read them.

A validation copies no prediction (only what lies on a server, to the job's folder): its list says
which file is whose. A file that is gone, or has another size by now, is not what was scored.
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from api.frame_images.drawing import UInt8, decoded_by
from api.frame_images.source_file import SourceFile, open_file, open_files
from api.workspace import Workspace
from catalog.errors import FramesiftError, NotFound, SourceFails, UnreadableFile
from catalog.records.datasets import datasets_by_id
from catalog.records.tables import Job, Source
from ingest.labels.class_list import UNKNOWN_CLASS, ClassList
from pipeline.manifest_store import open_manifest
from pipeline.prepared.label_classes import LabelClasses
from pipeline.prepared.prediction_classes import PredictionClasses
from pipeline.runs.class_map import ClassMap
from pipeline.runs.prediction_set import MATCHED_FILE, PredictionSet

OF_JOB = "job:"
"""Before a job's name where a page names what lies over its pictures, in a model's place."""


@dataclass(frozen=True)
class GivenPredictions:
    """The predictions that a validation scored."""

    job: Job
    """The validation, which is done."""
    given: PredictionSet
    """What it read."""

    @classmethod
    def of(cls, job: Job) -> "GivenPredictions | None":
        """Those of a job; None where it scored no predictions of another program, or is not done.

        Raises:
            BadFile: Their description is damaged.
        """
        settings = job.request.get("settings") or {}
        asked = job.kind == "validate" and (settings.get("predictions") or settings.get("scores"))
        if not asked or job.state != "done":
            return None
        given = PredictionSet.read(Path(str(job.paths["model_dir"])))
        return None if given is None else cls(job, given)

    def there(self, workspace: Workspace, fkeys: Collection[str]) -> frozenset[str]:
        """Those of some frames whose predictions lie where they were scored, of the same size."""
        listed = self._listed(fkeys)
        try:
            files = open_files(workspace, self._source, [key for key, _ in listed.values()])
        except FramesiftError:
            return frozenset()
        return frozenset(
            fkey
            for fkey, (key, size) in listed.items()
            if key in files and files[key].entry.size == size
        )

    def file(self, workspace: Workspace, fkey: str) -> SourceFile:
        """The prediction of a frame.

        Raises:
            NotFound: The job scored none of this frame, or its file is gone or was changed.
        """
        key, size = self._listed([fkey]).get(fkey, (None, None))
        if key is None:
            raise NotFound("prediction", fkey, f"job {self.job.name} lists none of this frame")
        try:
            file = open_file(workspace, self._source, key)
        except (NotFound, SourceFails, UnreadableFile) as error:
            hint = f"its file is not where job {self.job.name} read it"
            raise NotFound("prediction", fkey, hint) from error
        if file.entry.size != size:
            hint = f"its file has changed since job {self.job.name} scored it"
            raise NotFound("prediction", fkey, hint)
        return file

    def classes(self, workspace: Workspace) -> "GivenClasses":
        """What their pixels mean.

        Raises:
            NotFound: The validation's dataset is gone.
            BadFile: Its manifest is damaged.
        """
        dataset_id = self.job.dataset_id
        dataset = datasets_by_id(workspace.records, [dataset_id]).get(dataset_id or 0)
        if dataset is None:
            raise NotFound("dataset", str(self.job.dataset), f"job {self.job.name} validated it")
        labels = open_manifest(workspace.records, dataset).header.dataset_classes
        map_ = self.given.class_map
        merged = None if map_ is None else ClassMap.from_json(map_)
        classes = LabelClasses.of(labels, merged, dataset.name)
        return GivenClasses(
            PredictionClasses.of(self.given, classes, labels, dataset.name), classes
        )

    @property
    def _source(self) -> Source:
        return Source(name=self.job.name, uri=self.given.opened, options=dict(self.given.options))

    def _listed(self, fkeys: Collection[str]) -> dict[str, tuple[str, int]]:
        """Key and size of the predictions of some frames; lists of earlier releases name none."""
        path = Path(str(self.job.paths["model_dir"])) / MATCHED_FILE
        columns, chosen = ["fkey", "key", "size"], [("fkey", "in", [*fkeys])]
        try:
            rows = pq.read_table(path, columns=columns, filters=chosen).to_pylist()
        except (OSError, pa.ArrowException):
            return {}
        return {row["fkey"]: (row["key"], row["size"]) for row in rows if row["key"] is not None}


@dataclass(frozen=True)
class GivenClasses:
    """How predictions are decoded."""

    of_prediction: PredictionClasses
    """What their pixels are to the model."""
    model: LabelClasses
    """The model's classes."""
    is_small: bool = False

    @property
    def what(self) -> str:
        """Another text wherever another class comes out."""
        parts = (self.of_prediction.keys, self.of_prediction.of_key.tolist())
        return repr((parts, self.model.colours.tolist()))

    def ids(self, png: bytes, key: str) -> UInt8:
        """A prediction (H, W) uint8 [the model's class id].

        Raises:
            BadFile: It is damaged, or of too many pixels.
        """
        return decoded_by(self.of_prediction.ids, png, key)

    def picture(self, png: bytes, key: str) -> Image.Image:
        """A prediction in the colours of the model's classes, left out pixels black; as `ids`."""
        colours = np.zeros((UNKNOWN_CLASS + 1, 3), np.uint8)
        colours[: len(self.model)] = self.model.colours
        return Image.fromarray(colours[self.ids(png, key)])

    def class_of_label(self, class_list: ClassList, source: str) -> list[int | None]:
        """For each class of a source's labels the model's; None where the model ignores it."""
        map_ = self.model.map
        if map_ is not None:
            return [*map_.ids_of(class_list.classes, source, class_list.left_out)]
        class_of_tag = {tag: class_id for class_id, tag in enumerate(self.model.tags)}
        return [class_of_tag.get(tag) for tag in class_list.tags]
