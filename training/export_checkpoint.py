"""A model of a checkpoint, or the best one: ``python -m training.export_checkpoint``.

What a training leaves on its way becomes a model's folder like any other, which is validated and
predicted with, whether the run goes on, has ended or was cancelled. A folder that has that model
already is left as it is; so is one with the best, though the run may have a better one since.
"""

import argparse
import hashlib
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from catalog.errors import BadFile, NotFound, UnknownName
from catalog.storage.atomic_write import atomic_path, atomic_write
from catalog.storage.bounded_file import parsed_json
from pipeline.prepared.label_classes import LabelClasses
from pipeline.runs.checkpoint_steps import BEST, checkpoint_steps
from training.command import OneLineParser, exit_status, positive_int, say
from training.folder_file import read_folder_file
from training.input.trained_frames import ABOUT_TRAINED
from training.network.about_model import ABOUT_FILE, AboutModel
from training.run.checkpoint import Checkpoint
from training.run.run_record import RECORD_FILE
from training.strict_json import strict_json

_OF_RECORD = ("question", "snapshot", "seed", "parents")
"""Fields of a dataset that run.json has beside those of model.json."""

_TRIES = 3
_MOST_BYTES = 16 << 20


def export_checkpoint(model_dir: Path, step: int, out: Path, network: str = "") -> None:
    """Write the model that a training had after a step.

    Args:
        step: Steps made; a checkpoint of them is there.
        network: The user's own network, "module:function", which may be built.

    Raises:
        BadFile: It is damaged, of version 0.1.0, or of a network that may not be built.
    """
    if (out / ABOUT_FILE).exists() and AboutModel.read(out).step == step:
        say(f"model of step {step} is there already")
        return
    checkpoint = _read(model_dir, step)
    identity = checkpoint.identity
    from training.network.model_files import write_model  # with TensorFlow
    from training.network.networks import build_network

    classes = LabelClasses.of(checkpoint.labels, checkpoint.class_map, str(model_dir))
    record = _record(model_dir)
    about = AboutModel(
        sha256="",
        network=identity.network,
        step=step,
        classes=classes.names,
        labels=checkpoint.labels,
        class_map=checkpoint.class_map.as_json() if checkpoint.class_map else None,
        height_px=identity.height_px,
        width_px=identity.width_px,
        workers=identity.workers,
        dataset=_dataset(record, identity.dataset_id, identity.split),
        settings=record.get("settings", {}),
        parent=record.get("parent"),
    )
    try:
        built = build_network(
            about.network, about.height_px, about.width_px, len(about.classes), trusted=network
        )
        built.set_weights(list(checkpoint.weights))
    except (UnknownName, ValueError) as error:
        raise BadFile(f"checkpoint of step {step} cannot be loaded: {error}", str(model_dir)) from (
            error
        )
    out.mkdir(parents=True, exist_ok=True)
    _copy_trained(model_dir, out)
    write_model(built, about, out)
    say(f"model of step {step} written to {out}")


def export_best(model_dir: Path, out: Path) -> None:
    """Copy the best model that a training has had so far.

    Raises:
        BadFile: It is damaged.
    """
    from training.network.model_files import WEIGHTS_FILE

    if (out / ABOUT_FILE).exists():
        say(f"the best model, of step {AboutModel.read(out).step}, is there already")
        return
    best = model_dir / BEST
    for _ in range(_TRIES):
        about = AboutModel.read(best)
        with atomic_path(out / WEIGHTS_FILE, parents=True) as partial_path:
            shutil.copyfile(best / WEIGHTS_FILE, partial_path)
        with (out / WEIGHTS_FILE).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest == about.sha256:  # else a training that goes on replaced it meanwhile
            _copy_trained(best, out)
            atomic_write(out / ABOUT_FILE, strict_json(about.to_json()))
            say(f"the best model, of step {about.step}, written to {out}")
            return
    raise BadFile("does not belong to the weights beside it; try again", str(best / ABOUT_FILE))


def _copy_trained(model_dir: Path, out: Path) -> None:
    for name in ABOUT_TRAINED:
        if (model_dir / name).exists():  # where its parent has no list, it has none
            with atomic_path(out / name) as partial_path:
                shutil.copyfile(model_dir / name, partial_path)


def _read(model_dir: Path, step: int) -> Checkpoint:
    """The checkpoint of a step, which a training that goes on may rename meanwhile."""
    for _ in range(_TRIES):
        name = checkpoint_steps(model_dir).get(step)
        checkpoint = Checkpoint.read(model_dir, name) if name else None
        if checkpoint is not None and checkpoint.step == step:
            return checkpoint
    raise NotFound(
        "checkpoint",
        f"{model_dir} step {step}",
        "the training has replaced it; it keeps more with --keep-checkpoints",
    )


def _record(model_dir: Path) -> Mapping[str, Any]:
    """The run's record; empty where there is none."""
    try:
        record = parsed_json(read_folder_file(model_dir, RECORD_FILE, _MOST_BYTES))
    except (BadFile, FileNotFoundError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _dataset(record: Mapping[str, Any], dataset_id: str, split: str) -> dict[str, Any]:
    """The training data, as model.json has it; without a record the dataset id and split alone."""
    known = record.get("dataset", {})
    described = {name: value for name, value in known.items() if name not in _OF_RECORD}
    return {"name": dataset_id, **described, "id": dataset_id, "split": split}


def main(arguments: Sequence[str]) -> int:
    """Run with command line arguments; the exit status."""
    parser = OneLineParser(
        prog="python -m training.export_checkpoint",
        description="Make a model's folder of a training's checkpoint, or of its best model.",
        allow_abbrev=False,
    )
    parser.add_argument("--model_dir", type=Path, required=True, help="folder of the training")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--step", type=positive_int, help="of the checkpoint")
    which.add_argument("--best", action="store_true", help="the best model so far")
    parser.add_argument("--out", type=Path, required=True, help="folder of the model")
    parser.add_argument("--model", default="", help="the run's own network, MODULE:FUNCTION")
    flags: argparse.Namespace = parser.parse_args(arguments)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

    def work() -> None:
        if flags.best:
            export_best(flags.model_dir, flags.out)
        else:
            export_checkpoint(flags.model_dir, flags.step, flags.out, flags.model)

    return exit_status(work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
