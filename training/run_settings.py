"""What one run of the training program was asked to do.

The flags are those of a published proof of concept (TensorFlow examples with ``--exec_mode``,
``--model_dir``, ``--max_steps``), hence the underscores.
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from catalog.errors import InvalidInput
from training.command import OneLineParser, check_shard, count, positive_int

MODES = ("train", "evaluate", "predict")
SIZE_STEP_PX = 8
"""The network halves its input three times, so both sides are divisible by this."""
LONGEST_SIDE_PX = 8192


@dataclass(frozen=True)
class RunSettings:
    """Settings of one run; model.json keeps those of a training.

    Attributes:
        exec_mode: "train", "evaluate" or "predict".
        manifest: Manifest folder, or its manifest.json.
        model_dir: Where checkpoints, metrics and the model lie.
        results_dir: Where evaluate and predict write; None when training.
        split: The dataset's split to read; None for the usual one of the mode, or for all frames
            of a dataset that is not divided.
        batch_size: Frames per step and worker.
        max_steps: Steps the finished model has had; all workers make them together. None where
            the length is given in epochs, or not given.
        epochs: The length in whole epochs; None where it is given in steps, or not given.
        learning_rate: Of one worker; see training.network.learning_rate for what becomes of it.
        height_px: Network input, pixels.
        width_px: Network input, pixels.
        seed: Of initial weights and the order of frames.
        num_workers: Workers there must be; None accepts any number.
        threads: Threads of one process; 0 for its share of the machine's cores.
        shard: This process's part of the frames, from 0.
        shards: Number of parts.
        log_every_steps: Steps between progress lines.
        checkpoint_every_steps: Steps between checkpoints.
        cache_bytes: Decoded frames kept in memory per process, at most.
        continue_from: Folder of the model that a new run begins with; None for new weights.
        trust_model: Whether evaluate and predict may build what a foreign model.keras describes.
    """

    exec_mode: str
    manifest: Path
    model_dir: Path
    results_dir: Path | None
    split: str | None
    batch_size: int
    max_steps: int | None
    epochs: int | None
    learning_rate: float
    height_px: int
    width_px: int
    seed: int
    num_workers: int | None
    threads: int
    shard: int
    shards: int
    log_every_steps: int
    checkpoint_every_steps: int
    cache_bytes: int
    continue_from: Path | None
    trust_model: bool = False

    def as_json(self) -> dict[str, Any]:
        """The settings as JSON holds them, paths as text."""
        return {
            key: str(value) if isinstance(value, Path) else value
            for key, value in asdict(self).items()
        }


def parse_flags(arguments: Sequence[str]) -> RunSettings:
    """The settings that a command line asks for.

    Raises:
        SystemExit: Status 2 and one line on standard error for flags that cannot be used,
            status 0 after ``--help``.
    """
    parser = _parser()
    flags = parser.parse_args(arguments)
    try:
        check_shard(flags.shard, flags.shards)
        _check_combination(flags)
    except InvalidInput as error:
        parser.error(str(error))
    return RunSettings(
        exec_mode=flags.exec_mode,
        manifest=flags.manifest,
        model_dir=flags.model_dir,
        results_dir=flags.results_dir,
        split=flags.split,
        batch_size=flags.batch_size,
        max_steps=flags.max_steps,
        epochs=flags.epochs,
        learning_rate=flags.learning_rate,
        height_px=flags.height,
        width_px=flags.width,
        seed=flags.seed,
        num_workers=flags.num_workers,
        threads=flags.threads,
        shard=flags.shard,
        shards=flags.shards,
        log_every_steps=flags.log_every,
        checkpoint_every_steps=flags.checkpoint_every,
        cache_bytes=flags.cache_mib << 20,
        continue_from=flags.continue_from,
        trust_model=flags.trust_model,
    )


def _check_combination(flags: argparse.Namespace) -> None:
    if flags.exec_mode == "train":
        if flags.trust_model:
            raise InvalidInput("--trust_model belongs to evaluate and predict")
        if flags.shards != 1:
            raise InvalidInput("--shards belongs to evaluate and predict; training has workers")
        if flags.max_steps is not None and flags.epochs is not None:
            raise InvalidInput(
                f"--max_steps {flags.max_steps} and --epochs {flags.epochs}: give one of them"
            )
        if flags.continue_from and flags.continue_from.resolve() == flags.model_dir.resolve():
            raise InvalidInput(
                f"--continue_from {flags.continue_from} is the --model_dir: a new run needs "
                "another; without --continue_from a run goes on by itself"
            )
        return
    if flags.continue_from or flags.epochs:
        raise InvalidInput("--continue_from and --epochs belong to train")
    if flags.results_dir is None:
        raise InvalidInput(f"--exec_mode {flags.exec_mode} needs --results_dir")
    if (flags.num_workers or 1) != 1:
        raise InvalidInput(
            f"--num_workers belongs to train; start {flags.exec_mode} once per --shard instead"
        )


def _parser() -> OneLineParser:
    parser = OneLineParser(
        prog="python -m training.main",
        description="Train, evaluate or predict with a segmentation network on a manifest.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--exec_mode", choices=MODES, required=True)
    add("--manifest", type=Path, required=True, help="manifest folder or its manifest.json")
    add("--model_dir", type=Path, required=True, help="checkpoints, metrics and the model")
    add("--results_dir", type=Path, help="where evaluate and predict write")
    add(
        "--trust_model",
        action="store_true",
        help="evaluate, predict: load a foreign model.keras, which runs its author's code",
    )
    add("--split", help='default: "train" to train, otherwise "validation"; all if not divided')
    add("--batch_size", type=positive_int, default=4, help="train: frames per step and worker (4)")
    add("--max_steps", type=positive_int, help="train: steps in all (300, or an epoch if more)")
    add("--epochs", type=positive_int, help="train: the length in epochs instead of steps")
    add("--continue_from", type=Path, help="train: folder of a model to begin with")
    add("--learning_rate", type=_positive_float, default=2e-3, help="of one worker (0.002)")
    add("--height", type=_network_side, default=152, help="network input, pixels (152)")
    add("--width", type=_network_side, default=240, help="network input, pixels (240)")
    add("--seed", type=count, default=0, help="of weights and order of frames (0)")
    add("--num_workers", type=positive_int, help="stop unless there are so many workers")
    add("--threads", type=count, default=0, help="per process; 0: its share of the cores (0)")
    add("--shard", type=count, default=0, help="evaluate, predict: this process's part, from 0")
    add("--shards", type=positive_int, default=1, help="evaluate, predict: number of parts (1)")
    add("--log_every", type=positive_int, default=10, help="steps between progress lines (10)")
    add("--checkpoint_every", type=positive_int, default=100, help="steps (100)")
    add("--cache_mib", type=count, default=1024, help="decoded frames kept per process (1024)")
    return parser


def _positive_float(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (value > 0 and math.isfinite(value)):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return value


def _network_side(text: str) -> int:
    pixels = positive_int(text)
    if pixels > LONGEST_SIDE_PX:
        raise argparse.ArgumentTypeError(f"{pixels} pixels; expected at most {LONGEST_SIDE_PX}")
    if pixels % SIZE_STEP_PX:
        near = max(SIZE_STEP_PX, round(pixels / SIZE_STEP_PX) * SIZE_STEP_PX)
        raise argparse.ArgumentTypeError(
            f"{pixels} pixels is not divisible by {SIZE_STEP_PX}; {near} is"
        )
    return pixels
