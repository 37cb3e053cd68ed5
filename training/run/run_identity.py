"""What decides the weights of a training run, and so may not change while the run goes on."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

_NAMES = {
    "dataset_id": "dataset id",
    "split": "--split",
    "height_px": "--height",
    "width_px": "--width",
    "network": "network",
    "seed": "--seed",
    "batch_size": "--batch_size",
    "workers": "workers",
    "learning_rate": "--learning_rate",
    "max_steps": "--max_steps",
    "schedule": "schedule",
    "parent_sha256": "--continue_from",
}
"""How a difference is named: by the flag that makes it, where there is one."""


@dataclass(frozen=True)
class RunIdentity:
    """What makes a training run this one and no other; the class list goes with the checkpoint.

    Attributes:
        dataset_id: Of the manifest's header.
        split: The split trained on.
        height_px: Network input.
        width_px: Network input.
        network: Name of the network.
        seed: Of initial weights and the order of frames.
        batch_size: Frames per step and worker.
        workers: Number of workers that it began with; it may go on with another number.
        learning_rate: Of one worker.
        max_steps: Steps of the whole run with these workers; the learning rate follows from it.
        schedule: Optimizer and course of the learning rate, in words.
        parent_sha256: Digest of the model that the run began with; empty for none.
    """

    dataset_id: str
    split: str
    height_px: int
    width_px: int
    network: str
    seed: int
    batch_size: int
    workers: int
    learning_rate: float
    max_steps: int
    schedule: str
    parent_sha256: str = ""

    def as_json(self) -> dict[str, Any]:
        """The identity as data that `from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "RunIdentity":
        """The identity that `as_json` gave.

        Raises:
            KeyError: A part is missing.
        """
        return cls(**{part.name: data[part.name] for part in fields(cls)})

    def differences(self, other: "RunIdentity") -> list[str]:
        """What differs in another run, each as "--seed 1 there, 77 here"; here is the other."""
        ours, theirs = asdict(self), asdict(other)
        return [
            f"{name} {_short(ours[key])} there, {_short(theirs[key])} here"
            for key, name in _NAMES.items()
            if ours[key] != theirs[key]
        ]


def _short(value: object) -> str:
    text = str(value)
    return (text if len(text) <= 48 else f"{text[:12]}...") or "none"
