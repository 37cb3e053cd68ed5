"""framesift predict."""

from dataclasses import fields
from typing import Annotated

import typer

from api.cli.commands.jobs.follow import follow
from api.cli.commands.jobs.frame_options import EvictFlag, MigrateFlag, SaveAsOption
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
from api.cli.options.question_options import QuestionOptions, question_of, with_question
from api.cli.target import target
from api.cli.terminal import JsonFlag
from catalog.errors import InvalidInput
from pipeline.jobs.attempts import ATTEMPTS


@with_question
def predict(
    model_name: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A training job's name, or a model folder; with @STEP a checkpoint, "
            "with @best the best one.",
        ),
    ],
    options: QuestionOptions,
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
    save_as: SaveAsOption = None,
    evict: EvictFlag = False,
    migrate: MigrateFlag = False,
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
    asks = any(getattr(options, field.name) is not None for field in fields(options))
    if asks == (dataset is not None):
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
        question=question_of(options) if asks else None,
        save_as=save_as,
    )
    if attempts != ATTEMPTS:
        chosen["attempts"] = attempts
    if no_stage:
        chosen["stage"] = False
    if evict:
        chosen["evict"] = True
    if migrate:
        chosen["migrate"] = True
    if trust_model:
        refuse_foreign_model()
        chosen["trust_model"] = True
    jobs = target().jobs
    chosen |= {"model": model_name} | present(dataset=dataset)
    follow(jobs, begun(jobs, "predict", dry_run, chosen, as_json), detach, as_json)
