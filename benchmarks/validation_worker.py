"""What a worker of a validation takes: CPU a frame, memory, and what more than a bare loop.

    .venv/bin/python -m benchmarks.validation_worker

The sample frames, 1920x1208, repeated; a small_unet of 240x152 that was trained for one step. The
program itself runs (`training.main --exec_mode evaluate`), one thread, on few and on many frames:
CPU a frame is the difference, without start-up and compiling. Beside it two bare loops of the same
model over the same files, a script of one loop each, with this project's decoders and scores, which
are the fastest that we know (benchmarks/validation_peers.py). Both make the worker's own confusion
matrix, or the benchmark ends:

    matrix   read, decode, predict, class ids at full size, confusion matrix, and nothing kept
    scores   all that the worker's result holds of a frame: calibration, Boundary IoU, objects by
             size, entropy, margin, loss, cells, the pictures of the worst frames. What a worker
             takes beyond is its own: manifest, shards, pieces, bad frames, files, log

Two workers take a half each of 1,000 frames, on the two cores of this machine; beside them, in
turn, one worker takes all of them. What is measured is the time until all have ended, starts and
compiling included; the figure is the median of the rounds. Two share the pages of TensorFlow's
libraries: side by side each takes its proportional set size (Pss in /proc/PID/smaps_rollup), looked
at ten times a second, in a run of its own.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from tests.training.drawn_frames import found_frames, read_class_list, write_manifest
from training.validation.shard_file import read_shard, shard_path

FEW, MANY, FRAMES_OF_A_JOB = 8, 136, 1_000
ROUNDS = 3

_BARE = """
import sys
import numpy as np
from pathlib import Path
from training.freed_memory import keep_freed_memory
from training.run.workers import use_threads
keep_freed_memory()
use_threads(1)
import tensorflow as tf
from ingest.labels.label_image import decode_image, decode_label
from pipeline.manifest import Manifest
from pipeline.prepared.decoded_frames import small_image
from pipeline.runs.size import Size
from training.input.frame_reader import Frame
from pipeline.prepared.label_classes import renumbered
from ingest.labels.numbered_colours import NumberedColours
from training.input.split_shards import Place
from training.network.model_files import read_model
from training.network.predictor import Predictor
from training.network.best_class import BestClass
from training.validation.scores import confusion_matrix
from training.validation.shard_sums import ShardSums
manifest, folder, name, what, out = sys.argv[1:]
split = Manifest.read(Path(manifest)).split(name)
model, about = read_model(Path(folder))
classes = about.label_classes(split.header.class_list, split.header.name)
numbered = NumberedColours.of(split.header.dataset_classes)
sums, predictor = ShardSums.empty(classes, numbered), Predictor(model)
predict = tf.function(lambda images: model(images, training=False))
size, n = Size(about.height_px, about.width_px), len(classes)
total = np.zeros((n, n), np.int64)
for row, (image, label) in enumerate(zip(split.image_paths(), split.label_paths(), strict=True)):
    small = small_image(decode_image(Path(image).read_bytes()), size)
    colours = decode_label(Path(label).read_bytes(), numbered.class_list)
    truth = renumbered(colours, numbered.label_class)
    if what == "scores":
        frame = Frame(small, truth, colours)
        sums.add(Place(row, image, "", ""), frame, predictor.predict(small), classes)
    else:
        logits = predict(tf.constant(small[None])).numpy()[0]
        total += confusion_matrix(truth, BestClass(logits).at_size(*truth.shape), n)[0]
