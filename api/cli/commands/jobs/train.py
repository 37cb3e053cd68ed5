"""framesift train."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from api.cli.commands.jobs.follow import follow
from api.cli.commands.jobs.frame_options import (
    TrainFrameOptions,
    dataset_or_question,
)
from api.cli.commands.jobs.options import (
    AttemptsOption,
    BackendOption,
    BadFramesOption,
    DetachFlag,
    NameOption,
    NoStageFlag,
    StartAfterOption,
    percent_of,
    present,
)
from api.cli.commands.jobs.resources import (
    DryRunFlag,
    OptionOption,
    ResourceOption,
    begun,
    resources_of,
)
from api.cli.options.grouped_options import with_options
from api.cli.target import target
from api.cli.terminal import JsonFlag
from pipeline.jobs.attempts import ATTEMPTS
from pipeline.jobs.train_settings import TrainSettings
from pipeline.runs.augmentations import augmentations_in
from pipeline.runs.class_map import classes_in
from pipeline.runs.exchange import Exchange
from pipeline.runs.training_input import USUAL_SIZE


@with_options("frame_options", TrainFrameOptions)
def train(
    frame_options: TrainFrameOptions,
    dataset: Annotated[
        str | None,
        typer.Argument(help="NAME, or NAME@VERSION; else options such as --range choose frames."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Horovod processes.")] = 2,
    batch_size: Annotated[int, typer.Option(min=1, help="Frames per worker and step.")] = 4,
    max_steps: Annotated[
        int | None,
        typer.Option(min=1, help="Steps; 300 by default, or one epoch where that is more."),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Length in epochs, instead of steps.")
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Of one worker; 0.002 by default.")
    ] = None,
    height: Annotated[
        int | None,
        typer.Option(
            help="Network input height [pixels], divisible by 8; by default "
            f"{USUAL_SIZE.height_px}."
        ),
    ] = None,
    width: Annotated[
        int | None,
        typer.Option(help=f"Network input width, likewise; by default {USUAL_SIZE.width_px}."),
    ] = None,
    weights_seed: Annotated[int, typer.Option("--seed", help="Seed of weights and order.")] = 0,
    split: Annotated[
        str | None,
        typer.Option(help="Split to train on; train, or all frames of a dataset not divided."),
    ] = None,
    continue_from: Annotated[
        str | None,
        typer.Option(
            help="Begin with the weights of a model: a training job's name, with @STEP or @best "
            "too, or a folder."
        ),
    ] = None,
    prepare: Annotated[
        bool | None,
        typer.Option(
            "--prepare/--no-prepare",
            help="First decode the frames of a staged dataset once; by default where that is less "
            "work than decoding all that the training reads.",
            show_default=False,
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="all|a2d2-8|FILE",
            help="What the network learns: all label classes (default), a set of merged ones, or "
            "your own map in a JSON file.",
        ),
    ] = None,
    augment: Annotated[
        str | None,
        typer.Option(
            metavar="LIST|none",
            help="Done to examples after reading: mirror (default), crop, scale, colour; or none.",
        ),
    ] = None,
    evaluate_every: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="EPOCHS",
            help="Score another split after each so many epochs, and keep the best model: "
            "validate NAME@best.",
        ),
    ] = None,
    evaluate_split: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The split that --evaluate-every scores (validation)."),
    ] = None,
    bad_frames: BadFramesOption = None,
    target_miou: Annotated[
        float | None,
        typer.Option(
            help="Take the time until --evaluate-every finds this mean IoU, above 0 to 1.",
        ),
    ] = None,
    horovod: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=VALUE,...",
            help="How workers exchange gradients: fusion_mb, cycle_ms, compression=none|fp16, "
            "reduce=average; adasum needs MPI, which jobs do not start workers by.",
        ),
    ] = None,
    checkpoint_every: Annotated[
        int | None, typer.Option(min=1, help="Steps between checkpoints; 100 by default.")
    ] = None,
    checkpoint_minutes: Annotated[
        float | None, typer.Option(help="Minutes after which a checkpoint is due, too.")
    ] = None,
    keep_checkpoints: Annotated[
        int | None,
        typer.Option(
            min=1, max=1000, help="Checkpoints kept, the newest among them (2): validate NAME@STEP."
        ),
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(
            "--model",
            help="Network: small_unet (default), deeplabv3plus_resnet50, or your own, "
            "MODULE:FUNCTION, of a module that is installed or on PYTHONPATH.",
        ),
    ] = None,
    backbone_weights: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Weights of ResNet-50 to begin with, as Keras' .h5."),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            help="What layers compute in: auto (default; halves on GPUs that gain by it), float32 "
            "or mixed_float16.",
        ),
    ] = None,
    name: NameOption = None,
    backend: BackendOption = "local",
    resource: ResourceOption = None,
    option: OptionOption = None,
    dry_run: DryRunFlag = False,
    no_stage: NoStageFlag = False,
    start_after: StartAfterOption = None,
    attempts: AttemptsOption = ATTEMPTS,
    detach: DetachFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Train a segmentation network on a dataset's split, data-parallel over Horovod.

    On a dataset, or on the frames that options such as --range car=10000: --camera front_center
    choose: these are saved as a dataset, divided by --divide, and staged first.
    """
    settings = TrainSettings(
        workers=workers,
        batch_size=batch_size,
        max_steps=max_steps,
        epochs=epochs,
        learning_rate=learning_rate,
        height=height,
        width=width,
        seed=weights_seed,
        split=split,
        continue_from=continue_from,
        prepare=prepare,
        classes=None if classes is None else classes_in(classes),
        augment=None if augment is None else augmentations_in(augment),
        evaluate_every=evaluate_every,
        evaluate_split=evaluate_split,
        bad_frames=bad_frames,
        target_miou=target_miou,
        horovod=None if horovod is None else asdict(Exchange.parsed(horovod)),
        checkpoint_every=checkpoint_every,
        checkpoint_minutes=checkpoint_minutes,
        keep_checkpoints=keep_checkpoints,
        model=network,
        backbone_weights=None
        if backbone_weights is None
        else str(Path(backbone_weights).absolute()),
        precision=precision,
    )
    options = present(
        **asdict(settings),
        name=name,
        backend=backend,
        resources=resources_of(backend, resource, option),
        stage=False if no_stage else None,
        start_after=percent_of(start_after),
        attempts=attempts if attempts != ATTEMPTS else None,
    )
    jobs = target().jobs
    options |= dataset_or_question(dataset, frame_options)
    follow(jobs, begun(jobs, "train", dry_run, options, as_json), detach, as_json)
