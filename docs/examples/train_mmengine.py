r"""A training in MMEngine, on plain ranks: its Runner takes their places from the environment.

framesift run city --ranks 2 --start-after 10% \
    --command 'python train_mmengine.py --frames {manifest} --out {job}'
"""

import argparse
import json
import os
from pathlib import Path

import torch
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch.utils.data import DataLoader

from framesift.data import UNKNOWN_CLASS, open_frames
from framesift.data.torch import FrameSampler, TorchFrames


class Segmentation(BaseModel):
    """Two convolutions at an eighth of the size."""

    def __init__(self, classes):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.AvgPool2d(8), torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(),
            torch.nn.Conv2d(16, classes, 1),
        )  # fmt: skip

    def forward(self, images, masks, mode):
        """The loss of a batch, or the class ids that it predicts."""
        logits = self.net(images / 255)
        if mode != "loss":
            return logits.argmax(1)
        masks = masks[:, 4::8, 4::8][:, : logits.shape[2], : logits.shape[3]]
        return {
            "loss": torch.nn.functional.cross_entropy(logits, masks, ignore_index=UNKNOWN_CLASS)
        }


def main():
    """Train for some epochs, from the last one that was saved."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", required=True, help="the job's manifest")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=1)
    options = parser.parse_args()
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if ranks > 1 and not torch.cuda.is_available():
        torch.distributed.init_process_group("gloo")  # MMEngine's own needs a GPU

    frames = TorchFrames(open_frames(options.frames, "train"))
    sampler = FrameSampler(frames, rank, ranks, seed=1, batch_size=2)  # MMEngine sets its epoch
    runner = Runner(
        model=Segmentation(len(frames.class_names)),
        work_dir=str(options.out / "work"),
        train_dataloader=DataLoader(frames, batch_size=2, sampler=sampler, num_workers=1),
        optim_wrapper={"optimizer": {"type": "Adam", "lr": 1e-2}},
        train_cfg={"by_epoch": True, "max_epochs": options.epochs},
        default_hooks={"logger": {"type": "LoggerHook", "interval": 1}},
        cfg={"model_wrapper_cfg": {"type": "MMDistributedDataParallel", "device_ids": None}},
        launcher="pytorch" if ranks > 1 else "none",
        randomness={"seed": 0},
        resume=True,
    )
    runner.train()
    if rank == 0:
        loss = runner.message_hub.get_scalar("train/loss").current()
        metrics = {"loss": float(loss), "steps": runner.iter, "frames": len(frames)}
        (options.out / "metrics.json").write_text(json.dumps(metrics))


if __name__ == "__main__":
    main()