np.save(out, sums.metrics["scores"].matrix if what == "scores" else total)
"""


def main() -> None:
    """Print the figures."""
    root = Path(__file__).parent.parent / "sample_data/a2d2/camera_lidar_semantic"
    files = found_frames(root)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        repeated = files * (FRAMES_OF_A_JOB // len(files) + 1)
        sizes = {"few": FEW, "many": MANY, "job": FRAMES_OF_A_JOB}
        splits = {split: repeated[:size] for split, size in sizes.items()}
        classes = read_class_list(next(root.rglob("class_list.json")))
        write_manifest(folder / "manifest", root, {**splits, "train": files[:2]}, classes)
        read = ["--manifest", str(folder / "manifest"), "--model_dir", str(folder / "model")]
        program = ["-m", "training.main", *read, "--threads", "1", "--exec_mode"]
        _run([*program, "train", "--max_steps", "1", "--batch_size", "1"])

        def workers(split: str, shards: int) -> list[list[str]]:
            # A folder of its own: a shard that is there already is passed over.
            where = ["--results_dir", tempfile.mkdtemp(dir=folder), "--split", split]
            parts = ["--shards", str(shards), "--shard"]
            return [[*program, "evaluate", *where, *parts, str(one)] for one in range(shards)]

        def evaluate(split: str) -> tuple[float, float]:
            (arguments,) = workers(split, 1)
            used = _run(arguments)
            results = Path(arguments[arguments.index("--results_dir") + 1])
            matrices[split] = read_shard(shard_path(results, 0, 1)).confusion.matrix
            return used

        def bare(split: str, what: str) -> tuple[float, float]:
            out = folder / "matrix.npy"
            arguments = [str(folder / "manifest"), str(folder / "model"), split, what, str(out)]
            used = _run(["-c", _BARE, *arguments])
            if not np.array_equal(np.load(out), matrices[split]):
                sys.exit(f"the bare loop of {what} has another confusion matrix than the worker")
            return used

        matrices: dict[str, Any] = {}
        evaluate("few")  # compiles what Numba keeps
        few, many = evaluate("few"), evaluate("many")
        loops = {what: (bare("few", what), bare("many", what)) for what in ("scores", "matrix")}
        shares = _most_memory(workers("many", 2))
        jobs = [[_wall_s(workers("job", count)) for count in (1, 2)] for _ in range(ROUNDS)]
    frame_s = (many[0] - few[0]) / (MANY - FEW)
    start_s = few[0] - FEW * frame_s
    print(f"load {os.getloadavg()[0]:.1f}; s of CPU, one thread")
    print(f"  a frame {frame_s:.4f}, start {start_s:.2f}, memory {many[1]:,.0f} MiB at most")
    print(f"  memory of two workers side by side, each: {' and '.join(shares)} MiB at most")
    for what, (bare_few, bare_many) in loops.items():
        bare_s = (bare_many[0] - bare_few[0]) / (MANY - FEW)
        print(f"  a frame of the bare loop, {what}: {bare_s:.4f}, memory {bare_many[1]:,.0f} MiB")
        print(f"    the worker's overhead over it {100 * (frame_s / bare_s - 1):+.1f} %")
    faster = sorted(one_s / two_s for one_s, two_s in jobs)
    print(f"  {FRAMES_OF_A_JOB:,} frames, one worker and two [s]: ", end="")
    print(", ".join(f"{one_s:.1f} and {two_s:.1f}" for one_s, two_s in jobs))
    spread = f"({faster[0]:.2f}..{faster[-1]:.2f})"
    print(f"    two are {faster[ROUNDS // 2]:.2f} times as fast {spread}")


def _wall_s(programs: Iterable[list[str]]) -> float:
    """The time [s] until several processes that start together have ended."""
    began = time.perf_counter()
    for process in [_begun(arguments) for arguments in programs]:
        if process.wait():
            sys.exit(f"a worker ended with status {process.returncode}")
    return time.perf_counter() - began


def _most_memory(programs: Iterable[list[str]]) -> list[str]:
    """The most memory [MiB] of each of several processes at once; shared pages count in parts."""
    processes = [_begun(arguments) for arguments in programs]
    most = [0.0] * len(processes)
    while all(process.poll() is None for process in processes):
        for number, process in enumerate(processes):
            most[number] = max(most[number], _proportional_mib(process.pid))
        time.sleep(0.1)
    for process in processes:
        process.wait()
    return [f"{mib:,.0f}" for mib in most]


def _proportional_mib(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has just ended
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)


def _begun(arguments: list[str]) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)


def _run(arguments: list[str]) -> tuple[float, float]:
    """CPU [s] and most memory [MiB] of a process of Python."""
    program = _begun(arguments)
    _, status, used = os.wait4(program.pid, 0)
    if status:
        sys.exit(f"{json.dumps(arguments[:4])[:200]}: status {status}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


if __name__ == "__main__":
    main()
