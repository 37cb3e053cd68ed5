"""`labels convert` beside a plain loop: frames a second of CPU, and memory.

    .venv/bin/python -m benchmarks.convert_labels [--frames 100] [--shapes 40] [--rounds 3]

Drawn frames of 1920x1208 with polygons of 24 corners, once as COCO and once as labelme files. The
plain loop for COCO is pycocotools and NumPy, larger shapes first; for labelme Pillow's ImageDraw;
both write with Pillow. Every run is a process of its own; CPU (user and system, all threads) and
the growth of its memory are those of the work, without start-up and imports. The two take turns,
and the least CPU of --rounds counts. Labels are compared pixel by pixel before anything is printed.
The extra `convert` is needed: uv sync --inexact --extra convert.
"""

import argparse
import json
import math
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from ingest.conversion.convert import convert

WIDTH, HEIGHT = 1920, 1208
CLASSES, CORNERS = 20, 24


def main() -> None:
    """Print the table, or do one way's work."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--shapes", type=int, default=40, help="of a frame")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", nargs=3, metavar=("WAY", "ANNOTATIONS", "TO"))
    options = parser.parse_args()
    if options.work:
        way, annotations, target = options.work
        _work(_WAYS[way], Path(annotations), Path(target))
        return
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        _draw(base, options.frames, options.shapes)
        print(f"{options.frames} frames of {WIDTH}x{HEIGHT}, {options.shapes} polygons each\n")
        print(
            "| | frames a second of CPU | plain loop | times its CPU | MB of memory | plain loop |"
        )
        print("|---|---|---|---|---|---|")
        for name in ("coco", "labelme"):
            _compare(base, name, options.frames, options.rounds)


def _compare(base: Path, name: str, frames: int, rounds: int) -> None:
    taken: dict[str, list[tuple[float, float]]] = {name: [], f"{name}, plain": []}
    for round_number in range(rounds):
        for way, runs in taken.items():
            target = base / f"{way}-{round_number}"
            command = [sys.executable, "-m", "benchmarks.convert_labels", "--work", way]
            done = subprocess.run(
                [*command, str(base / name), str(target)], check=True, capture_output=True
            )
            cpu_s, grown_mb = json.loads(done.stdout)
            runs.append((cpu_s, grown_mb))
    ours, plain = (base / f"{way}-0" / "labels" for way in taken)
    for path in sorted(plain.iterdir()):
        expected, label = (np.asarray(Image.open(each)) for each in (path, ours / path.name))
        if not np.array_equal(expected, label):
            raise SystemExit(f"{name}: {path.name} differs from the plain loop's")
    (cpu_s, memory_mb), (plain_s, plain_mb) = (
        (min(cpu for cpu, _ in runs), max(grown for _, grown in runs)) for runs in taken.values()
    )
    print(
        f"| {name} | {frames / cpu_s:.1f} | {frames / plain_s:.1f} | {cpu_s / plain_s:.2f} | "
        f"{memory_mb:.0f} | {plain_mb:.0f} |"
    )


def _draw(base: Path, frames: int, shapes: int) -> None:
    """Write the annotations of the frames in both formats."""
    draw = random.Random(1)
    names = [f"class {number}" for number in range(1, CLASSES + 1)]
    annotations: list[dict[str, object]] = []
    (base / "coco").mkdir()
    (base / "labelme").mkdir()
    for frame in range(frames):
        rows = []
        for _ in range(shapes):
            key, polygon = draw.randint(1, CLASSES), _polygon(draw)
            x, y = polygon[::2], polygon[1::2]
            annotations.append(
                {
                    "id": len(annotations) + 1, "image_id": frame, "category_id": key,
                    "segmentation": [polygon], "iscrowd": 0,
                }
            )  # fmt: skip
            points = [list(point) for point in zip(x, y, strict=True)]
            rows.append({"label": names[key - 1], "shape_type": "polygon", "points": points})
        document = {
            "imagePath": f"{frame:06d}.jpg", "imageWidth": WIDTH, "imageHeight": HEIGHT,
            "shapes": rows,
        }  # fmt: skip
        (base / "labelme" / f"{frame:06d}.json").write_text(json.dumps(document))
    images = [
        {"id": frame, "file_name": f"{frame:06d}.jpg", "width": WIDTH, "height": HEIGHT}
        for frame in range(frames)
    ]
    categories = [{"id": key, "name": name} for key, name in enumerate(names, 1)]
    document = {"images": images, "annotations": annotations, "categories": categories}
    (base / "coco" / "instances.json").write_text(json.dumps(document))


def _polygon(draw: random.Random) -> list[float]:
    x, y, radius = draw.uniform(0, WIDTH), draw.uniform(0, HEIGHT), draw.uniform(10, 300)
    polygon: list[float] = []
    for corner in range(CORNERS):
        reach, angle = radius * draw.uniform(0.6, 1), 2 * math.pi * corner / CORNERS
        polygon.append(min(max(round(x + reach * math.cos(angle), 1), 0.0), float(WIDTH)))
        polygon.append(min(max(round(y + reach * math.sin(angle), 1), 0.0), float(HEIGHT)))
    return polygon


def _work(way: Callable[[Path, Path], None], annotations: Path, target: Path) -> None:
    """Do a way's work, and print its CPU [s] and how its memory grew [MB]."""
    from pycocotools import mask  # imported before anything is measured

    del mask
    target.mkdir()
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.process_time()
    way(annotations, target)
    cpu_s = time.process_time() - began
    after = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps([cpu_s, (after.ru_maxrss - before.ru_maxrss) / 1024]))


