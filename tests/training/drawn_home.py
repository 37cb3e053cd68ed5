"""A home with a staged dataset of drawn frames, and its commands."""

import json
from pathlib import Path
from typing import Any

from PIL import Image, ImageChops

from tests.api.servers import framesift
from tests.training.commands import NETWORK
from tests.training.drawn_frames import CLASS_LIST, draw_frames

TINY_JOB = ("--height", "64", "--width", "96", *NETWORK)
"""Options of `framesift train`; a validation of what it trained takes --trust-model."""


def drawn_home(base: Path, frames: int, *, times: int = 1) -> Path:
    """A home below ``base`` with the dataset few of so many frames, staged to ``base/cache``.

    Args:
        times: How often as wide and high the frames are as they are drawn; then they are moved by a
            pixel, so that outlines lie between those of a smaller picture.
    """
    root = base / "source" / "camera_lidar_semantic"
    for number, drawn in enumerate(draw_frames(base, frames)):
        for kind, path in (("camera", drawn.image), ("label", drawn.label)):
            name = f"20260311130314_{kind}_frontcenter_{number:09d}.png"
            placed = root / "20260311_130314" / kind / "cam_front_center" / name
            placed.parent.mkdir(parents=True, exist_ok=True)
            if times > 1:
                picture = Image.open(base / path)
                size = picture.width * times, picture.height * times
                larger = picture.resize(size, Image.Resampling.NEAREST)
                ImageChops.offset(larger, 1, 1).save(base / path)
            (base / path).rename(placed)
    (root / "class_list.json").write_text(json.dumps(CLASS_LIST))
    home = base / "home"
    for command in (
        ["source", "add", "a2d2", str(base / "source")],
        ["ingest", "a2d2"],
        ["select", "--save", "few"],
        ["stage", "few", "--cache", str(base / "cache")],
    ):
        run = framesift(home, *command)
        assert run.returncode == 0, run.stderr
    return home


def ask(home: Path, *command: str) -> Any:
    """What a command says with --json."""
    run = framesift(home, *command, "--json")
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)
