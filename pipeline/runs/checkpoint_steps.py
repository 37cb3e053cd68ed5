"""Lists the checkpoints of a training's folder without TensorFlow and without their weights.

A leaf: standard library and NumPy.
"""

import io
import json
import re
import zipfile
from pathlib import Path
from typing import Literal

import numpy as np

CHECKPOINT_FILE = "checkpoint.npz"
"""The newest; those before it are checkpoint-1.npz, checkpoint-2.npz..."""

_NAME = re.compile(r"checkpoint(-\d{1,4})?\.npz")
_ABOUT = "about.npy"
_MOST_BYTES = 64 << 20

BEST: Literal["best"] = "best"
"""Folder of a training's best model in that of the training, and what names it after an @."""


def checkpoint_steps(model_dir: Path) -> dict[int, str]:
    """Names of the checkpoints in a folder, by their steps, ascending; damaged ones are left out.

    A training that goes on renames them: what was told may lie elsewhere, or be gone, a moment
    later.
    """
    names: dict[int, str] = {}
    for path in sorted(model_dir.glob("checkpoint*.npz")):
        step = _step(path) if _NAME.fullmatch(path.name) else None
        if step is not None:
            names.setdefault(step, path.name)
    return dict(sorted(names.items()))


def named_checkpoint(model: str) -> tuple[str, int | Literal["best"] | None]:
    """A model's name, and the step, or BEST, that follows it after an @; None where neither does.

    >>> named_checkpoint("first@20000"), named_checkpoint("first@best"), named_checkpoint("first")
    (('first', 20000), ('first', 'best'), ('first', None))
    """
    name, at, checkpoint = model.rpartition("@")
    if at and name and checkpoint == BEST:
        return name, BEST
    if at and name and checkpoint.isascii() and checkpoint.isdigit() and len(checkpoint) <= 18:
        return name, int(checkpoint)
    return model, None


def _step(path: Path) -> int | None:
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(_ABOUT).file_size > _MOST_BYTES:
                return None
            about = np.load(io.BytesIO(archive.read(_ABOUT)), allow_pickle=False)
        return int(json.loads(str(about))["step"])
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        return None
