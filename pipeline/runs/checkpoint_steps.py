"""Lists the checkpoints of a training's folder without TensorFlow and without their weights.

A leaf: standard library and NumPy.
"""

import io
import json
import re
import zipfile
from pathlib import Path

import numpy as np

_NAME = re.compile(r"checkpoint(-\d{1,4})?\.npz")
_ABOUT = "about.npy"
_MOST_BYTES = 64 << 20


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


def named_step(model: str) -> tuple[str, int | None]:
    """A model's name, and the step that follows it after an @; None where none does.

    >>> named_step("first@20000"), named_step("first")
    (('first', 20000), ('first', None))
    """
    name, at, step = model.rpartition("@")
    if at and name and step.isascii() and step.isdigit() and len(step) <= 18:
        return name, int(step)
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
