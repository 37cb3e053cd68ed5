"""What it takes to score a prediction that another program made: milliseconds of CPU a frame.

    A2D2_ROOT=/path/to/a2d2 .venv/bin/python -m benchmarks.given_predictions

Frames of 1920x1208 and 38 classes, A2D2's or without A2D2_ROOT the sample frames, repeated;
predictions of three kinds, with an eighth of the pixels moved aside, so that outlines differ: PNG
files of class ids, in the labels' colours, and of class ids in one tar. The program itself runs
(`training.main --exec_mode evaluate`) on few and on many frames: CPU a frame is the difference,
user and system, without start-up and compiling. The confusion matrix must be that of a bare loop of
NumPy, or the benchmark ends; the figure is the median of the rounds. The pictures of a shard's
eight worst frames, whose images alone are decoded, are in both and so in neither.

`decode` is the prediction's own decoder, beside Pillow's with a look-up in NumPy. `one frame,
least` is the least of 150 readings of one frame in one process, and `its scores` what all metrics
take of it; `inflating` is what libdeflate alone takes to check and inflate both of its files.
"""

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from PIL import Image

from ingest.labels.class_list import UNKNOWN_CLASS, ClassList
from ingest.labels.inflate import crc32, inflate
from ingest.labels.label_image import decode_label, decode_values
from ingest.labels.numbered_colours import NumberedColours
from ingest.labels.png_chunks import take_apart
from pipeline.prepared.label_classes import LabelClasses
from pipeline.runs.prediction_set import PREDICTIONS_FILE, PredictionSet
from pipeline.runs.training_input import USUAL_SIZE
from tests.training.drawn_frames import FrameFiles, found_frames, read_class_list, write_manifest
from training.freed_memory import keep_freed_memory
from training.input.dataset import open_split
from training.input.frame_reader import FrameReader
from training.input.given_predictions import PredictionDecoder, PredictionFiles
from training.input.split_shards import FrameId
from training.network.frame_prediction import GivenClasses, GivenPrediction
from training.validation.shard_file import read_shard, shard_path
from training.validation.shard_sums import ShardSums

FEW, MANY, ROUNDS = 8, 136, 3


def main() -> None:
    """Print the table."""
    drawn = Path(__file__).parent.parent / "sample_data/a2d2"
    root = Path(os.environ.get("A2D2_ROOT", drawn)) / "camera_lidar_semantic"
    files = found_frames(root)
    colours = read_class_list(next(root.rglob("class_list.json")))
    palette = ClassList.from_colours(colours)
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        expected = _draw(base, root, files, palette)
        for name, frames in (("few", FEW), ("many", MANY)):
            repeated = [files[n % len(files)] for n in range(frames)]
            write_manifest(base / name, root, {"validation": repeated}, colours)
        print("kind              ms of CPU a frame")
        for kind, place, encoding in (
            ("class ids", base / "ids", "ids"),
            ("labels' colours", base / "colours", "labels"),
            ("class ids, in tar", base / "ids.tar", "ids"),
        ):
            given = PredictionSet(
                model="bench", place=str(place), classes=palette.classes, encoding=encoding
            )
            _round(base, given, files, expected)  # compiles what is not compiled yet
            taken = [_round(base, given, files, expected) for _ in range(ROUNDS)]
            print(f"{kind:17} {1e3 * median(taken):8.1f}", flush=True)
        _decoders(next((base / "ids").rglob("*.png")).read_bytes(), len(palette))
        _one_frame(base / "few", root / files[0].label, base / "ids" / files[0].image)


