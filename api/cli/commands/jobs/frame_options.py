"""The options of a job that begins with a question, in a dataset's place."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any

import typer

from api.cli.options.grouped_options import with_options
from api.cli.options.question_options import QuestionOptions, question_of
from api.cli.options.set_options import DivisionOptions, division_of
from catalog.errors import InvalidInput


@dataclass(frozen=True)
class FrameOptions(DivisionOptions, QuestionOptions):
    """Options that choose a job's frames, those of a question, and say what becomes of them."""

    divide: Annotated[
        str | None,
        typer.Option(
            metavar="SHARES",
            help="Divide chosen frames into splits, such as train=0.8,validation=0.2.",
        ),
    ] = None
    save_as: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The dataset that chosen frames become; by default the job's name, or "
            "predict-MODEL.",
        ),
    ] = None
    evict: Annotated[
        bool,
        typer.Option("--evict", help="Remove the dataset from the cache when the job is done."),
    ] = False
    migrate: Annotated[
        bool,
        typer.Option(
            "--migrate", help="Have the dataset's files migrated back to tape when the job is done."
        ),
    ] = False


@dataclass(frozen=True)
class TrainFrameOptions(FrameOptions):
    """Those of a training, whose own --seed and --model say something else."""

    seed: Annotated[
        int | None,
        typer.Option("--sample-seed", help="Seed of --sample and --divide; 0 unless given."),
    ] = None
    model: Annotated[
        str | None,
        typer.Option(
            "--scored-model",
            help="A model whose scores were imported: uncertainty, margin, miou, accuracy and loss "
            "are its own; --where takes confusion(TRUTH, PREDICTED).",
        ),
    ] = None


with_frame_options = with_options("frame_options", FrameOptions)
"""Give a command all of FrameOptions' options in place of its parameter ``frame_options``."""


def dataset_or_question(dataset: str | None, frame_options: FrameOptions) -> Mapping[str, Any]:
    """The dataset or question that a job works on, as options of the method that begins it.

    Raises:
        InvalidInput: An option's value cannot be used, or there is nothing to divide.
    """
    asked = {
        field.name: getattr(frame_options, field.name)
        for field in fields(QuestionOptions)
        if getattr(frame_options, field.name) is not None
    }
    chosen: dict[str, Any] = {"dataset": dataset}
    if asked:
        chosen["question"] = question_of(QuestionOptions(**asked))
    own = {field.name: getattr(frame_options, field.name) for field in fields(DivisionOptions)}
    division = DivisionOptions(**own)
    if frame_options.divide is not None:
        chosen["divide"] = {"split": frame_options.divide, **division_of(division)}
        if frame_options.seed is not None:
            chosen["divide"]["seed"] = frame_options.seed
    elif division != DivisionOptions():
        different = next(
            name for name, value in asdict(division).items() if value != _UNDIVIDED[name]
        )
        raise InvalidInput(
            f"--{different.replace('_', '-')}: goes with --divide, such as "
            "--divide train=0.8,validation=0.2"
        )
    if frame_options.save_as is not None:
        chosen["save_as"] = frame_options.save_as
    if frame_options.evict:
        chosen["evict"] = True
    if frame_options.migrate:
        chosen["migrate"] = True
    return chosen


_UNDIVIDED = asdict(DivisionOptions())
