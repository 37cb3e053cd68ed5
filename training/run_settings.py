"""Settings of one run of the training program.

The flags are those of a published proof of concept (TensorFlow examples with ``--exec_mode``,
``--model_dir``, ``--max_steps``), hence the underscores.
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from catalog.errors import BadFile, InvalidInput, UnknownName
from pipeline.runs.augmentations import AUGMENTATIONS, NONE, USUAL, augmentations_in
from pipeline.runs.bad_frames import FAIL, BadFrames
from pipeline.runs.class_map import ALL, classes_in
from pipeline.runs.exchange import Exchange
from pipeline.runs.networks import NETWORKS, SMALL_UNET, check_backbone, check_network, is_own
from pipeline.runs.precision import AUTO, PRECISIONS, check_precision
from pipeline.runs.size import LONGEST_SIDE_PX
from pipeline.runs.training_input import KEPT_MIB, SIZE_STEP_PX, USUAL_SIZE
from training.command import OneLineParser, check_shard, count, positive_int

TRAINING_MODES = ("train", "train_and_evaluate")
MODES = (*TRAINING_MODES, "evaluate", "predict")
_BATCH = 4
_LEARNING_RATE = 2e-3
_LOG_EVERY = 10
_CHECKPOINT_EVERY = 100
_KEEP_CHECKPOINTS = 2

_OF_TRAINING = (
    "continue_from", "max_steps", "epochs", "learning_rate", "height", "width", "seed", "classes",
    "backbone_weights", "augment", "horovod", "precision", "cache_mib", "checkpoint_every",
    "checkpoint_minutes", "keep_checkpoints",
)  # fmt: skip
"""Flags that a model's folder answers, or that nothing but a training has a use for."""


