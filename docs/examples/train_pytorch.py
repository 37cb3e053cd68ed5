r"""A training in PyTorch: a DataLoader over framesift.data, one process per rank.

framesift run city --split train --ranks 2 --prepare 240x152 \
    --command 'python train_pytorch.py --frames {prepared} --out {job}'
"""

import argparse
import json
import os
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader

from framesift.data import UNKNOWN_CLASS, open_frames


def batch_of(pairs):
    """Images (n, 3, h, w) float32 0 to 1, and class ids (n, h, w) int64."""
    images = np.stack([image for image, _ in pairs]).transpose(0, 3, 1, 2)
    labels = np.stack([class_ids for _, class_ids in pairs])
    return torch.from_numpy(images / np.float32(255)), torch.from_numpy(labels.astype(np.int64))


def main():
    """Train for some epochs on this rank's frames; rank 0 writes the model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", required=True, help="manifest, prepared arrays or list")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=1)
    options = parser.parse_args()
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if ranks > 1:  # MASTER_ADDR and MASTER_PORT are set, too
        torch.distributed.init_process_group("gloo")

    torch.manual_seed(0)
    frames = open_frames(options.frames)
    loader = DataLoader(
        frames.shard(rank, ranks), batch_size=4, shuffle=True, num_workers=1, collate_fn=batch_of
    )
    classes = len(frames.classes)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(16, classes, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    loss_of = torch.nn.CrossEntropyLoss(ignore_index=UNKNOWN_CLASS)
    # Ranks whose shards differ by a frame make as many steps.
    steps = options.epochs * (len(frames) // ranks // 4 or 1)
    batches = iter(())
    for _ in range(steps):
        images, labels = next(batches, None) or next(batches := iter(loader))
        optimizer.zero_grad()
        loss = loss_of(model(images), labels)
        loss.backward()
        if ranks > 1:
            for parameter in model.parameters():
                torch.distributed.all_reduce(parameter.grad)
                parameter.grad /= ranks
        optimizer.step()
    if rank == 0:
        torch.save(model.state_dict(), options.out / "model.pt")
        metrics = {"loss": loss.item(), "steps": steps, "frames": len(frames)}
        (options.out / "metrics.json").write_text(json.dumps(metrics))
    if ranks > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
