r"""A model in NumPy alone: the most frequent class of each row of pixels; a baseline for any other.

framesift run drives --split train --name rows \
    --command 'python rows_numpy.py train --frames {manifest} --out {job}'
framesift run drives --split validation --checkpoint rows --name rows-predictions \
    --command 'python rows_numpy.py predict --frames {manifest} --split validation
        --model {checkpoint} --out predictions'

framesift validate drives --predictions predictions --named-by fkey --model-name rows \
    --trained-on drives
"""

import argparse
import json
from pathlib import Path

import numpy as np
from PIL import Image

from framesift.data import UNKNOWN_CLASS, open_frames

ROWS = 64


def train(options):
    """Count each class in each of 64 rows of the train split's labels."""
    frames = open_frames(options.frames, options.split or "train")
    classes = len(frames.classes)
    counts = np.zeros(ROWS * classes, np.int64)
    for _, mask in frames:
        rows = np.arange(len(mask)) * ROWS // len(mask)
        cells = rows[:, None] * classes + mask
        counts += np.bincount(cells[mask != UNKNOWN_CLASS], minlength=len(counts))
    best = counts.reshape(ROWS, classes).argmax(axis=1)
    np.save(options.out / "model.npy", best.astype(np.uint8))
    checkpoint = {"step": len(frames), "path": "model.npy"}
    (options.out / "checkpoints.json").write_text(json.dumps({"checkpoints": [checkpoint]}))


def predict(options):
    """Write a frame's class ids at the size of its label: FKEY.png."""
    frames = open_frames(options.frames, options.split)
    classes = np.load(options.model)
    for number, name in enumerate(frames.names):
        height, width = frames.label_size(number)
        ids = np.repeat(classes[np.arange(height) * ROWS // height, None], width, axis=1)
        path = (options.out / name).with_suffix(".png")
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(ids).save(path)


def main():
    """Train, or predict."""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(required=True)
    training = commands.add_parser("train")
    training.set_defaults(work=train)
    predicting = commands.add_parser("predict")
    predicting.add_argument("--model", required=True, type=Path, help="model.npy of a training")
    predicting.set_defaults(work=predict)
    for command in (training, predicting):
        command.add_argument("--frames", required=True, help="manifest")
        command.add_argument("--split")
        command.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    options.work(options)


if __name__ == "__main__":
    main()
