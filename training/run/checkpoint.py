"""The state of a training run on disk: what a run needs to go on where it stopped.

One file, ``model_dir/checkpoint.npz``: weights, the optimizer's variables, and a JSON text with
step, class list and what identifies the run. It is replaced whole, so a kill at any time leaves the
last one.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from catalog.errors import BadFile, InvalidInput
from catalog.storage.atomic_write import atomic_path
from catalog.storage.bounded_file import parsed_json
from training.network.stored_arrays import stored_arrays
from training.run.run_identity import RunIdentity

CHECKPOINT_FILE = "checkpoint.npz"

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Checkpoint:
    """A run's state after a step.

    Attributes:
        step: Steps made.
        class_list: The labels' colours and class names.
        identity: Of the run that wrote it; None in a file of version 0.1.0, which did not keep it.
        weights: The model's, in its order.
        optimizer: The optimizer's variables, in its order.
        examples: Examples that all workers had read (pipeline.example_order); None in a file of an
            earlier release, whose workers each had an order of their own.
    """

    step: int
    class_list: Mapping[str, str]
    identity: RunIdentity | None
    weights: Sequence[Array]
    optimizer: Sequence[Array]
    examples: int | None = None

    def write(self, model_dir: Path) -> None:
        """Replace the checkpoint in ``model_dir``.

        Raises:
            StorageError: The disk refuses.
        """
        about = {
            "step": self.step,
            "examples": self.examples,
            "class_list": list(self.class_list.items()),
            "identity": self.identity.as_json() if self.identity else None,
        }
        arrays = {f"weight_{i:04d}": array for i, array in enumerate(self.weights)}
        arrays |= {f"optimizer_{i:04d}": array for i, array in enumerate(self.optimizer)}
        path = model_dir / CHECKPOINT_FILE
        with atomic_path(path, parents=True) as part, part.open("wb") as file:
            np.savez(file, about=np.array(json.dumps(about)), **arrays)

    @classmethod
    def read(cls, model_dir: Path) -> "Checkpoint | None":
        """The checkpoint in ``model_dir``; None where there is none.

        Raises:
            BadFile: It is damaged.
        """
        try:
            stored = stored_arrays(model_dir, CHECKPOINT_FILE)
            about = parsed_json(str(stored["about"]).encode())
            identity = about.get("identity")
            return cls(
                step=int(about["step"]),
                examples=None if about.get("examples") is None else int(about["examples"]),
                class_list=dict(about["class_list"]),
                identity=RunIdentity.from_json(identity) if identity else None,
                weights=[stored[n] for n in sorted(stored) if n.startswith("weight_")],
                optimizer=[stored[n] for n in sorted(stored) if n.startswith("optimizer_")],
            )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            path = str(model_dir / CHECKPOINT_FILE)
            raise BadFile(f"checkpoint is damaged ({error}); delete it", path) from error

    def check_same_run(
        self, class_list: Mapping[str, str], identity: RunIdentity, model_dir: Path
    ) -> None:
        """Accept the run that wants to go on from here: the one that wrote it.

        Args:
            class_list: Of the run's dataset.
            identity: Of the run.
            model_dir: Where the checkpoint lies, for the message.

        Raises:
            InvalidInput: It is another run; the message names every difference.
        """
        if self.identity is None:
            differences = ["it was written by version 0.1.0, which did not keep of which run it is"]
        else:
            differences = self.identity.differences(identity)
        if list(self.class_list.items()) != list(class_list.items()):
            differences.append(
                f"class list of {len(self.class_list)} colours and "
                f"{len(set(self.class_list.values()))} names there, another of {len(class_list)} "
                f"and {len(set(class_list.values()))} here"
            )
        if differences:
            raise InvalidInput(
                f"{model_dir} holds the checkpoint of step {self.step} of another run: "
                f"{'; '.join(differences)}; give the flags of that run, or another --model_dir, "
                f"there with --continue_from {model_dir} to begin with its weights"
            )
