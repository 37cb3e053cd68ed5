"""The state of a training run on disk: what a run needs to go on where it stopped.

One file, ``model_dir/checkpoint.npz``: weights, the optimizer's variables, and a JSON text with
step, classes and settings. It is replaced whole, so a kill at any time leaves the last one.
"""

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from catalog.errors import BadFile, InvalidInput
from training.aside import write_aside
from training.run_settings import RunSettings

CHECKPOINT_FILE = "checkpoint.npz"

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Checkpoint:
    """A run's state after a step.

    Attributes:
        step: Steps made.
        class_list: The labels' colours and class names.
        settings: Of the run that wrote it, as JSON.
        weights: The model's, in its order.
        optimizer: The optimizer's variables, in its order.
    """

    step: int
    class_list: Mapping[str, str]
    settings: Mapping[str, Any]
    weights: Sequence[Array]
    optimizer: Sequence[Array]

    def write(self, model_dir: Path) -> None:
        """Replace the checkpoint in ``model_dir``.

        Raises:
            StorageError: The disk refuses.
        """
        about = {
            "step": self.step,
            "class_list": list(self.class_list.items()),
            "settings": dict(self.settings),
        }
        arrays = {f"weight_{i:04d}": array for i, array in enumerate(self.weights)}
        arrays |= {f"optimizer_{i:04d}": array for i, array in enumerate(self.optimizer)}
        write_aside(
            model_dir / CHECKPOINT_FILE,
            lambda file: np.savez(file, about=np.array(json.dumps(about)), **arrays),
        )

    @classmethod
    def read(cls, model_dir: Path) -> "Checkpoint | None":
        """The checkpoint in ``model_dir``; None where there is none.

        Raises:
            BadFile: It is damaged.
        """
        path = model_dir / CHECKPOINT_FILE
        if not path.exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as stored:
                about = json.loads(str(stored["about"]))
                return cls(
                    step=int(about["step"]),
                    class_list=dict(about["class_list"]),
                    settings=about["settings"],
                    weights=[stored[n] for n in sorted(stored) if n.startswith("weight_")],
                    optimizer=[stored[n] for n in sorted(stored) if n.startswith("optimizer_")],
                )
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, EOFError) as error:
            raise BadFile(f"checkpoint is damaged ({error}); delete it", str(path)) from error

    def check_fits(self, class_list: Mapping[str, str], settings: RunSettings) -> None:
        """Accept a run that wants to go on from here.

        Raises:
            InvalidInput: It has other classes or another input size.
        """
        where = f"{settings.model_dir} holds a checkpoint of step {self.step}"
        remedy = "take another --model_dir"
        if list(self.class_list.items()) != list(class_list.items()):
            raise InvalidInput(
                f"{where} with other classes ({len(set(self.class_list.values()))} names in its "
                f"class list, {len(set(class_list.values()))} in the manifest's); {remedy}"
            )
        theirs = self.settings.get("height_px"), self.settings.get("width_px")
        if theirs != (settings.height_px, settings.width_px):
            raise InvalidInput(
                f"{where} with --height {theirs[0]} --width {theirs[1]}, but this run has "
                f"--height {settings.height_px} --width {settings.width_px}; {remedy}"
            )
