"""What a validation compares with a frame's label: a model's prediction, wherever it is from."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ingest.labels.dataset_classes import DatasetClasses
from pipeline.prepared.decoded_frames import UInt8, nearest
from pipeline.prepared.label_classes import LabelClasses
from pipeline.runs.class_map import ClassMap
from pipeline.runs.prediction_set import PredictionSet
from pipeline.runs.size import Size
from pipeline.runs.training_input import USUAL_SIZE
from training.input.confidence import Confidence
from training.input.given_predictions import Match
from training.network.about_model import check_same_classes

Float32 = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]


class PredictedClasses(Protocol):
    """The best class of each pixel."""

    @property
    def ids(self) -> Int64:
        """(h, w) int64 [class id] at the network's size."""
        ...

    def at_size(self, height_px: int, width_px: int) -> UInt8:
        """(height_px, width_px) uint8 [class id]."""
        ...


class FramePrediction(Protocol):
    """A model's answer to one image; None where it says nothing of its probabilities."""

    @property
    def best(self) -> PredictedClasses:
        """The best class of each pixel."""
        ...

    @property
    def confidence(self) -> Float32 | None:
        """(h, w) float32 at the network's size, the best class's probability, 0 to 1."""
        ...

    @property
    def uncertainty(self) -> float | None:
        """Mean entropy, 0 (sure) to 1."""
        ...

    @property
    def margin(self) -> float | None:
        """Mean distance of the two largest probabilities, 0 to 1."""
        ...

    @property
    def disagreement(self) -> float | None:
        """Share of the pixels that get another class in the mirrored image, 0 to 1."""
        ...

    def loss(self, label: UInt8) -> float | None:
        """Mean cross-entropy [nats] against a label (h, w) uint8."""
        ...


@dataclass(frozen=True)
class GivenClasses:
    """The class ids of a prediction that another program made at the label's size."""

    full: UInt8
    """(H, W) uint8 [class id]; no class where neither it nor the label has one."""
    size: Size
    """At which outlines are compared and pictures made, as a network's would be."""

    @property
    def ids(self) -> Int64:
        """(h, w) int64 [class id] at ``size``, each pixel the nearest one's."""
        return nearest(self.full, self.size).astype(np.int64)

    def at_size(self, height_px: int, width_px: int) -> UInt8:
        """The ids as they came: at the label's size, which alone is asked for."""
        assert self.full.shape == (height_px, width_px)
        return self.full


@dataclass(frozen=True)
class GivenPrediction:
    """A prediction that another program made, with what it says of its probabilities."""

    best: GivenClasses
    """The class ids."""
    sure: Confidence | None = None
    """How sure they are; None where nothing says so."""
    layer_of: UInt8 | None = None
    """(n_classes,) uint8, where each class's probabilities are among those of ``sure``."""
    disagreement: None = None
    """Nothing is mirrored: no network runs."""

    @property
    def confidence(self) -> Float32 | None:
        """(h, w) float32, the predicted class's probability, 0 to 1."""
        return None if self.sure is None else self.sure.best

    @property
    def uncertainty(self) -> float | None:
        """Mean entropy, 0 (sure) to 1."""
        return None if self.sure is None else self.sure.uncertainty

    @property
    def margin(self) -> float | None:
        """Mean distance of the two largest probabilities, 0 to 1."""
        return None if self.sure is None else self.sure.margin

    def loss(self, label: UInt8) -> float | None:
        """Mean cross-entropy [nats] against a label (h, w) uint8."""
        if self.sure is None or self.layer_of is None:
            return None
        return self.sure.loss(label, self.layer_of)


@dataclass(frozen=True)
class AboutPredictions:
    """The description of a model whose predictions another program made, as AboutModel's."""

    predictions: PredictionSet
    """The predictions."""
    match: Match
    """Which of them are the split's."""

    step: int = 0
    height_px: int = USUAL_SIZE.height_px
    width_px: int = USUAL_SIZE.width_px

    @property
    def sha256(self) -> str:
        """The model's identity: of its name, and of what its user says of it."""
        return self.predictions.sha256

    @property
    def classes(self) -> tuple[str, ...]:
        """Names; a class id is a position in this list."""
        return tuple(self.predictions.classes)

    @property
    def class_map(self) -> dict[str, Any] | None:
        """By which label classes are merged; None where each is a class."""
        return None if self.predictions.class_map is None else dict(self.predictions.class_map)

    @property
    def dataset(self) -> dict[str, Any]:
        """What it was trained on: nobody said."""
        return {}

    @property
    def digest(self) -> str:
        """Of the predictions' listing."""
        return self.match.digest

    def lineage(self) -> dict[str, Any]:
        """What the report says of the model: its user's words, and what was read."""
        predictions, match = self.predictions, self.match
        encoding = predictions.encoding
        if not isinstance(encoding, str):
            encoding = encoding.get("layout", "a class list of their own")
        return {
            "info": dict(predictions.info),
            "predictions": {
                "place": predictions.place,
                "encoding": encoding,
                "named_by": predictions.named_by,
                "missing": match.missing,
                "with_confidence": match.confident,
                "extra": match.extra,
                "extra_names": list(match.extra_names),
            },
        }

    def label_classes(self, labels: DatasetClasses, dataset: str) -> LabelClasses:
        """The model's classes, and where the labels of a dataset go.

        Raises:
            InvalidInput: The dataset has other classes.
        """
        map_ = None if self.class_map is None else ClassMap.from_json(self.class_map)
        classes = LabelClasses.of(labels, map_, dataset)
        check_same_classes(f"model {self.predictions.model}", self.classes, classes.names, dataset)
        return classes
