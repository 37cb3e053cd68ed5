"""The result of one validation shard on disk: ``shard-00000-of-00002.npz``.

It says which model and dataset it is of, so that only what belongs together is added up.
"""

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from catalog.errors import BadFile
from catalog.storage.atomic_write import atomic_path
from training.validation.scores import Int64


@dataclass(frozen=True)
class About:
    """What a shard's result is of.

    Attributes:
        model_sha256: Digest of the model's weights' file.
        model_dir: Where the model lay, for people.
        step: Steps it was trained for.
        classes: Names; a class id is a position in this list.
        dataset: The dataset's name.
        version: Its version.
        dataset_id: Its id.
        split: The split validated.
        split_frames: Frames of the whole split.
        shard: This shard, from 0.
        shards: Number of shards.
    """

    model_sha256: str
    model_dir: str
    step: int
    classes: tuple[str, ...]
    dataset: str
    version: int
    dataset_id: str
    split: str
    split_frames: int
    shard: int
    shards: int


@dataclass(frozen=True)
class FrameScore:
    """Scores of one frame; None where every pixel of its label is unknown.

    Attributes:
        fkey: The frame.
        row: Its position in the split, from 0.
        pixels: Pixels with a known class.
        ignored_pixels: Pixels without.
        accuracy: Share of the known pixels that is right, 0 to 1.
        loss: Mean cross-entropy at the network's size [nats].
        uncertainty: Mean entropy of the prediction at the network's size, 0 (sure) to 1.
        miou: Mean IoU over the classes in this frame's truth or prediction, 0 to 1.
    """

    fkey: str
    row: int
    pixels: int
    ignored_pixels: int
    accuracy: float | None
    loss: float | None
    uncertainty: float
    miou: float | None


@dataclass(frozen=True)
class ShardResult:
    """The result of one shard.

    Attributes:
        about: What it is of.
        matrix: (C, C) int64 pixels, rows truth, columns prediction.
        frames_with_class: (C,) int64 frames whose truth has the class.
        frames: Scores of its frames, in order; none when there were more shards than frames.
        trained_frames: How many of them the model was trained on.
    """

    about: About
    matrix: Int64
    frames_with_class: Int64
    frames: Sequence[FrameScore]
    trained_frames: int = 0

    def write(self, results_dir: Path) -> Path:
        """Write it, aside and renamed; the file's path.

        Raises:
            StorageError: The disk refuses.
        """
        path = shard_path(results_dir, self.about.shard, self.about.shards)
        text = json.dumps(
            {
                "about": asdict(self.about),
                "frames": [asdict(frame) for frame in self.frames],
                "trained_frames": self.trained_frames,
            }
        )
        with atomic_path(path, parents=True) as part, part.open("wb") as file:
            np.savez_compressed(
                file,
                json=np.array(text),
                confusion_matrix=self.matrix,
                frames_with_class=self.frames_with_class,
            )
        return path


def shard_path(results_dir: Path, shard: int, shards: int) -> Path:
    """The file of a shard's result."""
    return results_dir / f"shard-{shard:05d}-of-{shards:05d}.npz"


def read_shard(path: Path) -> ShardResult:
    """A shard's result.

    Raises:
        FileNotFoundError: There is none.
        BadFile: It is damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            data = json.loads(str(stored["json"]))
            matrix = stored["confusion_matrix"].astype(np.int64)
            frames_with_class = stored["frames_with_class"].astype(np.int64)
        about = About(**_with_tuple(data["about"]))
        frames = [FrameScore(**frame) for frame in data["frames"]]
        trained_frames = int(data["trained_frames"])
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise BadFile(f"is damaged ({error}); validate this shard again", str(path)) from error
    side = len(about.classes)
    if matrix.shape != (side, side) or frames_with_class.shape != (side,):
        raise BadFile(f"matrix has shape {matrix.shape} for {side} classes", str(path))
    return ShardResult(about, matrix, frames_with_class, frames, trained_frames)


def _with_tuple(about: Mapping[str, Any]) -> dict[str, Any]:
    return dict(about) | {"classes": tuple(about["classes"])}
