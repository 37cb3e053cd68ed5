"""The state of a training run on disk: what a run needs to go on where it stopped.

One file, ``model_dir/checkpoint.npz``: weights, the optimizer's variables, and a JSON text with
step, class list and what identifies the run. It is replaced whole, so a kill at any time leaves the
last one. Those before it are ``checkpoint-1.npz``, ``checkpoint-2.npz``...; a run goes on from the
newest that is whole.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from catalog.errors import BadFile, InvalidInput
from catalog.storage.atomic_write import atomic_path
from catalog.storage.bounded_file import parsed_json
from ingest.labels.dataset_classes import DatasetClasses
from pipeline.runs.checkpoint_steps import CHECKPOINT_FILE
from pipeline.runs.class_map import ClassMap
from training.network.stored_arrays import stored_arrays
from training.run.run_identity import RunIdentity

DAMAGED_FILE = "checkpoint.damaged.npz"

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Checkpoint:
    """A run's state after a step."""

    step: int
    """Steps made."""
    labels: DatasetClasses
    """Classes of the labels."""
    identity: RunIdentity
    """Of the run that wrote it."""
    weights: Sequence[Array]
    """The model's, in its order."""
    optimizer: Sequence[Array]
    """The optimizer's variables, in its order."""
    examples: int
    """Examples that all workers had read (pipeline.example_order)."""
    class_map: ClassMap | None = None
    """By which label classes are merged; None where each is a class."""

    def write(self, model_dir: Path, keep: int = 1) -> None:
        """Replace the checkpoint in ``model_dir``.

        Args:
            keep: Checkpoints that are there then, this one among them.
        """
        about = {
            "step": self.step,
            "examples": self.examples,
            "class_map": self.class_map.as_json() if self.class_map else None,
            "identity": self.identity.as_json(),
            **self.labels.to_json(),
        }
        arrays = {f"weight_{i:04d}": array for i, array in enumerate(self.weights)}
        arrays |= {f"optimizer_{i:04d}": array for i, array in enumerate(self.optimizer)}
        path = model_dir / CHECKPOINT_FILE
        with atomic_path(path, parents=True) as partial_path:
            with partial_path.open("wb") as file:
                np.savez(file, about=np.array(json.dumps(about)), **arrays)
            _keep_former(model_dir, keep)

    @classmethod
    def read(cls, model_dir: Path, name: str = CHECKPOINT_FILE) -> "Checkpoint | None":
        """The checkpoint in ``model_dir``; None where there is none.

        Raises:
            BadFile: It is damaged.
        """
        try:
            stored = stored_arrays(model_dir, name)
            about = parsed_json(str(stored["about"]).encode())
            class_map = about["class_map"]
            return cls(
                step=int(about["step"]),
                examples=int(about["examples"]),
                labels=DatasetClasses.from_json(about),
                identity=RunIdentity.from_json(about["identity"]),
                class_map=ClassMap.from_json(class_map) if class_map else None,
                weights=[stored[n] for n in sorted(stored) if n.startswith("weight_")],
                optimizer=[stored[n] for n in sorted(stored) if n.startswith("optimizer_")],
            )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, InvalidInput) as error:
            path = str(model_dir / name)
            raise BadFile(f"checkpoint is damaged ({error})", path) from error

    @classmethod
    def restore_newest(
        cls, model_dir: Path, restore: Callable[["Checkpoint"], None], report: Callable[[str], None]
    ) -> "Checkpoint | None":
        """The newest checkpoint in ``model_dir`` that is whole; None where there is none.

        Where it is missing or damaged, it is laid aside, and the one before it takes its place.

        Args:
            restore: Has the run begin with one; raises BadFile where its arrays do not fit.

        Raises:
            BadFile: There are some, and none of them is whole.
        """
        newest, former, damage = model_dir / CHECKPOINT_FILE, _former(model_dir), None
        for path in (newest, *former):
            try:
                checkpoint = cls.read(model_dir, path.name)
                if checkpoint is None and not former:
                    return None
                restore(checkpoint := _present(checkpoint, path))
            except BadFile as error:
                damage = damage or error
                continue
            if damage:
                if newest.exists():
                    newest.replace(model_dir / DAMAGED_FILE)
                path.replace(newest)
                report(
                    f"warning: {damage}; going on from the one before, of step {checkpoint.step}"
                )
            return checkpoint
        assert damage is not None  # the newest is there, or was missed
        raise BadFile(
            f"{damage.reason}, and none before it is whole: put a copy of it back, or begin the "
            "run again with another --model_dir",
            damage.file,
        )

    def check_same_run(
        self, labels: DatasetClasses, identity: RunIdentity, model_dir: Path
    ) -> None:
        """Accept the run that wants to go on from here: the one that wrote it.

        Args:
            labels: Classes of the run's dataset.

        Raises:
            InvalidInput: It is another run; the message names every difference.
        """
        differences = self.identity.differences(identity)
        if self.labels.lists != labels.lists:
            differences.append(
                f"class list of {_keys(self.labels)} keys and {len(self.labels)} classes there, "
                f"another of {_keys(labels)} and {len(labels)} here"
            )
        if differences:
            raise InvalidInput(
                f"{model_dir} holds the checkpoint of step {self.step} of another run: "
                f"{'; '.join(differences)}; give the flags of that run, or another --model_dir, "
                f"there with --continue_from {model_dir} to begin with its weights"
            )


def _keys(labels: DatasetClasses) -> int:
    return sum(len(class_list.keys) for class_list in labels.lists)


def listed_checkpoints(model_dir: Path) -> list[dict[str, Any]]:
    """The checkpoints in a folder, newest first: their ``file``, ``step`` and ``sha256``.

    One that is damaged is left out.
    """
    listed = []
    for path in (model_dir / CHECKPOINT_FILE, *_former(model_dir)):
        try:
            about = parsed_json(str(stored_arrays(model_dir, path.name, "about")["about"]).encode())
            step = int(about["step"])
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except (BadFile, OSError, ValueError, KeyError, TypeError):
            continue
        listed.append({"file": path.name, "step": step, "sha256": digest})
    return listed


def _present(checkpoint: Checkpoint | None, path: Path) -> Checkpoint:
    if checkpoint is None:
        raise BadFile("checkpoint is missing", str(path))
    return checkpoint


def checkpoints_bytes(model_dir: Path) -> int:
    """The size of the checkpoints in a folder, which new ones replace [bytes]."""
    paths = (model_dir / CHECKPOINT_FILE, *_former(model_dir))
    return sum(path.stat().st_size for path in paths if path.exists())


def _former(model_dir: Path) -> list[Path]:
    """The checkpoints before the newest, latest first."""
    numbered = {}
    for path in model_dir.glob("checkpoint-*.npz"):
        if match := re.fullmatch(r"checkpoint-(\d{1,4})\.npz", path.name):
            numbered[int(match[1])] = path
    return [numbered[number] for number in sorted(numbered)]


def _keep_former(model_dir: Path, keep: int) -> None:
    """Have the checkpoint that is about to be replaced stay as the first of the former ones."""
    newest = model_dir / CHECKPOINT_FILE
    if not newest.exists():
        return
    former = _former(model_dir)
    for path in former[max(0, keep - 2) :]:
        path.unlink()
    for number, path in reversed([*enumerate(former[: max(0, keep - 2)], 2)]):
        path.replace(model_dir / f"checkpoint-{number}.npz")
    if keep > 1:
        os.link(newest, model_dir / "checkpoint-1.npz")
