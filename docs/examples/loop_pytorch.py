r"""A network of your own, trained and used for prediction; docs/pytorch-loop.md has the whole loop.

framesift run drives --split train --prepare 160x120 --name first \
    --command 'python loop_pytorch.py train --frames {prepared} --out {job}'
framesift run drives --split validation --checkpoint first --name first-predictions \
    --command 'python loop_pytorch.py predict --frames {manifest} --split validation
        --model {checkpoint} --out predictions/first'
"""

import argparse
import json
import os
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn.functional import cross_entropy, interpolate
from torch.utils.data import DataLoader

from framesift.data import UNKNOWN_CLASS, open_frames
from framesift.data.torch import FrameSampler, TorchFrames

SIZE = (120, 160)
"""Height and width of what the network sees, as --prepare 160x120 makes it."""


def block(inputs, outputs, stride=1):
    """Two convolutions, each with normalisation."""
    layers = []
    for channels, step in ((inputs, stride), (outputs, 1)):
        layers += [nn.Conv2d(channels, outputs, 3, step, padding=1, bias=False)]
        layers += [nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class SmallUnet(nn.Module):
    """Images (n, 3, h, w), 0 to 1, to logits (n, classes, h, w); h and w are multiples of 8."""

    def __init__(self, classes):
        super().__init__()
        self.down = nn.ModuleList([block(3, 16, 2), block(16, 32, 2), block(32, 64, 2)])
        self.up = nn.ModuleList([block(64 + 32, 32), block(32 + 16, 16)])
        self.last = nn.Conv2d(16, classes, 1)

    def forward(self, images):
        """Logits of each pixel."""
        half = self.down[0](images)
        quarter = self.down[1](half)
        x = self.down[2](quarter)
        for up, skipped in zip(self.up, (quarter, half), strict=True):
            x = up(torch.cat([interpolate(x, scale_factor=2.0), skipped], dim=1))
        return interpolate(self.last(x), scale_factor=2.0, mode="bilinear")


def train(options):
    """Train on this rank's frames; rank 0 writes the model and the curves."""
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if ranks > 1:  # MASTER_ADDR and MASTER_PORT are set, too
        torch.distributed.init_process_group("gloo")
    torch.manual_seed(options.seed)
    frames = TorchFrames(open_frames(options.frames))
    sampler = FrameSampler(frames, rank, ranks, options.seed, options.batch_size)
    loader = DataLoader(frames, options.batch_size, sampler=sampler)
    model = SmallUnet(len(frames.class_names))
    if options.begin_with:
        model.load_state_dict(torch.load(options.begin_with)["weights"])
    network = nn.parallel.DistributedDataParallel(model) if ranks > 1 else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=options.steps)
    curves = (options.out / "metrics.jsonl").open("w") if rank == 0 else None
    step, epoch = 0, 0
    while step < options.steps:
        sampler.set_epoch(epoch)
        for images, masks in loader:
            optimizer.zero_grad()
            logits = network(images / 255)
            loss = cross_entropy(logits, masks, ignore_index=UNKNOWN_CLASS)
            loss.backward()
            optimizer.step()
            schedule.step()
            step += 1
            if curves and (step % 10 == 0 or step == options.steps):
                line = {"step": step, "name": "loss", "value": loss.item()}
                print(json.dumps(line), file=curves, flush=True)
            if step == options.steps:
                break
        epoch += 1
    if rank == 0:
        made = {"classes": frames.class_names, "weights": model.state_dict()}
        torch.save(made, options.out / "model.pt")
        checkpoint = {"step": step, "path": "model.pt"}
        (options.out / "checkpoints.json").write_text(json.dumps({"checkpoints": [checkpoint]}))
        metrics = {"loss": loss.item(), "steps": step, "frames": len(frames)}
        (options.out / "metrics.json").write_text(json.dumps(metrics))
    if ranks > 1:
        torch.distributed.destroy_process_group()


def predict(options):
    """Write a frame's class ids, and the probabilities beside them: FKEY.png and FKEY.npz."""
    frames = open_frames(options.frames, options.split)
    made = torch.load(options.model)
    model = SmallUnet(len(made["classes"]))
    model.load_state_dict(made["weights"])
    model.eval()
    # The network has no channel for an ignored class; a file's ids are those of the dataset.
    names = frames.classes.names
    class_ids = torch.tensor([names.index(name) for name in made["classes"]])
    for name, (image, _) in zip(frames.names, frames, strict=True):
        pixels = torch.from_numpy(image).permute(2, 0, 1)[None] / 255
        with torch.inference_mode():
            logits = model(interpolate(pixels, SIZE, mode="area"))
            at_label = interpolate(logits, image.shape[:2], mode="bilinear")
        probabilities = np.zeros((len(names), *SIZE), np.float16)
        probabilities[class_ids] = logits.softmax(dim=1)[0]
        path = (options.out / name).with_suffix(".png")
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path.with_suffix(".npz"), probabilities)
        ids = class_ids[at_label[0].argmax(dim=0)].to(torch.uint8)
        Image.fromarray(ids.numpy()).save(path)


def export(options):
    """Write the network as ONNX, which framesift validate and predict read; needs onnxscript."""
    made = torch.load(options.model)
    model = SmallUnet(len(made["classes"]))
    model.load_state_dict(made["weights"])
    path = options.out / "model.onnx"
    torch.onnx.export(model.eval(), (torch.zeros(1, 3, *SIZE),), path, external_data=False)


def main():
    """Train, predict, or export."""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(required=True)
    training = commands.add_parser("train")
    training.add_argument("--steps", type=int, default=90)
    training.add_argument("--batch-size", type=int, default=4, help="of each rank")
    training.add_argument("--begin-with", help="another training's model.pt, for its weights")
    training.add_argument("--seed", type=int, default=1)
    training.set_defaults(work=train)
    predicting = commands.add_parser("predict")
    predicting.add_argument("--split")
    predicting.add_argument("--model", required=True, type=Path, help="model.pt of a training")
    predicting.set_defaults(work=predict)
    exporting = commands.add_parser("export")
    exporting.add_argument("--model", required=True, type=Path, help="model.pt of a training")
    exporting.set_defaults(work=export)
    for command in (training, predicting):
        command.add_argument("--frames", required=True, help="manifest or prepared arrays")
    for command in (training, predicting, exporting):
        command.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    options.work(options)


if __name__ == "__main__":
    main()
