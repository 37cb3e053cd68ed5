"""Manifests for the training tests: of frames drawn here, or found in a folder."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from PIL import Image

from ingest.labels.class_list import UNKNOWN_CLASS, ClassList
from ingest.labels.label_image import decode_label
from pipeline.manifest import Manifest, ManifestHeader
from pipeline.manifest_rows import FRAMES_SCHEMA

CLASS_LIST = {
    "#87ceff": "Sky",
    "#ff00ff": "RD normal street",
    "#ff0000": "Car 1",
    "#c80000": "Car 2",
    "#b65906": "Bicycle 1",
}
CLASSES = ClassList.from_colours(CLASS_LIST)
UNKNOWN_COLOUR = (1, 2, 3)
HEIGHT_PX, WIDTH_PX = 64, 96


@dataclass(frozen=True)
class FrameFiles:
    """A frame's scene and the paths of its two files below the root."""

    scene: str
    image: str
    label: str


def draw_frames(root: Path, frames: int, seed: int = 0, unknown: bool = False) -> list[FrameFiles]:
    """Street, sky and a car somewhere, 64x96 pixels: easy to learn. No bicycle in any."""
    random = np.random.default_rng(seed)
    written = []
    for number in range(frames):
        label = np.zeros((HEIGHT_PX, WIDTH_PX, 3), np.uint8)
        image = np.empty_like(label)
        horizon = int(random.integers(20, 36))
        label[:horizon], image[:horizon] = (0x87, 0xCE, 0xFF), (150, 190, 230)
        label[horizon:], image[horizon:] = (0xFF, 0, 0xFF), (90, 90, 95)
        left, top = int(random.integers(0, 60)), horizon + int(random.integers(-6, 8))
        car = np.s_[top : top + 16, left : left + 30]
        label[car], image[car] = ((0xFF, 0, 0), (0xC8, 0, 0))[number % 2], (170, 30, 30)
        if unknown:
            label[-4:, : 5 + number] = UNKNOWN_COLOUR
        image = np.clip(image + random.normal(0, 6, image.shape), 0, 255).astype(np.uint8)
        files = FrameFiles(
            "scene", f"scene/camera/{number:03d}.png", f"scene/label/{number:03d}.png"
        )
        for path, pixels in ((files.image, image), (files.label, label)):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(root / path)
        written.append(files)
    return written


def found_frames(root: Path) -> list[FrameFiles]:
    """The frames of a folder in A2D2's layout, by name."""
    frames = []
    for image in sorted(root.glob("*/camera/*/*.png")):
        key = image.relative_to(root).as_posix()
        label = key.replace("/camera/", "/label/").replace("_camera_", "_label_")
        frames.append(FrameFiles(key.split("/")[0], key, label))
    return frames


def write_manifest(
    folder: Path,
    root: Path,
    splits: Mapping[str, Sequence[FrameFiles]],
    class_list: Mapping[str, str] = CLASS_LIST,
    id: str = "drawn-1",  # noqa: A002  (the header's own name for it)
) -> Manifest:
    """A manifest of frames below ``root``, written to ``folder``."""
    palette = ClassList.from_colours(class_list)
    rows = []
    for split, files in splits.items():
        for number, frame in enumerate(files):
            label = decode_label((root / frame.label).read_bytes(), palette)
            counts = np.bincount(label[label != UNKNOWN_CLASS], minlength=len(palette))
            rows.append(
                {
                    "fkey": f"{split}-{number:03d}",
                    "split": split,
                    "scene": frame.scene,
                    "camera": "front_center",
                    "image_source": "drawn",
                    "label_source": "drawn",
                    "image": frame.image,
                    "label": frame.label,
                    "image_size": (root / frame.image).stat().st_size,
                    "label_size": (root / frame.label).stat().st_size,
                    "class_pixels": counts.tolist(),
                }
            )
    header = ManifestHeader(
        name="drawn",
        version=1,
        id=id,
        question={},
        snapshot=1,
        class_list=palette,
        classes=palette.classes,
        splits={split: len(files) for split, files in splits.items()},
        roots={"drawn": str(root)},
        datasources={"drawn": "local:drawn"},
    )
    return Manifest(header, pa.Table.from_pylist(rows, FRAMES_SCHEMA)).write(folder)


def every_fourth(files: Sequence[FrameFiles]) -> dict[str, list[FrameFiles]]:
    """Two splits: each fourth frame to validate on, the others to train on."""
    return {
        "train": [frame for number, frame in enumerate(files) if number % 4 != 3],
        "validation": [frame for number, frame in enumerate(files) if number % 4 == 3],
    }


def read_class_list(path: Path) -> dict[str, str]:
    """A class_list.json."""
    return {str(colour): str(name) for colour, name in json.loads(path.read_text()).items()}
