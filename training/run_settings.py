"""Settings of one run of the training program.

The flags are those of a published proof of concept (TensorFlow examples with ``--exec_mode``,
``--model_dir``, ``--max_steps``), hence the underscores. Those of a training are derived from
pipeline.runs.orders.
"""

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from catalog.errors import BadFile, InvalidInput, UnknownName
from pipeline.runs.bad_frames import FAIL, BadFrames
from pipeline.runs.exchange import Exchange
from pipeline.runs.networks import SMALL_UNET, check_backbone, check_network, is_own
from pipeline.runs.orders import TrainingSettings
from pipeline.runs.precision import AUTO, check_precision
from pipeline.runs.setting import Row, Setting, rows
from pipeline.runs.size import LONGEST_SIDE_PX
from pipeline.runs.training_input import KEPT_MIB, SIZE_STEP_PX
from training.command import OneLineParser, check_shard, count, positive_int

TRAINING_MODES = ("train", "train_and_evaluate")
MODES = (*TRAINING_MODES, "evaluate", "predict")
_LOG_EVERY = 10
_ROWS = {row.name: row for row in rows(TrainingSettings) if row.setting.flag}

_ORDER = (
    "exec_mode", "manifest", "model_dir", "results_dir", "trust_model", "compare_dir",
    "compare_network", "augment_test", "staging", "bad_frames", "split", "batch_size", "max_steps",
    "classes", "model", "backbone_weights", "epochs", "continue_from", "learning_rate", "height",
    "width", "seed", "num_workers", "threads", "shard", "shards", "log_every", "checkpoint_every",
    "checkpoint_minutes", "keep_checkpoints", "evaluate_split", "evaluate_every", "target_miou",
    "augment", "horovod", "precision", "cache_mib",
)  # fmt: skip
"""Flags in the order of --help; those of other settings follow."""

_OF_TRAINING = (
    *(name for name, row in _ROWS.items() if row.setting.mode == "train" and name != "batch_size"),
    "cache_mib",
)
"""Flags that a model's folder answers, or that nothing but a training has a use for."""


@dataclass(frozen=True, kw_only=True)
class RunSettings(TrainingSettings):
    """Settings of one run, nothing left open; model.json keeps those of a training."""

    exec_mode: str
    """One of MODES."""
    manifest: Path
    """Manifest folder, or its manifest.json."""
    model_dir: Path
    """Where checkpoints, metrics and the model lie."""
    results_dir: Path | None
    """Where evaluate and predict write; None when training."""
    num_workers: int | None
    """Workers there must be; None accepts any number."""
    threads: int
    """Threads of one process; 0 for its share of the machine's cores."""
    shard: int
    """This process's part of the frames, from 0."""
    shards: int
    """Number of parts."""
    log_every_steps: int
    """Steps between progress lines."""
    cache_bytes: int
    """Decoded frames kept in memory per process, at most."""
    trust_model: bool
    """Whether evaluate and predict may build what a foreign model.keras describes."""
    staging: Path | None
    """The file in which a staging that fetches the frames meanwhile says where it is; None where
    they are all there.
    """
    compare_dir: Path | None
    """Folder of the model that evaluate compares with; None for none."""
    compare_network: str
    """The user's own network of that model, "module:function"; empty for none."""
    augment_test: str
    """How evaluate changes each image to put it through the model again, "mirror"; empty for not at
    all.
    """

    # Of a training, where the program has its own for what is left open.
    learning_rate: float
    height: int
    width: int
    continue_from: Path | None
    classes: str | Mapping[str, Any]
    augment: Sequence[str]
    evaluate_every: int
    evaluate_split: str
    bad_frames: str
    checkpoint_every: int
    keep_checkpoints: int
    model: str
    backbone_weights: Path | None
    precision: str

    @property
    def exchange(self) -> Exchange:
        """The exchange of gradients between workers."""
        return Exchange.of(self.horovod or {})

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
        training = {name: _value(row, getattr(flags, name)) for name, row in _ROWS.items()}
        _check_combination(flags)
    except (InvalidInput, UnknownName, BadFile) as error:
        parser.error(str(error))
    return RunSettings(
        **training,
        exec_mode=flags.exec_mode,
        manifest=flags.manifest,
        model_dir=flags.model_dir,
        results_dir=flags.results_dir,
        num_workers=flags.num_workers,
        threads=flags.threads,
        shard=flags.shard,
        shards=flags.shards,
        log_every_steps=flags.log_every or _LOG_EVERY,
        cache_bytes=(KEPT_MIB if flags.cache_mib is None else flags.cache_mib) << 20,
        trust_model=flags.trust_model,
        staging=flags.staging,
        compare_dir=flags.compare_dir,
        compare_network=flags.compare_network or "",
        augment_test=flags.augment_test or "",
    )