@dataclass(frozen=True)
class RunSettings:
    """Settings of one run; model.json keeps those of a training.

    Attributes:
        exec_mode: One of MODES.
        manifest: Manifest folder, or its manifest.json.
        model_dir: Where checkpoints, metrics and the model lie.
        results_dir: Where evaluate and predict write; None when training.
        split: The dataset's split to read; None for the usual one of the mode, or for all frames
            of a dataset that is not divided.
        batch_size: Frames per step and worker of a training; evaluate and predict put one frame at
            a time through the model.
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
        model: Name of the network, or the user's own, "module:function".
        backbone_weights: File with weights of the network's backbone; None for none.
        classes: Name of a class map, its JSON or its file (pipeline.runs.class_map).
        augment: How examples are changed (pipeline.runs.augmentations).
        checkpoint_minutes: Minutes after which a checkpoint is due, too; None for steps alone.
        evaluate_split: Split that train_and_evaluate scores on the way.
        evaluate_every: Epochs of the training after each of which it does.
        target_miou: Mean IoU that train_and_evaluate times; None for none.
        keep_checkpoints: Checkpoints kept, the newest among them.
        horovod: How workers exchange gradients (pipeline.runs.exchange), as text.
        trust_model: Whether evaluate and predict may build what a foreign model.keras describes.
        staging: The file in which a staging that fetches the frames meanwhile says where it is;
            None where they are all there.
        bad_frames: What becomes of frames that cannot be read (pipeline.runs.bad_frames).
        compare_dir: Folder of the model that evaluate compares with; None for none.
        compare_network: The user's own network of that model, "module:function"; empty for none.
        augment_test: How evaluate changes each image to put it through the model again, "mirror";
            empty for not at all.
        precision: That layers compute in (pipeline.runs.precision).
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
    model: str = SMALL_UNET
    backbone_weights: Path | None = None
    classes: str = ALL
    augment: str = ",".join(USUAL)
    checkpoint_minutes: float | None = None
    keep_checkpoints: int = 2
    evaluate_split: str = "validation"
    evaluate_every: int = 1
    target_miou: float | None = None
    horovod: str = ""
    trust_model: bool = False
    staging: Path | None = None
    bad_frames: str = FAIL
    compare_dir: Path | None = None
    compare_network: str = ""
    augment_test: str = ""
    precision: str = AUTO

    @property
    def exchange(self) -> Exchange:
        """The exchange of gradients between workers."""
        return Exchange.parsed(self.horovod)

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
    except (InvalidInput, UnknownName, BadFile) as error:
        parser.error(str(error))
    return RunSettings(
        exec_mode=flags.exec_mode,
        manifest=flags.manifest,
        model_dir=flags.model_dir,
        results_dir=flags.results_dir,
        split=flags.split,
        batch_size=flags.batch_size or _BATCH,
        max_steps=flags.max_steps,
        epochs=flags.epochs,
        learning_rate=flags.learning_rate or _LEARNING_RATE,
        height_px=flags.height or USUAL_SIZE.height_px,
        width_px=flags.width or USUAL_SIZE.width_px,
        seed=flags.seed or 0,
        num_workers=flags.num_workers,
        threads=flags.threads,
        shard=flags.shard,
        shards=flags.shards,
        log_every_steps=flags.log_every or _LOG_EVERY,
        checkpoint_every_steps=flags.checkpoint_every or _CHECKPOINT_EVERY,
        cache_bytes=(KEPT_MIB if flags.cache_mib is None else flags.cache_mib) << 20,
        continue_from=flags.continue_from,
        model=flags.model or SMALL_UNET,
        backbone_weights=flags.backbone_weights,
        classes=flags.classes or ALL,
        augment=",".join(augmentations_in(flags.augment or ",".join(USUAL))) or NONE,
        checkpoint_minutes=flags.checkpoint_minutes,
        keep_checkpoints=flags.keep_checkpoints or _KEEP_CHECKPOINTS,
        evaluate_split=flags.evaluate_split or "validation",
        evaluate_every=flags.evaluate_every or 1,
        target_miou=flags.target_miou,
        horovod=Exchange.parsed(flags.horovod or "").text,
        trust_model=flags.trust_model,
        staging=flags.staging,
        bad_frames=flags.bad_frames or FAIL,
        compare_dir=flags.compare_dir,
        compare_network=flags.compare_network or "",
        augment_test=flags.augment_test or "",
        precision=flags.precision or AUTO,
    )


def _check_combination(flags: argparse.Namespace) -> None:
    BadFrames.parse(flags.bad_frames or FAIL)
    for network in filter(None, (flags.model, flags.compare_network)):
        check_network(network)
    of_evaluations = (flags.evaluate_split, flags.evaluate_every, flags.target_miou)
    if flags.exec_mode != "train_and_evaluate" and any(of_evaluations):
        raise InvalidInput(
            "--evaluate_split, --evaluate_every and --target_miou belong to train_and_evaluate"
        )
    if flags.exec_mode in TRAINING_MODES:
        _check_training(flags)
    else:
        _check_use(flags)


def _check_training(flags: argparse.Namespace) -> None:
    classes_in(flags.classes or ALL)
    augmentations_in(flags.augment or NONE)
    Exchange.parsed(flags.horovod or "")
    check_backbone(flags.model or SMALL_UNET, flags.backbone_weights)
    check_precision(flags.precision or AUTO)
    if flags.trust_model:
        raise InvalidInput("--trust_model belongs to evaluate and predict")
    if flags.compare_dir is not None or flags.compare_network or flags.augment_test:
        raise InvalidInput("--compare_dir and --augment_test belong to evaluate")
    if flags.results_dir is not None:
        raise InvalidInput(
            "--results_dir belongs to evaluate and predict; training has --model_dir"
        )
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


def _check_use(flags: argparse.Namespace) -> None:
    if flags.batch_size is not None:
        raise InvalidInput(
            f"--batch_size belongs to train: {flags.exec_mode} puts one frame at a time through "
            "the model, so that no score depends on what shares its batch"
        )
    if flags.exec_mode == "predict" and (flags.compare_dir is not None or flags.augment_test):
        raise InvalidInput("--compare_dir and --augment_test belong to evaluate")
    if flags.compare_network and flags.compare_dir is None:
        raise InvalidInput("--compare_network: goes with --compare_dir, whose network it is")
    for flag in _OF_TRAINING:
        if getattr(flags, flag) is not None:
            raise InvalidInput(f"--{flag} belongs to train")
    if flags.exec_mode == "predict" and flags.log_every is not None:
        raise InvalidInput("--log_every belongs to train and evaluate: predict names each frame")
    if flags.model and not is_own(flags.model):
        raise InvalidInput("--model: a model's folder names its network; name only one of your own")
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
    add("--compare_dir", type=Path, help="evaluate: a model to compare with, on the same frames")
    add("--compare_network", help="evaluate: that model's own network, MODULE:FUNCTION")
    add("--augment_test", choices=("mirror",), help="evaluate: how far a mirrored image changes it")
    add("--staging", type=Path, help="staging.json of a staging that fetches the frames meanwhile")
    add("--bad_frames", help="fail (default), skip, or skip:N frames at most")
    add("--split", help='default: "train" to train, otherwise "validation"; all if not divided')
    add("--batch_size", type=positive_int, help=f"train: frames per step and worker ({_BATCH})")
    add("--max_steps", type=positive_int, help="train: steps in all (300, or an epoch if more)")
    add("--classes", help="train: all (default), a2d2-8, or a JSON file of merged classes")
    add("--model", help=f"network: {', '.join(NETWORKS)}, or your own, MODULE:FUNCTION")
    add("--backbone_weights", type=Path, help="train: .h5 of ResNet-50's weights")
    add("--epochs", type=positive_int, help="train: the length in epochs instead of steps")
    add("--continue_from", type=Path, help="train: folder of a model to begin with")
    rate_help = f"train: of one worker ({_LEARNING_RATE})"
    add("--learning_rate", type=_positive_float, help=rate_help)
    for side, usual in (("height", USUAL_SIZE.height_px), ("width", USUAL_SIZE.width_px)):
        add(f"--{side}", type=_network_side, help=f"train: network input, pixels ({usual})")
    add("--seed", type=count, help="train: of weights and order of frames (0)")
    add("--num_workers", type=positive_int, help="stop unless there are so many workers")
    add("--threads", type=count, default=0, help="per process; 0: its share of the cores (0)")
    add("--shard", type=count, default=0, help="evaluate, predict: this process's part, from 0")
    add("--shards", type=positive_int, default=1, help="evaluate, predict: number of parts (1)")
    log_help = f"train: steps, evaluate: frames between progress lines ({_LOG_EVERY})"
    add("--log_every", type=positive_int, help=log_help)
    add("--checkpoint_every", type=positive_int, help=f"train: steps ({_CHECKPOINT_EVERY})")
    add("--checkpoint_minutes", type=_positive_float, help="train: minutes between them, too")
    kept_help = f"train: the newest so many ({_KEEP_CHECKPOINTS})"
    add("--keep_checkpoints", type=positive_int, help=kept_help)
    add("--evaluate_split", help="train_and_evaluate: split to score (validation)")
    add("--evaluate_every", type=positive_int, help="train_and_evaluate: epochs (1)")
    target_help = "train_and_evaluate: mean IoU, above 0 to 1, to time"
    add("--target_miou", type=_positive_share, help=target_help)
    add("--augment", help=f"train: {','.join(AUGMENTATIONS)}, some of them, or {NONE} (mirror)")
    add(
        "--horovod",
        help="train: fusion_mb=, cycle_ms=, compression=none|fp16, reduce=average|adasum",
    )
    add("--precision", help=f"train: {', '.join(PRECISIONS)}; auto: mixed where a GPU gains by it")
    add("--cache_mib", type=count, help=f"train: decoded frames kept per process ({KEPT_MIB})")
    return parser


def _positive_float(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (value > 0 and math.isfinite(value)):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return value


def _positive_share(text: str) -> float:
    value = _positive_float(text)
    if value > 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0 and at most 1")
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
