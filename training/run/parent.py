"""The model that a new run begins with: its weights are taken, its steps are not counted."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from catalog.errors import BadFile, NotFound
from pipeline.prepared.label_classes import LabelClasses
from pipeline.runs.checkpoint_steps import CHECKPOINT_FILE
from training.network.about_model import ABOUT_FILE, AboutModel, check_same_classes
from training.network.model_files import read_model
from training.run.checkpoint import Array, Checkpoint


@dataclass(frozen=True)
class Parent:
    """Model that a run begins with, as the run's model.json records it."""

    dir: str
    """The model's folder when the run began."""
    sha256: str
    """Digest of its weights' file, or of its checkpoint where it was not finished."""
    step: int
    """Steps it was trained for."""
    dataset_id: str
    """Id of the dataset that it was trained on; empty where it is not known."""
    split: str
    """Split of that; empty where it is not known."""
    classes: tuple[str, ...]
    """Its class names, in the network's order."""

    def check_classes(self, classes: tuple[str, ...], dataset: str) -> None:
        """Accept the dataset of the new run."""
        check_same_classes(f"the model in {self.dir}", self.classes, classes, dataset)

    def weights(self, network: str) -> Sequence[Array]:
        """Its weights, in the order of the network, which may be the user's own.

        Raises:
            BadFile: Its files are damaged, or changed since it was read.
        """
        folder = Path(self.dir)
        if (folder / ABOUT_FILE).exists():
            model, about = read_model(folder, network=network)
            now, weights = about.sha256, list(model.get_weights())
        else:
            checkpoint = _checkpoint(folder)
            now, weights = _digest(folder / CHECKPOINT_FILE), list(checkpoint.weights)
        if now != self.sha256:
            raise BadFile("changed while this run began with it; start again", str(folder))
        return weights


def read_parent(folder: Path) -> Parent:
    """A model to begin with: a finished one, or the last checkpoint of one that is not."""
    where = str(folder.resolve())
    if (folder / ABOUT_FILE).exists():
        about = AboutModel.read(folder)
        dataset = about.dataset
        return Parent(
            where,
            about.sha256,
            about.step,
            str(dataset["id"]),
            str(dataset["split"]),
            about.classes,
        )
    checkpoint = _checkpoint(folder)
    return Parent(
        where,
        _digest(folder / CHECKPOINT_FILE),
        checkpoint.step,
        checkpoint.identity.dataset_id,
        checkpoint.identity.split,
        LabelClasses.of(checkpoint.labels, checkpoint.class_map, where).names,
    )


def _checkpoint(folder: Path) -> Checkpoint:
    checkpoint = Checkpoint.read(folder)
    if checkpoint is None:
        raise NotFound("model", str(folder), "expected the folder of a model or of a checkpoint")
    return checkpoint


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
