r"""A training in Lightning: it begins when a part of the frames is staged, and waits for the rest.

framesift run city --ranks 2 --torchrun --start-after 10% \
    --command 'python train_lightning.py --frames {manifest} --out {job}'
"""

import argparse
import json
import os
from pathlib import Path

import lightning
import torch
from torch.utils.data import DataLoader

from framesift.data import UNKNOWN_CLASS, open_frames
from framesift.data.torch import FrameSampler, TorchFrames


class Segmentation(lightning.LightningModule):
    """Two convolutions at an eighth of the size."""

    def __init__(self, classes):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.AvgPool2d(8), torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(),
            torch.nn.Conv2d(16, classes, 1),
        )  # fmt: skip

    def training_step(self, batch):
        """The loss of a batch."""
        images, masks = batch
        logits = self.net(images / 255)
        masks = masks[:, 4::8, 4::8][:, : logits.shape[2], : logits.shape[3]]
        loss = torch.nn.functional.cross_entropy(logits, masks, ignore_index=UNKNOWN_CLASS)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        """Adam."""
        return torch.optim.Adam(self.parameters(), lr=1e-2)


def main():
    """Train for some epochs, from the last one that was saved."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", required=True, help="the job's manifest")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=1)
    options = parser.parse_args()
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    on_machine = int(os.environ["LOCAL_WORLD_SIZE"])

    lightning.seed_everything(0)
    frames = TorchFrames(open_frames(options.frames, "train"))
    sampler = FrameSampler(frames, rank, ranks, seed=1, batch_size=2)  # Lightning sets its epoch
    loader = DataLoader(frames, batch_size=2, sampler=sampler, num_workers=1)
    trainer = lightning.Trainer(
        accelerator="auto", devices=on_machine, num_nodes=ranks // on_machine,
        strategy="ddp" if ranks > 1 else "auto", max_epochs=options.epochs,
        use_distributed_sampler=False, default_root_dir=options.out, logger=False,
        enable_progress_bar=False, enable_model_summary=False,
        callbacks=[lightning.pytorch.callbacks.ModelCheckpoint(options.out, save_last=True)],
    )  # fmt: skip
    last = options.out / "last.ckpt"
    model = Segmentation(len(frames.class_names))
    trainer.fit(model, loader, ckpt_path=last if last.exists() else None)
    if rank == 0:
        loss = float(trainer.callback_metrics["loss"])
        metrics = {"loss": loss, "steps": trainer.global_step, "frames": len(frames)}
        (options.out / "metrics.json").write_text(json.dumps(metrics))


if __name__ == "__main__":
    main()
