"""What a worker of a validation takes: CPU a frame, memory, and what more than a bare loop.

    .venv/bin/python -m benchmarks.validation_worker

The sample frames, 1920x1208, repeated; a small_unet of 240x152 that was trained for one step. The
program itself runs (`training.main --exec_mode evaluate`), one thread, on few and on many frames:
CPU a frame is the difference, without start-up and compiling. Beside it a bare loop of the same
model: read, decode, predict, class ids at full size, confusion matrix, and nothing kept. Two
workers take a half each; how much faster they are is bounded by the slower one's CPU.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.training.drawn_frames import found_frames, read_class_list, write_manifest

FEW, MANY = 8, 48
FRAMES_OF_A_JOB = 1_000

_BARE = """
import sys
import numpy as np
from pathlib import Path
from training.run.workers import use_threads
use_threads(1)
import tensorflow as tf
from ingest.labels.label_image import decode_image, decode_label
from ingest.labels.palette import Palette
from pipeline.manifest import Manifest
from pipeline.prepared.decoded_frames import small_image
from pipeline.prepared.size import Size
from training.network.model_files import read_model
from training.validation.best_class import BestClass
from training.validation.scores import confusion_matrix
split = Manifest.read(Path(sys.argv[1])).split(sys.argv[3])
model, about = read_model(Path(sys.argv[2]))
palette, size = Palette.from_class_list(split.header.class_list), len(about.classes)
predict = tf.function(lambda images: model(images, training=False))
total = np.zeros((size, size), np.int64)
for image, label in zip(split.image_paths(), split.label_paths(), strict=True):
    whole = decode_image(Path(image).read_bytes())
    small = small_image(whole, Size(about.height_px, about.width_px))
    truth = decode_label(Path(label).read_bytes(), palette)
    logits = predict(tf.constant(small[None])).numpy()[0]
    total += confusion_matrix(truth, BestClass(logits).at_size(*truth.shape), size)[0]
"""


def main() -> None:
    """Print the figures."""
    root = Path(__file__).parent.parent / "sample_data/a2d2/camera_lidar_semantic"
    files = found_frames(root)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        splits = {"few": files[:FEW], "many": (files * (MANY // len(files) + 1))[:MANY]}
        classes = read_class_list(next(root.rglob("class_list.json")))
        write_manifest(folder / "manifest", root, {**splits, "train": files[:2]}, classes)
        read = ["--manifest", str(folder / "manifest"), "--model_dir", str(folder / "model")]
        program = ["-m", "training.main", *read, "--threads", "1", "--exec_mode"]
        _run([*program, "train", "--max_steps", "1", "--batch_size", "1"])

        def evaluate(split: str, shard: int = 0, shards: int = 1) -> tuple[float, float]:
            # A folder of its own: a shard that is there already is passed over.
            where = ["--results_dir", tempfile.mkdtemp(dir=folder), "--split", split]
            parts = ["--shard", str(shard), "--shards", str(shards)]
            return _run([*program, "evaluate", *where, *parts])

        def bare(split: str) -> tuple[float, float]:
            arguments = [str(folder / "manifest"), str(folder / "model"), split]
            return _run(["-c", _BARE, *arguments])

        evaluate("few")  # compiles what Numba keeps
        few, many = evaluate("few"), evaluate("many")
        bare_few, bare_many = bare("few"), bare("many")
        halves = [evaluate("many", shard, 2)[0] for shard in range(2)]
    frame_s, bare_s = (
        (b[0] - a[0]) / (MANY - FEW) for a, b in ((few, many), (bare_few, bare_many))
    )
    start_s = few[0] - FEW * frame_s
    print(f"load {os.getloadavg()[0]:.1f}; s of CPU, one thread")
    print(f"  a frame {frame_s:.4f}, start {start_s:.2f}, memory {many[1]:,.0f} MiB at most")
    print(f"  a frame of the bare loop {bare_s:.4f}, memory {bare_many[1]:,.0f} MiB")
    print(f"  overhead over the bare loop {100 * (frame_s / bare_s - 1):+.1f} %")
    apart = [(half - start_s) / (MANY / 2) for half in halves]
    one = start_s + FRAMES_OF_A_JOB * frame_s
    two = start_s + FRAMES_OF_A_JOB / 2 * max(apart)
    print(f"  two workers of {MANY} frames: {', '.join(f'{half:.2f}' for half in halves)} s each")
    print(f"  of {FRAMES_OF_A_JOB:,} frames two workers take {one / two:.2f} times less than one")


def _run(arguments: list[str]) -> tuple[float, float]:
    """CPU [s] and most memory [MiB] of a process of Python."""
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}
    program = subprocess.Popen(
        [sys.executable, *arguments],
        env={**os.environ, **quiet},
        stdout=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(program.pid, 0)
    if status:
        sys.exit(f"{json.dumps(arguments[:4])[:200]}: status {status}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


if __name__ == "__main__":
    main()
