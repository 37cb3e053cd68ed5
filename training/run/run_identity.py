"""The identity of a training run: what decides its weights, and may not change while it goes on."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from pipeline.runs.augmentations import USUAL
from pipeline.runs.precision import FLOAT32

_NAMES = {
    "dataset_id": "dataset id",
    "split": "--split",
    "height_px": "--height",
    "width_px": "--width",
    "network": "--model",
    "seed": "--seed",
    "batch_size": "--batch_size",
    "workers": "workers",
    "learning_rate": "--learning_rate",
    "max_steps": "--max_steps",
    "schedule": "schedule",
    "parent_sha256": "--continue_from",
    "class_map": "--classes",
    "augment": "--augment",
    "precision": "--precision",
    "backbone_sha256": "--backbone_weights",
}
"""Name of each setting in an error message: the flag that sets it, where there is one."""


@dataclass(frozen=True)
class RunIdentity:
    """The identity of a training run; the class list goes with the checkpoint."""

    dataset_id: str
    """Of the manifest's header."""
    split: str
    """The split trained on."""
    height_px: int
    """Network input."""
    width_px: int
    """Network input."""
    network: str
    """Name of the network."""
    seed: int
    """Of initial weights and the order of frames."""
    batch_size: int
    """Frames per step and worker."""
    workers: int
    """Number of workers that it began with; it may go on with another number."""
    learning_rate: float
    """Of one worker."""
    max_steps: int
    """Steps of the whole run with these workers; the learning rate follows from it."""
    schedule: str
    """Optimizer and course of the learning rate, in words."""
    parent_sha256: str = ""
    """Digest of the model that the run began with; empty for none."""
    class_map: str = ""
    """Name and digest of the map of its classes; empty for none."""
    backbone_sha256: str = ""
    """Digest of the file with its backbone's weights; empty for none."""
    augment: str = ",".join(USUAL)
    """How examples are changed, by names."""
    precision: str = FLOAT32
    """That its layers compute in."""

    def as_json(self) -> dict[str, Any]:
        """The identity as data that `from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "RunIdentity":
        """The identity that `as_json` gave.

        Raises:
            KeyError: A part is missing.
        """
        return cls(**{one.name: data[one.name] for one in fields(cls)})

    def differences(self, other: "RunIdentity") -> list[str]:
        """Differences to another run, each as "--seed 1 there, 77 here"; here is the other."""
        ours, theirs = asdict(self), asdict(other)
        return [
            f"{name} {_short(ours[key])} there, {_short(theirs[key])} here"
            for key, name in _NAMES.items()
            if ours[key] != theirs[key]
        ]


def _short(value: object) -> str:
    text = str(value)
    return (text if len(text) <= 48 else f"{text[:12]}...") or "none"
