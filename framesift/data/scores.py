"""Scores of a user's own evaluation: what its model took each pixel of a frame for.

A folder of them, or the folder `scores` of a job of kind "run":

    scores.json      the dataset, and the names of the classes
    NAME.png         class ids of the frame of this fkey, 8 bits, grey
    NAME.npz         its probabilities where they are known: (classes, h, w) uint16 of 1/65535

One file a frame, aside and renamed: ranks write their own, a rank that is killed leaves whole
frames, and a frame that is added again counts once, as it was added last.
"""

import io
import json
import os
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from framesift.data.classes import UNKNOWN_CLASS
from framesift.data.frames import Frames, open_frames
from framesift.data.probabilities import check_probabilities, nearest_of
from framesift.errors import BadFile, UnknownName

JOB_FOLDER = "FRAMESIFT_JOB_FOLDER"
"""Variable that a job of kind "run" tells its program its folder by."""

SCORES_FILE = "scores.json"
_OF_JOB = "request.json"
_IMAGES = (".png", ".jpg", ".jpeg")
_MOST_PROBABILITIES_PX = 152 * 240
"""Pixels that probabilities are kept of: a validation looks at no more."""
_KEPT_SIZE = (152, 240)

UInt8 = npt.NDArray[np.uint8]


class Scores:
    """Predictions of frames, for `framesift validate DATASET --scores`."""

    def __init__(
        self,
        place: str | Path | None = None,
        dataset: Frames | str | Path | None = None,
        *,
        classes: Sequence[str] | None = None,
    ) -> None:
        """Open a folder of scores, and make it where it is not there.

        Args:
            place: The folder, or that of a job of `framesift run`; None for the job that this
                program is of.
            dataset: Whose frames are scored: of `open_frames`, or what that opens; None for the
                {manifest} or {prepared} that the job was handed.
            classes: Names of the model's classes, where it merges the dataset's.

        Raises:
            BadFile: There is no job, no dataset, or no fkeys of its frames are known; or the
                folder has scores of other classes.
        """
        job = _job_of(place)
        self.folder = Path(place or "") if job is None else job / "scores"
        frames = dataset if isinstance(dataset, Frames) else open_frames(dataset or _given(job))
        if not frames.dataset:
            raise BadFile(
                f"scores {self.folder}: a list of files does not know the names of its frames; "
                "give the manifest or the prepared arrays ({manifest}, {prepared})"
            )
        self.classes = tuple(frames.classes.names if classes is None else classes)
        self._frames, self._rows = frames, {name: row for row, name in enumerate(frames.names)}
        about = {"format": 1, "dataset": frames.dataset, "classes": list(self.classes)}
        self._check_same(about)

    def add(self, name: str, class_ids: Any, probabilities: Any = None) -> None:
        """Keep the prediction of a frame, in the place of an earlier one of it.

        Args:
            name: The frame, as `Frames.names` has it: its fkey.
            class_ids: (H, W), whole numbers, at the label's size: positions in `classes`; 255
                where the label says nothing, too.
            probabilities: (classes, h, w), 0 to 1, at any size; None where they are not known.

        Raises:
            UnknownName: The dataset has no such frame.
            BadFile: Wrong size or numbers, no class, or the probabilities say another class.
        """
        if name not in self._rows:
            raise UnknownName(
                f"frame {name}: is none of the {len(self._rows):,} of {self._frames.dataset}"
            )
        try:
            ids = self._checked(np.asarray(class_ids), self._rows[name])
            quantised = None
            if probabilities is not None:
                array = np.asarray(probabilities)
                check_probabilities(array, ids, len(self.classes))
                quantised = _kept(array)
        except ValueError as error:
            raise BadFile(f"frame {name}: {error}") from error
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        npz_path = path.with_suffix(".npz")
        # The class ids last: a frame is there when they are.
        if quantised is None:
            npz_path.unlink(missing_ok=True)
        else:
            content = io.BytesIO()
            np.savez_compressed(content, probabilities=quantised)
            _write(npz_path, content.getvalue())
        _write(path, _png(ids))

    def __contains__(self, name: object) -> bool:
        """Whether the prediction of a frame is there, whichever run or rank added it."""
        return isinstance(name, str) and name in self._rows and self._path(name).is_file()

    def __len__(self) -> int:
        """Number of the dataset's frames that have a prediction."""
        return sum(name in self for name in self._rows)

    def _check_same(self, about: dict[str, Any]) -> None:
        path = self.folder / SCORES_FILE
        try:
            if path.is_file():
                earlier = json.loads(path.read_text(encoding="utf-8"))
                if earlier.get("classes") != about["classes"]:
                    raise BadFile(
                        f"{path}: its scores are of other classes; give another folder, or remove "
                        "that one"
                    )
            self.folder.mkdir(parents=True, exist_ok=True)
            _write(path, json.dumps(about, indent=2).encode())
        except OSError as error:
            raise BadFile(f"{error.filename or path}: {error.strerror}") from error
        except (ValueError, AttributeError) as error:
            if isinstance(error, BadFile):
                raise
            raise BadFile(f"{path}: is damaged: {error}") from error

    def _checked(self, ids: npt.NDArray[Any], row: int) -> UInt8:
        """Class ids as they are kept."""
        if ids.ndim != 2 or not ids.size:
            raise ValueError(f"class ids of shape {ids.shape}; expected (H, W)")
        if ids.dtype.kind == "f" and not np.isfinite(ids).all():
            raise ValueError("class ids that are no numbers (NaN or infinite)")
        if ids.dtype.kind not in "iu":
            raise ValueError(f"class ids of type {ids.dtype}; expected whole numbers")
        no_class = (ids < 0) | (ids >= len(self.classes)) & (ids != UNKNOWN_CLASS)
        if no_class.any():
            first = int(ids[no_class][0])
            raise ValueError(
                f"{int(no_class.sum()):,} pixels are of no class, such as {first}; expected 0 to "
                f"{len(self.classes) - 1}, or {UNKNOWN_CLASS}"
            )
        size = self._frames.label_size(row)
        if size is not None and size != ids.shape:
            label = self._frames.label_path(row)
            raise ValueError(
                f"class ids of {ids.shape[1]}x{ids.shape[0]} pixels, and the label {label} has "
                f"{size[1]}x{size[0]}"
            )
        return ids.astype(np.uint8)

    def _path(self, name: str) -> Path:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise BadFile(f"frame {name}: no file below {self.folder} can have this name")
        is_image = path.suffix.lower() in _IMAGES
        return self.folder / (path.with_suffix(".png") if is_image else f"{name}.png")


