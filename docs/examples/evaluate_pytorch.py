r"""An evaluation in PyTorch: each rank adds the predictions of its frames to Scores.

framesift run city --split validation --ranks 2 \
    --command 'python evaluate_pytorch.py --frames {manifest} --split validation --model model.pt'

framesift validate city --scores JOB --model-name conv-1
"""

import argparse
import os

import numpy as np
import torch
from torch.nn.functional import interpolate

from framesift.data import Scores, open_frames


def main():
    """Predict this rank's frames; those that an earlier attempt predicted are there."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", required=True, help="manifest")
    parser.add_argument("--split", required=True)
    parser.add_argument("--model", required=True, help="what train_pytorch.py wrote")
    options = parser.parse_args()
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

    frames = open_frames(options.frames, options.split)
    scores = Scores(dataset=frames)  # in the folder of this job
    classes = len(frames.classes)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(16, classes, 1)
    )
    model.load_state_dict(torch.load(options.model))
    names = frames.names
    for number in range(rank, len(frames), ranks):
        if names[number] in scores:
            continue
        image, _ = frames[number]
        pixels = torch.from_numpy(image.transpose(2, 0, 1)[None] / np.float32(255))
        with torch.no_grad():
            logits = model(interpolate(pixels, (152, 240), mode="bilinear"))
            full = interpolate(logits, image.shape[:2], mode="bilinear")
        class_ids = full[0].argmax(dim=0)
        scores.add(names[number], class_ids.numpy(), logits[0].softmax(dim=0).numpy())


if __name__ == "__main__":
    main()