def _draw(base: Path, root: Path, files: list[FrameFiles], palette: ClassList) -> list[Any]:
    """Predictions of the frames; the confusion matrix of each."""
    matrices = []
    for file in files:
        truth = decode_label((root / file.label).read_bytes(), palette)
        ids = np.where(truth == UNKNOWN_CLASS, 0, truth).astype(np.uint8)
        band = np.s_[:, ids.shape[1] // 2 : ids.shape[1] // 2 + ids.shape[1] // 8]
        ids[band] = np.roll(ids, 3, axis=1)[band]
        for kind, pixels in (("ids", ids), ("colours", palette.class_colours[ids])):
            path = base / kind / file.image
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(path)
        known = truth != UNKNOWN_CLASS
        number = len(palette)
        pairs = truth[known].astype(np.int64) * number + ids[known]
        matrices.append(np.bincount(pairs, minlength=number**2).reshape(number, number))
    with tarfile.open(base / "ids.tar", "w") as archive:
        archive.add(base / "ids", ".")
    return matrices


def _round(base: Path, given: PredictionSet, files: list[Any], expected: list[Any]) -> float:
    """CPU seconds a frame."""
    few, many = (
        _evaluated(base, given, name, sum(expected[n % len(files)] for n in range(frames)))
        for name, frames in (("few", FEW), ("many", MANY))
    )
    return (many - few) / (MANY - FEW)


def _evaluated(base: Path, given: PredictionSet, name: str, matrix: Any) -> float:
    folder, results = base / "predictions" / "bench", base / "results"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PREDICTIONS_FILE).write_text(json.dumps(given.as_json()))
    shard_path(results, 0, 1).unlink(missing_ok=True)
    common = ["--manifest", str(base / name)]
    _run("training.match_predictions", "--predictions_dir", str(folder), *common)
    taken = _run(
        "training.main", "--exec_mode", "evaluate", *common, "--model_dir", str(folder),
        "--results_dir", str(results), "--threads", "1",
    )  # fmt: skip
    if not (read_shard(shard_path(results, 0, 1)).confusion.matrix == matrix).all():
        sys.exit("the confusion matrix is not that of a bare loop")
    return taken


def _run(*command: str) -> float:
    """CPU seconds of a command, user and system."""
    before = os.times()
    subprocess.run([sys.executable, "-m", *command], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return (
        after.children_user + after.children_system
        - before.children_user - before.children_system
    )  # fmt: skip


def _decoders(png: bytes, classes: int) -> None:
    rows = [{"key": n, "name": f"class {n}"} for n in range(classes)]
    ids = ClassList.from_json({"encoding": "index", "classes": rows})

    def pillow() -> Any:
        return ids.lookup_table[decode_values(take_apart(png), ids.encoding)]

    assert (pillow() == decode_label(png, ids)).all()
    assert (pillow() == np.asarray(Image.open(io.BytesIO(png)))).all()
    print(f"decode            {_least_ms(lambda: decode_label(png, ids)):8.1f}")
    print(f"decode, Pillow    {_least_ms(pillow):8.1f}")


def _one_frame(manifest: Path, *pngs: Path) -> None:
    """The least that a frame takes in one process: read, decoded, compared, all metrics.

    Args:
        manifest: Of the frames.
        pngs: The first one's label and prediction.
    """
    files_of_both = [png.read_bytes() for png in pngs]
    frames, _, class_list = open_split(manifest, "validation", "validation")
    numbered = NumberedColours.of(class_list)
    classes = LabelClasses.of(class_list, None, "bench")
    folder = manifest.parent / "predictions" / "bench"
    given = PredictionSet.read(folder)
    assert given is not None
    given = replace(given, place=str(manifest.parent / "ids"), encoding="ids")
    (folder / PREDICTIONS_FILE).write_text(json.dumps(given.as_json()))
    flags = ["--predictions_dir", str(folder), "--manifest", str(manifest)]
    _run("training.match_predictions", *flags)
    keep_freed_memory()  # as the program does
    files = PredictionFiles(folder, given, PredictionDecoder(given, classes, class_list, "bench"))
    reader = FrameReader(frames, class_list, USUAL_SIZE, classes=classes, numbered=numbered)
    sums = ShardSums.empty(classes, numbered, draws=False)
    frame_id = FrameId(0, "frame", "scene", "camera")

    def work() -> None:
        frame = reader.labelled(0)
        prediction = GivenPrediction(GivenClasses(files.ids(0, frame.label), frame.size))
        sums.add(frame_id, frame, prediction, classes)

    print(f"one frame, least  {_least_ms(work):8.1f}")
    frame = reader.labelled(0)
    prediction = GivenPrediction(GivenClasses(files.ids(0, frame.label), frame.size))
    taken = _least_ms(lambda: sums.add(frame_id, frame, prediction, classes))
    print(f"its scores, least {taken:8.1f}")

    def inflated() -> None:
        for png in files_of_both:
            chunks = take_apart(png, crc32)
            inflate(chunks.pixels, chunks.header.inflated_bytes)

    print(f"inflating, least  {_least_ms(inflated):8.1f}")


def _least_ms(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(150):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return 1e3 * min(taken)


if __name__ == "__main__":
    main()