def _job_of(place: str | Path | None) -> Path | None:
    """The folder of the job that is named, or that this program is of."""
    if place is not None:
        return Path(place) if (Path(place) / _OF_JOB).is_file() else None
    if not (folder := os.environ.get(JOB_FOLDER)):
        raise BadFile(
            f"scores: give a folder; {JOB_FOLDER}, which names that of a job, is set by framesift "
            "run alone"
        )
    return Path(folder)


def _given(job: Path | None) -> Path:
    """The frames that a job was handed."""
    handed = [] if job is None else [job / "input" / name for name in ("manifest", "prepared")]
    for folder in handed:
        if folder.is_dir():
            return folder
    raise BadFile(
        "scores: give the dataset; a job's is known where its command names {manifest} or "
        "{prepared}"
    )


def _kept(probabilities: npt.NDArray[Any]) -> npt.NDArray[np.uint16]:
    """Probabilities (classes, h, w) as they are kept."""
    if probabilities[0].size > _MOST_PROBABILITIES_PX:
        probabilities = nearest_of(probabilities, _KEPT_SIZE)
    units: npt.NDArray[np.uint16] = np.rint(
        probabilities.astype(np.float64).clip(0, 1) * 65_535
    ).astype(np.uint16)
    return units


def _png(ids: UInt8) -> bytes:
    """A grey PNG of 8 bits."""
    height, width = ids.shape
    rows = np.zeros((height, width + 1), np.uint8)
    # Each row as its differences from the row above (filter 2): most are 0.
    rows[:, 1:] = ids
    rows[1:, 1:] -= ids[:-1]
    rows[1:, 0] = 2
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows.tobytes(), 1)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks
    )


def _write(path: Path, content: bytes) -> None:
    """Write a file aside, to the disk, and rename it."""
    temporary = path.with_name(f".{path.name[:200]}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise BadFile(f"{path}: {error.strerror}") from error
