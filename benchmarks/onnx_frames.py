"""What a worker takes for a network of an ONNX file: CPU a frame, beside a plain loop.

    .venv/bin/python -m benchmarks.onnx_frames

The sample frames, 1920x1208 and 38 classes, repeated; a network of three convolutions with input
240x152, logits of a quarter of that. The program itself runs (`training.main --exec_mode
evaluate`), one thread, on few and on many frames: CPU a frame is the difference, user and system,
without start-up and compiling. Beside it, in turn, a loop of onnxruntime, Pillow and NumPy, as a
user would write it: it opens both PNG files, makes the image small by Pillow, enlarges each class's
logits by Pillow, takes the largest, and counts one confusion matrix. It has fewer frames, for each
takes a second. The worker's result has all metrics, cells and pictures. The two matrices may differ
in one pixel of a thousand, for Pillow rounds otherwise, or the benchmark ends.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from ingest.labels.class_list import ClassList
from pipeline.runs.onnx_file import read_onnx
from pipeline.runs.onnx_model import ONNX_MODEL_FILE, OnnxModel, onnx_contract
from tests.training.drawn_frames import found_frames, read_class_list, write_manifest
from tests.training.onnx_files import save
from training.validation.shard_file import read_shard, shard_path

OF_WORKER, OF_LOOP, ROUNDS = (4, 40), (2, 6), 3
"""Frames: few and many."""
SIZE = (152, 240)

_LOOP = """
import sys
import numpy as np, onnxruntime
from PIL import Image
network, pairs, colours, out = sys.argv[1:]
keys, class_ids = np.load(colours).T
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(network, options, providers=["CPUExecutionProvider"])
n = class_ids.max() + 1
total = np.zeros((n, n), np.int64)
class_of = np.full(1 << 24, 255, np.uint8)
class_of[keys] = class_ids
for line in open(pairs):
    image, label = line.rstrip("\\n").split("\\t")
    small = Image.open(image).convert("RGB").resize((240, 152), Image.Resampling.BOX)
    values = (np.asarray(small, np.float32) / 255 - 0.5).transpose(2, 0, 1)[None]
    (logits,) = session.run(None, {"image": values})
    rgb = np.asarray(Image.open(label).convert("RGB")).astype(np.uint32)
    truth = class_of[rgb[..., 0] << 16 | rgb[..., 1] << 8 | rgb[..., 2]]
    size = truth.shape[::-1]
    best, ids = np.full(truth.shape, -np.inf, np.float32), np.zeros(truth.shape, np.uint8)
    for number, plane in enumerate(logits[0]):
        large = np.asarray(Image.fromarray(plane).resize(size, Image.Resampling.BILINEAR))
        larger = large > best
        best[larger], ids[larger] = large[larger], number
    known = truth < n
    pair = truth[known].astype(np.int64) * n + ids[known]
    total += np.bincount(pair, minlength=n * n).reshape(n, n)
np.save(out, total)
"""


def main() -> None:
    """Print the figures."""
    root = Path(__file__).parent.parent / "sample_data/a2d2/camera_lidar_semantic"
    files, colours = found_frames(root), read_class_list(next(root.rglob("class_list.json")))
    classes = ClassList.from_colours(colours)
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        _describe(_network(base / "net.onnx", len(classes)), base / "net", classes)
        np.save(base / "colours.npy", [*classes.class_of_key.items()])
        for frames in (*OF_WORKER, *OF_LOOP):
            repeated = [files[n % len(files)] for n in range(frames)]
            write_manifest(base / f"{frames}", root, {"validation": repeated}, colours)
            lines = [f"{root / one.image}\t{root / one.label}\n" for one in repeated]
            (base / f"{frames}.txt").write_text("".join(lines))
        _worker(base, OF_LOOP[1])  # compiles what Numba keeps
        matrix = np.load(base / "worker.npy")
        rounds = []
        for _ in range(ROUNDS):
            rounds.append((_frame_s(base, _worker, OF_WORKER), _frame_s(base, _loop, OF_LOOP)))
            if np.abs(np.load(base / "loop.npy") - matrix).sum() > 2e-3 * matrix.sum():
                sys.exit("the plain loop has another confusion matrix than the worker")
    print(f"load {os.getloadavg()[0]:.1f}; ms of CPU a frame, one thread, {ROUNDS} rounds")
    for what, taken in (("worker", 0), ("plain loop", 1)):
        print(f"  {what:10} {', '.join(f'{1e3 * one[taken]:.1f}' for one in rounds)}")
    print(f"  worker in the plain loop's: {median(one / other for one, other in rounds):.2f}")


def _network(path: Path, n_classes: int) -> Path:
    random = np.random.default_rng(5)
    sizes = ((24, 3, 3), (48, 24, 3), (n_classes, 48, 1))
    weights = [
        numpy_helper.from_array(
            random.normal(0, (2 / (into * side**2)) ** 0.5, (of, into, side, side)).astype("f4"),
            f"w{number}",
        )
        for number, (of, into, side) in enumerate(sizes)
    ]
    strided: dict[str, Any] = {"strides": [2, 2], "pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["image", "w0"], ["a"], **strided),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w1"], ["c"], **strided),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("Conv", ["d", "w2"], ["logits"]),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, *SIZE])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, n_classes, 38, 60])
    graph = helper.make_graph(nodes, "bench", [image], [logits], weights)
    return save(path, graph, {"scale": "1/255", "mean": "0.5"})


def _describe(path: Path, folder: Path, classes: ClassList) -> None:
    file = read_onnx(path)
    takes, gives = onnx_contract(file, {}, len(classes))
    described = OnnxModel(
        model="net",
        file=str(path),
        sha256=file.sha256,
        producer=file.producer,
        version=file.model_version,
        opset=file.opset,
        data_files=(),
        input=takes,
        output=gives,
        classes=classes.classes,
    )
    folder.mkdir()
    (folder / ONNX_MODEL_FILE).write_text(json.dumps(described.as_json()))


def _frame_s(base: Path, of: Callable[[Path, int], float], frames: tuple[int, int]) -> float:
    """CPU seconds a frame."""
    few, many = frames
    taken_of_few = of(base, few)
    return (of(base, many) - taken_of_few) / (many - few)


def _worker(base: Path, frames: int) -> float:
    results = base / "results"
    shard_path(results, 0, 1).unlink(missing_ok=True)
    used = _run(
        "-m", "training.main", "--exec_mode", "evaluate", "--manifest", str(base / f"{frames}"),
        "--model_dir", str(base / "net"), "--results_dir", str(results), "--threads", "1",
    )  # fmt: skip
    matrix = read_shard(shard_path(results, 0, 1)).confusion.matrix
    np.save(base / "worker.npy", matrix)
    return used


def _loop(base: Path, frames: int) -> float:
    return _run(
        "-c", _LOOP, str(base / "net.onnx"), str(base / f"{frames}.txt"),
        str(base / "colours.npy"), str(base / "loop.npy"),
    )  # fmt: skip


def _run(*arguments: str) -> float:
    """CPU seconds of a process of Python."""
    program = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(program.pid, 0)
    if status:
        sys.exit(f"{' '.join(arguments[:4])[:200]}: status {status}")
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