def _value(row: Row, flag: Any) -> Any:
    """The value of a setting by its flag; the program's own where the flag is not there."""
    if flag is None:
        return row.default if row.setting.usual is None else row.setting.usual
    if row.setting.parse is None or isinstance(flag, Path):
        return flag
    return row.setting.parse(flag)


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
    log_help = f"train: steps, evaluate: frames between progress lines ({_LOG_EVERY})"
    flags: dict[str, dict[str, Any]] = {
        "exec_mode": {"choices": MODES, "required": True},
        "manifest": {
            "type": Path, "required": True, "help": "manifest folder or its manifest.json",
        },
        "model_dir": {
            "type": Path, "required": True, "help": "checkpoints, metrics and the model",
        },
        "results_dir": {"type": Path, "help": "where evaluate and predict write"},
        "trust_model": {
            "action": "store_true",
            "help": "evaluate, predict: load a foreign model.keras, which runs its author's code",
        },
        "compare_dir": {
            "type": Path, "help": "evaluate: a model to compare with, on the same frames",
        },
        "compare_network": {"help": "evaluate: that model's own network, MODULE:FUNCTION"},
        "augment_test": {
            "choices": ("mirror",), "help": "evaluate: how far a mirrored image changes it",
        },
        "staging": {
            "type": Path, "help": "staging.json of a staging that fetches the frames meanwhile",
        },
        "num_workers": {"type": positive_int, "help": "stop unless there are so many workers"},
        "threads": {
            "type": count, "default": 0, "help": "per process; 0: its share of the cores (0)",
        },
        "shard": {
            "type": count, "default": 0, "help": "evaluate, predict: this process's part, from 0",
        },
        "shards": {
            "type": positive_int, "default": 1, "help": "evaluate, predict: number of parts (1)",
        },
        "log_every": {"type": positive_int, "help": log_help},
        "cache_mib": {
            "type": count, "help": f"train: decoded frames kept per process ({KEPT_MIB})",
        },
        **{name: _flag_of(row) for name, row in _ROWS.items()},
    }  # fmt: skip
    for name in dict.fromkeys((*_ORDER, *flags)):
        parser.add_argument(f"--{name}", **flags[name])
    return parser


def _flag_of(row: Row) -> dict[str, Any]:
    """The flag of a training's setting, as argparse takes it."""
    setting, types = row.setting, row.types
    mode = f"{setting.mode}: " if setting.mode else ""
    reads: Callable[[str], Any] | None = None
    if row.name in ("height", "width"):
        reads = _network_side
    elif Path in types:
        reads = Path
    elif int in types:
        reads = positive_int if setting.ge else count
    elif float in types:
        reads = partial(_float, setting)
    return {"help": f"{mode}{setting.flag}", **({"type": reads} if reads else {})}


def _float(setting: Setting, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not setting.takes(value):
        words = setting.expected if setting.gt is not None else f"a number of {setting.expected}"
        raise argparse.ArgumentTypeError(f"'{text}' is not {words}")
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
