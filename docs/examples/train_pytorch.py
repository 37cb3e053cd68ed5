r"""A training in PyTorch: a DataLoader over framesift.data, one process per rank.

framesift run city --split train --ranks 2 --prepare 240x152 \
    --command 'python train_pytorch.py --frames {prepared} --out {job}'

Killed, it goes on from its last checkpoint: framesift jobs resume JOB
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


def write_json(path, data):
    """Write a file that is there whole or not at all."""
    path.with_suffix(".part").write_text(json.dumps(data))
    path.with_suffix(".part").replace(path)


def save_checkpoint(out, step, loss, model, optimizer):
    """Keep this step and the one before: name them, and remove those that are not named."""
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    path = out / f"step-{step}.pt"
    torch.save(state, path.with_suffix(".part"))
    path.with_suffix(".part").replace(path)
    named = out / "checkpoints.json"
    kept = json.loads(named.read_text())["checkpoints"][-1:] if named.exists() else []
    kept.append({"step": step, "path": path.name, "metrics": {"loss": loss}})
    write_json(named, {"checkpoints": kept})
    for other in out.glob("step-*.pt"):
        if other.name not in [each["path"] for each in kept]:
            other.unlink()


def main():
    """Train for some epochs on this rank's frames; rank 0 writes the model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", required=True, help="manifest, prepared arrays or list")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--checkpoint-every", type=int, default=5, help="steps")
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
    begin = 0
    if checkpoint := os.environ.get("FRAMESIFT_CHECKPOINT"):  # of an earlier attempt
        state = torch.load(checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        begin = state["step"]
    curves = (options.out / "metrics.jsonl").open("a") if rank == 0 else None
    batches, loss = iter(()), torch.tensor(float("nan"))
    for step in range(begin + 1, steps + 1):
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
            line = {"step": step, "name": "loss", "value": loss.item()}
            print(json.dumps(line), file=curves, flush=True)
            if step % options.checkpoint_every == 0 or step == steps:
                save_checkpoint(options.out, step, loss.item(), model, optimizer)
    if rank == 0:
        torch.save(model.state_dict(), options.out / "model.pt")
        write_json(options.out / "metrics.json", {"max_steps": steps, "frames": len(frames)})
    if ranks > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
