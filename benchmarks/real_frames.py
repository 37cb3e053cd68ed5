"""Frames of real drives, prepared once, and their division into parts that are tested and chosen.

A drive is cut into parts of PART_S seconds. Of each drive's parts a quarter is tested and a sixth
is validated with; which, the seed draws. Frames nearer than GUARD_S to either are in no pool, and
frames that repeat another one of less than REPEATED_S before are in a pool only.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

HEIGHT_PX, WIDTH_PX = 120, 160
FRAMES_PER_S = 30
PART_S, GUARD_S, REPEATED_S = 20, 4.0, 0.5
TESTED, VALIDATED = 1 / 4, 1 / 6
FIRST = 40
"""Most frames that the first network is trained on, all of one drive."""

Ints = npt.NDArray[np.int64]
UNKNOWN = 255


@dataclass(frozen=True)
class RealFrames:
    """n frames at the network's size, in order of their names."""

    names: npt.NDArray[np.str_]
    drives: npt.NDArray[np.str_]
    numbers: Ints
    """(n,) of the recording's frames, FRAMES_PER_S each second."""
    images: npt.NDArray[np.uint8]
    """(n, HEIGHT_PX, WIDTH_PX, 3) [RGB]."""
    labels: npt.NDArray[np.uint8]
    """(n, HEIGHT_PX, WIDTH_PX) [class id]; UNKNOWN where there is no class."""

    def pixels(self, classes: int) -> Ints:
        """(n, C) pixels of each class in each frame."""
        counts = [np.bincount(label.ravel(), minlength=256)[:classes] for label in self.labels]
        return np.array(counts, np.int64)


@dataclass(frozen=True)
class Parts:
    """Which frames a seed tests, validates with, begins with and chooses from."""

    tested: Ints
    validated: Ints
    first: Ints
    pool: Ints
    """To choose from: neither of the others nor near what is tested or validated with."""


def prepared(root: Path, cache: Path, classes: int) -> RealFrames:
    """The frames of images/SPLIT/DRIVE_NUMBER.jpg and labels/SPLIT/DRIVE_NUMBER.png.

    Args:
        root: Folder of both.
        cache: File that they are kept in from the first call on.
        classes: Label ids from this one on are no class.
    """
    if not cache.exists():
        paths = sorted(root.glob("images/*/*.jpg"), key=lambda path: path.stem)
        labels = [root / "labels" / path.parent.name / f"{path.stem}.png" for path in paths]
        np.savez_compressed(
            cache,
            names=np.array([path.stem for path in paths]),
            images=np.array([_read(path, Image.Resampling.BILINEAR) for path in paths]),
            labels=np.array([_read(path, Image.Resampling.NEAREST) for path in labels]),
        )
    with np.load(cache) as stored:
        names, images, labels = stored["names"], stored["images"], stored["labels"]
    split = [name.split("_") for name in names.tolist()]
    numbers = [int(re.sub(r"\D", "", number)) for _, number in split]
    labels[labels >= classes] = UNKNOWN
    drives = np.array([drive for drive, _ in split])
    return RealFrames(names, drives, np.array(numbers), images, labels)


def _read(path: Path, resampling: Image.Resampling) -> npt.NDArray[np.uint8]:
    with Image.open(path) as image:
        shown = image if resampling == Image.Resampling.NEAREST else image.convert("RGB")
        return np.asarray(shown.resize((WIDTH_PX, HEIGHT_PX), resampling))


def parts_of(drives: npt.NDArray[np.str_], numbers: Ints, start: str, seed: int) -> Parts:
    """The parts of a seed.

    Args:
        drives: (n,).
        numbers: (n,) of the frames in their drives.
        start: Drive that the first network's frames are of.
        seed: Draws the parts and the first frames.
    """
    random = np.random.default_rng([seed, 7])
    names, of_drive = np.unique(drives, return_inverse=True)
    began = np.array([numbers[drives == name].min() for name in names])
    part = (numbers - began[of_drive]) // (PART_S * FRAMES_PER_S)
    order = np.lexsort((numbers, of_drive))
    apart = np.diff(numbers[order] + of_drive[order] * 10**9, prepend=-(10**9))
    repeats = np.zeros(len(numbers), bool)
    repeats[order] = apart < REPEATED_S * FRAMES_PER_S
    tested, validated = np.zeros(len(numbers), bool), np.zeros(len(numbers), bool)
    for drive in range(len(names)):
        drawn = random.permutation(np.unique(part[of_drive == drive]))
        tests = max(1, round(TESTED * len(drawn)))
        others = tests + max(1, round(VALIDATED * len(drawn)))
        tested |= (of_drive == drive) & np.isin(part, drawn[:tests])
        validated |= (of_drive == drive) & np.isin(part, drawn[tests:others])
    held = tested | validated
    tested &= ~repeats
    validated &= ~repeats & ~_near(tested, of_drive, numbers)
    pool = ~held & ~_near(tested | validated, of_drive, numbers)
    begin = np.flatnonzero(pool & (drives == start))
    first = np.sort(random.choice(begin, min(FIRST, len(begin)), replace=False))
    rest = np.setdiff1d(np.flatnonzero(pool), first)
    return Parts(np.flatnonzero(tested), np.flatnonzero(validated), first, rest)


def _near(of: npt.NDArray[np.bool_], drives: Ints, numbers: Ints) -> npt.NDArray[np.bool_]:
    """(n,) whether a frame lies nearer than GUARD_S to one of these, of the same drive."""
    seconds = np.abs(numbers[:, None] - numbers[None, of]) / FRAMES_PER_S
    near: npt.NDArray[np.bool_] = ((seconds < GUARD_S) & (drives[:, None] == drives[None, of])).any(
        axis=1
    )
    return near
