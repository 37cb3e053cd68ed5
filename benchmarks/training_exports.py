"""Exports for other trainers, beside the loop that teams write: Pillow, NumPy and a copy.

    python -m benchmarks.training_exports [--frames 60] [--rounds 3]

Exports the sample frames (1920 x 1208 pixels) in each format. The plain loop decodes a label's
colours by Pillow, finds class ids by a table, saves a mask by Pillow and copies the image, without
waiting for the disk. Cells are the least CPU time (user and system) of --rounds, in turn.
"""

import argparse
import resource
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from PIL import Image

from pipeline.exports.export import TrainingExport
from pipeline.exports.formats import TRAINING_FORMATS
from pipeline.manifest import Manifest
from tests.pipeline.homes import SAMPLE
from tests.training.drawn_frames import (
    every_fourth,
    found_frames,
    read_class_list,
    write_manifest,
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        manifest = _repeated(Path(folder, "frames"), options.frames)
        ways: dict[str, Callable[[Path], object]] = {
            "plain loop": lambda out: _plain_loop(manifest, out)
        }
        for form in TRAINING_FORMATS:
            ways[form] = lambda out, form=form: TrainingExport(form).write(manifest, out)  # type: ignore[misc]
        least = _least_ms(ways, Path(folder, "out"), options.frames, options.rounds)
    print("| | CPU ms a frame | of the plain loop |")
    print("|---|---|---|")
    for name, cpu_ms in least.items():
        print(f"| {name} | {cpu_ms:.1f} | {cpu_ms / least['plain loop']:.2f} |")


def _repeated(root: Path, frames: int) -> Manifest:
    """The sample frames, again and again; every fourth to validate on."""
    shutil.copytree(SAMPLE / "camera_lidar_semantic", root)
    drawn = found_frames(root)
    files = [drawn[n % len(drawn)] for n in range(frames)]
    class_list = read_class_list(root / "class_list.json")
    return write_manifest(root / "manifest", root, every_fourth(files), class_list)


def _plain_loop(manifest: Manifest, out: Path) -> None:
    keys = manifest.header.class_list.keys
    ids_of = {name: class_id for class_id, name in enumerate(manifest.header.classes)}
    table = np.full(1 << 24, 255, np.uint8)
    for key in keys:
        table[key.key] = ids_of[key.name]
    out.mkdir()
    paths = zip(manifest.image_paths(), manifest.label_paths(), strict=True)
    for number, (image, label) in enumerate(paths):
        assert label is not None
        rgb = np.asarray(Image.open(label).convert("RGB")).astype(np.uint32)
        ids = table[rgb[..., 0] << 16 | rgb[..., 1] << 8 | rgb[..., 2]]
        Image.fromarray(ids).save(out / f"{number}_mask.png")
        shutil.copyfile(image, out / f"{number}.png")


def _least_ms(
    ways: Mapping[str, Callable[[Path], object]], out: Path, frames: int, rounds: int
) -> dict[str, float]:
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, write in ways.items():
            began_s = _cpu_s()
            write(out)
            least[name] = min(least[name], (_cpu_s() - began_s) / frames * 1000)
            shutil.rmtree(out)
    return least


def _cpu_s() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime


if __name__ == "__main__":
    main()
