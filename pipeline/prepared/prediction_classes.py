"""Class ids of predictions that another program made, however their pixels are encoded."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from catalog.errors import InvalidInput
from ingest.labels.class_list import UNKNOWN_CLASS, ClassKey, ClassList
from ingest.labels.dataset_classes import DatasetClasses
from ingest.labels.encoding import Encoding
from ingest.labels.label_image import decode_label
from pipeline.prepared.decoded_frames import UInt8
from pipeline.prepared.label_classes import LabelClasses, renumbered
from pipeline.runs.prediction_set import IDS, LABELS, PredictionSet


@dataclass(frozen=True)
class PredictionClasses:
    """The class list of predictions, and what its classes are to the model."""

    keys: ClassList
    """What their pixels mean."""
    of_key: UInt8
    """(256,) uint8 [the model's class id] by the list's; UNKNOWN_CLASS where left out."""
    keeps_ids: bool
    """Whether each of the list's ids is the model's."""

    @classmethod
    def of(
        cls,
        predictions: PredictionSet,
        classes: LabelClasses,
        labels: DatasetClasses,
        dataset: str,
    ) -> "PredictionClasses":
        """The classes of the predictions of a dataset's frames.

        Args:
            predictions: The predictions.
            classes: The model's classes.
            labels: The dataset's.
            dataset: Its name, for errors.

        Raises:
            InvalidInput: Their class list has other classes.
        """
        keys, of_listed = _class_list_of(predictions, classes, labels, dataset)
        of_key = np.full(256, UNKNOWN_CLASS, np.uint8)
        of_key[: len(of_listed)] = of_listed
        return cls(keys, of_key, of_listed.tolist() == [*range(len(of_listed))])

    def ids(self, png: bytes) -> UInt8:
        """A prediction, (H, W) uint8 [the model's class id].

        Raises:
            BadFile: It is damaged.
        """
        ids = decode_label(png, self.keys)
        return ids if self.keeps_ids else renumbered(ids, self.of_key)


def _class_list_of(
    predictions: PredictionSet, classes: LabelClasses, labels: DatasetClasses, dataset: str
) -> tuple[ClassList, UInt8]:
    """The class list of predictions, and the model's class of each of its ids."""
    if predictions.encoding == IDS:
        number = len(classes) if classes.map is not None else len(labels)
        keys = tuple(ClassKey(n, str(n), n) for n in range(number))
        of_id = np.arange(number, dtype=np.uint8)
        return ClassList(Encoding("index"), keys), (
            of_id if classes.map is not None else classes.of_label[:number]
        )
    if predictions.encoding == LABELS:
        first, *rest = labels.lists
        if first.encoding.is_panoptic:
            raise InvalidInput(
                f"predictions of {predictions.model}: dataset {dataset} has panoptic labels, and "
                "predictions have no segments; give them by ids, or with a class list of their own"
            )
        if rest:
            raise InvalidInput(
                f"predictions of {predictions.model}: dataset {dataset} has labels of several "
                "class lists; give them by ids, or with a class list of their own"
            )
        return first, classes.of_label[labels.ids(first)[: len(first)]]
    own = ClassList.from_json(predictions.encoding)
    return own, np.array([*_ids_by_name(own, classes, labels, dataset)], np.uint8)


def _ids_by_name(
    own: ClassList, classes: LabelClasses, labels: DatasetClasses, dataset: str
) -> Iterator[int]:
    """For each class of predictions' own list the model's class id, UNKNOWN_CLASS if left out.

    Raises:
        InvalidInput: A class is neither the model's nor the labels'.
    """
    of_name = {name: int(classes.of_label[n]) for n, name in enumerate(labels.names)}
    of_name |= {name: n for n, name in enumerate(classes.names)}
    for n, name in enumerate(own.classes):
        if n in own.ignored:
            yield UNKNOWN_CLASS
        elif name in of_name:
            yield of_name[name]
        else:
            raise InvalidInput(
                f"predictions' class list: {name} is no class of dataset {dataset}; it has "
                f"{', '.join([*of_name][:8])}..."
            )
