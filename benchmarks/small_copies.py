"""What the small copies of predictions cost a validation: CPU and bytes a frame, and their share.

    .venv/bin/python -m benchmarks.small_copies

The frames of benchmarks.validation_worker, and a small_unet of 240x152 that was trained for 40
steps. The program itself runs (`training.main --exec_mode evaluate`), one thread, as it is and with
nothing kept, in turn, on few and on many frames: CPU a frame is the difference. A copy alone is
timed beside it, of what the model predicted and of the frames' labels, which have finer outlines
than predictions.
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

_KEEPS = "import sys\nfrom training.main import main\nsys.exit(main(sys.argv[1:]))\n"
_KEEPS_NOTHING = f"""
from training.validation.shard_sums import ShardSums
empty = ShardSums.empty
ShardSums.empty = lambda *of, keeps_small=False, **more: empty(*of, **more)
{_KEEPS}"""


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
        _run(["-c", _KEEPS, *program, "train", "--max_steps", "40", "--batch_size", "2"])

        def evaluate(code: str, split: str) -> tuple[float, Path]:
            results = Path(tempfile.mkdtemp(dir=folder))
            where = ["--results_dir", str(results), "--split", split]
            return _run(["-c", code, *program, "evaluate", *where])[0], shard_path(results, 0, 1)

        evaluate(_KEEPS, "few")  # compiles what Numba keeps
        frame_ms: dict[str, list[float]] = {_KEEPS: [], _KEEPS_NOTHING: []}
        for _ in range(ROUNDS):
            for code, figures in frame_ms.items():
                (few_s, _), (many_s, path) = evaluate(code, "few"), evaluate(code, "many")
                figures.append(1e3 * (many_s - few_s) / (MANY - FEW))
                if code is _KEEPS:
                    sizes = open_shard(path)[0].small_places()[1]
        palette = ClassList.from_colours(classes)
        labels = [decode_label((root / one.label).read_bytes(), palette) for one in files]
    with_ms, without_ms = (statistics.median(frame_ms[code]) for code in (_KEEPS, _KEEPS_NOTHING))
    colours = palette.class_colours
    labels = [np.where(label == 255, 0, label).astype(np.uint8) for label in labels]
    began_s = time.process_time()
    copies = [small_copy(label, colours) for _ in range(10) for label in labels]
    label_ms = 1e3 * (time.process_time() - began_s) / len(copies)
    print(f"load {os.getloadavg()[0]:.1f}; ms of CPU a frame, one thread, median of {ROUNDS}")
    print(f"  with copies {with_ms:.1f}, without {without_ms:.1f}, all {list(frame_ms.values())}")
    print(f"  of what the model predicted: {sizes.mean():,.0f} bytes a frame, {sizes.max():,} most")
    share = 100 * label_ms / without_ms
    size = np.mean([len(copy) for copy in copies])
    print(f"  a copy of a label: {label_ms:.2f} ms, {share:.1f} % of a frame, {size:,.0f} bytes")


if __name__ == "__main__":
    main()
