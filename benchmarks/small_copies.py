"""What the small copies of predictions cost a validation: CPU and bytes a frame, and their share.

    .venv/bin/python -m benchmarks.small_copies

The frames of benchmarks.validation_worker, and a small_unet of 240x152 that was trained for 40
steps. The program itself runs (`training.main --exec_mode evaluate`), one thread, on few and on
many frames: CPU a frame is the difference, and that of copies is summed up in the same process,
with making and with writing them. A copy alone is timed beside it, of what was predicted and of the
frames' labels, which have finer outlines than predictions.
"""

import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.validation_worker import FEW, MANY, ROUNDS, _run
from ingest.labels.class_list import ClassList
from ingest.labels.label_image import decode_label
from tests.training.drawn_frames import found_frames, read_class_list, write_manifest
from training.validation.shard_file import open_shard, shard_path
from training.validation.small_copies import small_copy

_TIMED = """
import sys, time
from pathlib import Path
from training.main import main
from training.validation import shard_file, shard_sums, small_copies
used = 0.0
def timed(function):
    def call(*arguments):
        global used
        began = time.thread_time()
        try:
            return function(*arguments)
        finally:
            used += time.thread_time() - began
    return call
shard_sums.small_copy = timed(shard_sums.small_copy)
shard_file._crc_of = timed(shard_file._crc_of)
small_copies.SmallCopies.joined = timed(small_copies.SmallCopies.joined)
small_copies.SmallCopies.of = timed(small_copies.SmallCopies.of)
status = main(sys.argv[2:])
Path(sys.argv[1]).write_text(str(used))
sys.exit(status)
"""


def main() -> None:
    """Print the figures."""
    root = Path(__file__).parent.parent / "sample_data/a2d2/camera_lidar_semantic"
    files = found_frames(root)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        repeated = files * (MANY // len(files) + 1)
        splits = {"few": repeated[:FEW], "many": repeated[:MANY], "train": files}
        classes = read_class_list(next(root.rglob("class_list.json")))
        write_manifest(folder / "manifest", root, splits, classes)
        read = ["--manifest", str(folder / "manifest"), "--model_dir", str(folder / "model")]
        program = [*read, "--threads", "1", "--exec_mode"]
        train = ["train", "--max_steps", "40", "--batch_size", "2"]
        _run(["-m", "training.main", *program, *train])

        def evaluate(split: str) -> tuple[tuple[float, float], Path]:
            results = Path(tempfile.mkdtemp(dir=folder))
            where = ["--results_dir", str(results), "--split", split]
            code = ["-c", _TIMED, str(results / "used"), *program, "evaluate", *where]
            used_s, _ = _run(code)
            copies_s = float((results / "used").read_text())
            return (used_s, copies_s), shard_path(results, 0, 1)

        evaluate("few")  # compiles what Numba keeps
        frames_ms, copies_ms = [], []
        for _ in range(ROUNDS):
            (few, _), (many, path) = evaluate("few"), evaluate("many")
            frame, copy = (1e3 * (many[n] - few[n]) / (MANY - FEW) for n in (0, 1))
            frames_ms.append(frame)
            copies_ms.append(copy)
        sizes = open_shard(path)[0].small_places()[1]
        palette = ClassList.from_colours(classes)
        labels = [decode_label((root / one.label).read_bytes(), palette) for one in files]
    labels = [np.where(label == 255, 0, label).astype(np.uint8) for label in labels]
    small_copy(labels[0], palette.class_colours)
    began_s = time.process_time()
    copies = [small_copy(label, palette.class_colours) for _ in range(10) for label in labels]
    label_ms = 1e3 * (time.process_time() - began_s) / len(copies)
    shares = [100 * copy / frame for copy, frame in zip(copies_ms, frames_ms, strict=True)]
    print(f"load {os.getloadavg()[0]:.1f}; ms of CPU a frame, one thread, {ROUNDS} rounds")
    print(f"  a frame {_told(frames_ms, 1)}, of which copies {_told(copies_ms, 2)}")
    print(f"    in per cent: {_told(shares, 1)}, median {statistics.median(shares):.1f}")
    print(f"  of what the model predicted: {sizes.mean():,.0f} bytes a frame, {sizes.max():,} most")
    size = np.mean([len(copy) for copy in copies])
    print(f"  a copy of a label: {label_ms:.2f} ms, {size:,.0f} bytes")


def _told(figures: list[float], places: int) -> str:
    return ", ".join(f"{one:.{places}f}" for one in figures)


if __name__ == "__main__":
    main()
