"""framesift predict."""

from typing import Annotated

import typer

from api.cli.commands.jobs.follow import follow
from api.cli.commands.jobs.frame_options import (
    FrameOptions,
    dataset_or_question,
    with_frame_options,
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
from api.cli.commands.jobs.validate import refuse_foreign_model
from api.cli.target import target
from api.cli.terminal import JsonFlag
from catalog.errors import InvalidInput
from pipeline.jobs.attempts import ATTEMPTS


@with_frame_options
def predict(
    model_name: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A training job's name, or a model folder; with @STEP a checkpoint, "
            "with @best the best one.",
        ),
    ],
    frame_options: FrameOptions,
    dataset: Annotated[
        str | None,
        typer.Argument(help="NAME, or NAME@VERSION; else the options of a question choose frames."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Shards, each a process.")] = 2,
    split: Annotated[
        str | None,
        typer.Option(help="Of the dataset; validation, or all frames of a dataset not divided."),
    ] = None,
    trust_model: Annotated[
        bool,
        typer.Option(
            "--trust-model",
            help="Build a foreign network, of model.keras or the MODULE:FUNCTION that "
            "model.json names; this runs its author's code.",
        ),
    ] = False,
    bad_frames: BadFramesOption = None,
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
    """Let a model say what is in frames, labelled or not: pictures, and how sure it is.

    Frames of a dataset, or those that the options of a question choose: these are saved as a
    dataset, predict-MODEL.
    """
    frames = dataset_or_question(dataset, frame_options)
    if ("question" in frames) == (dataset is not None):
        raise InvalidInput(
            "predict: give a dataset, or the options of a question, such as "
            "--where 'labelled = 0' --sample 1000; and not both"
        )
    chosen = present(
        workers=workers,
        split=split,
        bad_frames=bad_frames,
        name=name,
        backend=backend,
        resources=resources_of(backend, resource, option),
        start_after=percent_of(start_after),
    )
    if attempts != ATTEMPTS:
        chosen["attempts"] = attempts
    if no_stage:
        chosen["stage"] = False
    if trust_model:
        refuse_foreign_model()
        chosen["trust_model"] = True
    jobs = target().jobs
    chosen |= {"model": model_name} | present(**frames)
    follow(jobs, begun(jobs, "predict", dry_run, chosen, as_json), detach, as_json)