def _coco(annotations: Path, target: Path) -> None:
    done = convert("coco", [annotations / "instances.json"], target)
    if done.problems:
        raise SystemExit(f"coco: {done.problems[0]}")


def _labelme(annotations: Path, target: Path) -> None:
    done = convert("labelme", [annotations], target)
    if done.problems:
        raise SystemExit(f"labelme: {done.problems[0]}")


def _coco_plain(annotations: Path, target: Path) -> None:
    from pycocotools import mask

    (target / "labels").mkdir()
    document = json.loads((annotations / "instances.json").read_text())
    of_image: dict[int, list[dict[str, object]]] = {}
    for row in document["annotations"]:
        of_image.setdefault(row["image_id"], []).append(row)
    for image in document["images"]:
        size = image["height"], image["width"]
        runs = [
            (row["category_id"], mask.merge(mask.frPyObjects(row["segmentation"], *size)))
            for row in of_image[image["id"]]
        ]
        label = np.zeros(size, np.uint8)
        for key, each in sorted(runs, key=lambda run: -int(mask.area(run[1]))):
            label[mask.decode(each) > 0] = key
        Image.fromarray(label).save(target / "labels" / f"{image['file_name'][:-4]}.png")


def _labelme_plain(annotations: Path, target: Path) -> None:
    (target / "labels").mkdir()
    # Classes by name are numbered in order of their names.
    names = sorted(f"class {number}" for number in range(1, CLASSES + 1))
    keys = {name: key for key, name in enumerate(names, 1)}
    for path in sorted(annotations.iterdir()):
        document = json.loads(path.read_text())
        label = Image.new("L", (document["imageWidth"], document["imageHeight"]))
        for row in document["shapes"]:
            points = [(x, y) for x, y in row["points"]]
            key = keys[row["label"]]
            ImageDraw.Draw(label).polygon(points, fill=key, outline=key)
        label.save(target / "labels" / f"{path.stem}.png")


_WAYS = {
    "coco": _coco, "labelme": _labelme, "coco, plain": _coco_plain,
    "labelme, plain": _labelme_plain,
}  # fmt: skip

if __name__ == "__main__":
    main()
