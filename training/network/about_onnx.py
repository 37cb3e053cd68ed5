"""The description of a network in an ONNX file, as AboutModel is of Framesift's own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ingest.labels.dataset_classes import DatasetClasses
from pipeline.prepared.label_classes import LabelClasses
from pipeline.runs.class_map import ClassMap
from pipeline.runs.onnx_model import OnnxModel
from training.network.about_model import check_same_classes


@dataclass(frozen=True)
class AboutOnnx:
    """The description of a network in an ONNX file."""

    model: OnnxModel
    """The network."""

    step: int = 0

    @property
    def sha256(self) -> str:
        """Digest of the file, and of the files of its weights."""
        return self.model.sha256

    @property
    def classes(self) -> tuple[str, ...]:
        """Names; a class id is a position in this list."""
        return tuple(self.model.classes)

    @property
    def class_map(self) -> Mapping[str, Any] | None:
        """By which label classes are merged; None where each is a class."""
        return None if self.model.class_map is None else dict(self.model.class_map)

    @property
    def height_px(self) -> int:
        """Network input [pixels]."""
        return self.model.input.height_px

    @property
    def width_px(self) -> int:
        """Network input [pixels]."""
        return self.model.input.width_px

    @property
    def dataset(self) -> dict[str, Any]:
        """What it was trained on: the lists of frames beside its description say so, if any."""
        return {}

    @property
    def digest(self) -> str:
        """Of how it is fed and read."""
        return self.model.digest

    def lineage(self) -> dict[str, Any]:
        """What a report says of the network."""
        model = self.model
        return {
            "network": f"ONNX, opset {model.opset}",
            "input": [self.width_px, self.height_px],
            "info": dict(model.info),
            "onnx": {
                "file": model.file,
                "producer": model.producer,
                "version": model.version,
                "data_files": list(model.data_files),
                "takes": {
                    "name": model.input.name,
                    "dtype": model.input.dtype,
                    "layout": model.input.layout,
                    "channels": model.input.channels,
                    "scale": model.input.scale,
                    "mean": list(model.input.mean),
                    "std": list(model.input.std),
                },
                "gives": {"name": model.output.name, "kind": model.output.kind},
            },
        }

    def label_classes(self, labels: DatasetClasses, dataset: str) -> LabelClasses:
        """The network's classes, and where the labels of a dataset go.

        Raises:
            InvalidInput: The dataset has other classes.
        """
        map_ = None if self.class_map is None else ClassMap.from_json(self.class_map)
        classes = LabelClasses.of(labels, map_, dataset)
        check_same_classes(f"model {self.model.model}", self.classes, classes.names, dataset)
        return classes
